internal import CVips

/// A source whose header was read, and its pixels at the size they are needed.
struct DecodedSource {
    let facts: ImageFacts
    /// Nil for a still.
    let animation: AnimationFacts?
    let bytes: UnsafeRawBufferPointer
    let decoder: Decoder
    let limits: ImageLimits
    let isAlone: Bool
    let jxlAnimation: JXLAnimation?
    /// Whether the header's picture has been decoded: its rows come once.
    let opening = Opening()

    /// Who decodes it.
    enum Decoder {
        case library(ImageFormat, header: Picture)
        case registered(any ImageCoder, ImageHeader)
    }

    /// Reads the header and holds it to the limits.
    ///
    /// - Parameter isAlone: no other thread of this process uses libvips.
    init(
        _ bytes: UnsafeRawBufferPointer, limits: ImageLimits, coders: CoderRegistry = CoderRegistry(),
        isAlone: Bool = false,
    ) throws(ImagingError) {
        self.isAlone = isAlone
        self.bytes = bytes
        self.limits = limits
        switch try Self.coder(for: bytes, coders) {
        case .registered(let coder):
            guard let header = try coder.checkedHeader(of: bytes, limits: limits) else {
                throw ImagingError(code: .truncated, message: "The \(coder.name) ends within its header.")
            }
            decoder = .registered(coder, header)
            jxlAnimation = nil
            animation = try (coder as? any AnimationCoder)?.checkedAnimation(in: bytes, header)
            facts = ImageFacts(
                formatName: coder.name, width: header.width, height: header.height, frames: animation?.frames ?? 1,
                hasAlpha: header.hasAlpha)
        case .library(let format):
            let header = try Self.header(bytes, format, limits: limits, coders: coders)
            decoder = .library(format, header: header)
            jxlAnimation = format == .jxl ? JXLAnimation(bytes) : nil
            animation = AnimationFacts(bytes, as: format).flatMap { $0.isAnimation ? $0 : nil }
            let stored = animation?.canvas ?? header.storedSize
            let size = header.isTurnedByAQuarter ? stored.transposed : stored
            if let objection = limits.objection(width: size.width, height: size.height) { throw objection }
            facts = ImageFacts(
                formatName: format.rawValue, width: size.width, height: size.height,
                frames: animation?.frames ?? jxlAnimation?.frames ?? header.frames, hasAlpha: header.hasAlpha)
        }
    }

    private static func header(
        _ bytes: UnsafeRawBufferPointer, _ format: ImageFormat, limits: ImageLimits, coders: CoderRegistry,
    ) throws(ImagingError) -> Picture {
        // Before libvips sees it: some of its loaders allocate by the header.
        let verdict = HeaderInspector(limits: limits, coders: coders).inspect(bytes)
        if case .refused(let error) = verdict, error.code == .tooManyPixels { throw error }
        if format == .png, let objection = PNGTexts.objection(ByteReader(bytes)) { throw objection }
        if format == .tiff, let objection = TIFFColours(TIFFDirectory(ByteReader(bytes))).objection { throw objection }
        if let objection = DecoderCost(bytes, as: format, limits: limits).objection(limits) { throw objection }
        if [.heic, .avif].contains(format), let objection = HEIFBoxes(ByteReader(bytes)).objection(limits) {
            throw objection
        }
        let picture: Picture
        do throws(VipsFailure) {
            picture = try Picture(of: bytes, as: format)
        } catch {
            throw failure(error, bytes, format)
        }
        guard picture.isOfColours else {
            throw ImagingError(
                code: .badImage, message: "The \(format.rawValue)'s samples are signed or complex numbers, not colours."
            )
        }
        return picture
    }

    /// The registered coder that reads it; nil where a library does.
    var coder: (any ImageCoder)? {
        if case .registered(let coder, _) = decoder { coder } else { nil }
    }

    /// The frames of what is an animation, from the first on, upright.
    ///
    /// - Throws: class `too-many-pixels`, `truncated` or `bad-image`.
    func frames(limits: ImageLimits) throws(ImagingError) -> any FrameSource {
        let frames = try storedFrames(limits: limits)
        guard case .library(_, let header) = decoder, header.orientation > 1 else { return frames }
        return try UprightFrames(frames, orientation: header.orientation)
    }

    private func storedFrames(limits: ImageLimits) throws(ImagingError) -> any FrameSource {
        switch decoder {
        case .registered(let coder, _):
            if let coder = coder as? any AnimationCoder, let animation {
                return try RegisteredFrameSource(coder, animation, bytes: bytes, limits: limits)
            }
        case .library(.gif, _): return try GIFFrameSource(bytes: bytes, limits: limits)
        case .library(.webp, _): return try WebPFrameSource(bytes: bytes, limits: limits)
        case .library: break
        }
        throw ImagingError(code: .transform, message: "Animated \(facts.formatName) is not supported.")
    }

    /// What brings the frames of an animation to sRGB; nil where there is nothing to do.
    var frameColours: FrameColours? {
        if case .library(_, let header) = decoder { FrameColours(header) } else { nil }
    }

    /// What an animation keeps of it.
    func animationMetadata(_ policy: MetadataPolicy) throws(ImagingError) -> AnimationMetadata {
        guard case .library(let format, _) = decoder else { return AnimationMetadata() }
        do throws(VipsFailure) {
            return try AnimationMetadata(of: Picture(of: bytes, as: format), policy)
        } catch {
            throw Self.failure(error, bytes, format)
        }
    }

    /// Small, and large enough for what is told of every picture.
    var glimpse: PixelSize {
        PixelSize(width: facts.width, height: facts.height).scaledDown(toBytes: 4 * Miniature.side * Miniature.side)
    }

    /// In all, as the origin sent it.
    var byteCount: Int { bytes.count }

    /// Lends the file's bytes.
    func lend<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result { try body(bytes) }

    /// Whether it is stored upright, in web colours, and with no more metadata than `policy` keeps.
    func isPlain(_ policy: MetadataPolicy) -> Bool {
        switch decoder {
        case .registered: true
        case .library(let format, let header):
            header.orientation <= 1 && header.isWithin(policy) && !Extras(policy: policy).areIn(bytes, format)
        }
    }

    private static func coder(
        for bytes: UnsafeRawBufferPointer, _ coders: CoderRegistry,
    ) throws(ImagingError) -> Coder {
        if let coder = coders.coder(for: bytes) { return coder }
        if bytes.isEmpty { throw ImagingError(code: .badImage, message: "The file is empty.") }
        guard ImageFormat.mayBegin(bytes) else { throw HeaderInspector.notAnImage }
        throw ImagingError(code: .truncated, message: "The file ends within the signature of an image.")
    }

    static func failure(
        _ failure: VipsFailure, _ bytes: UnsafeRawBufferPointer, _ format: ImageFormat,
    ) -> ImagingError {
        if format == .jxl, let objection = JXLAnimation.objection(to: bytes, ImageLimits()) { return objection }
        return switch Structure(of: bytes, as: format) {
        case .endsEarly: failure.error(.truncated, "The \(format.rawValue) ends before its picture does")
        case .whole: failure.error(.badImage, "The \(format.rawValue) cannot be decoded")
        }
    }
}
