internal import CVips

/// A source whose header was read, and its pixels at the size they are needed.
struct DecodedSource {
    let facts: ImageFacts
    /// Nil for a still.
    let animation: AnimationFacts?
    /// As decoders get them.
    let bytes: UnsafeRawBufferPointer
    /// As the origin sent them.
    private let original: UnsafeRawBufferPointer
    /// Has the bytes where they are not the original ones.
    private let opened: OpenedFile?
    let decoder: Decoder
    let limits: ImageLimits
    let isAlone: Bool
    /// What can be seen of a damaged file is taken.
    let isLenient: Bool
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
    /// - Parameters:
    ///   - isAlone: no other thread of this process uses libvips.
    ///   - isLenient: the file is known to be damaged, and what can be seen of it is wanted.
    init(
        _ bytes: UnsafeRawBufferPointer, limits: ImageLimits, coders: CoderRegistry = CoderRegistry(),
        isAlone: Bool = false, isLenient: Bool = false,
    ) throws(ImagingError) {
        self.isAlone = isAlone
        self.isLenient = isLenient
        original = bytes
        self.limits = limits
        switch try Self.coder(for: bytes, coders) {
        case .registered(let registered):
            let coder: any ImageCoder =
                isLenient && registered is BMPCoder ? BMPCoder(takesBeginning: true) : registered
            guard let header = try coder.checkedHeader(of: bytes, limits: limits) else {
                throw ImagingError(code: .truncated, message: "The \(coder.name) ends within its header.")
            }
            if coder is BMPCoder, let objection = DecoderCost(bytes, as: .bmp, limits: limits).objection(limits) {
                throw objection
            }
            decoder = .registered(coder, header)
            (self.bytes, opened, jxlAnimation) = (bytes, nil, nil)
            animation = try (coder as? any AnimationCoder)?.checkedAnimation(in: bytes, header)
            facts = ImageFacts(
                formatName: coder.name, width: header.width, height: header.height, frames: animation?.frames ?? 1,
                hasAlpha: header.hasAlpha)
        case .library(let format):
            let opened = try OpenedFile(
                bytes, format, limits: limits, coders: coders, isLenient: isLenient)
            let header = opened.header
            decoder = .library(format, header: header)
            (self.bytes, self.opened) = (opened.bytes, opened)
            jxlAnimation = format == .jxl ? JXLAnimation(opened.bytes) : nil
            let moving = AnimationFacts(opened.bytes, as: format)
            animation = moving.flatMap { $0.isAnimation ? $0 : nil }
            let stored = (format == .gif ? moving : animation)?.canvas ?? header.storedSize
            let size = header.isTurnedByAQuarter ? stored.transposed : stored
            if let objection = limits.objection(width: size.width, height: size.height) { throw objection }
            facts = ImageFacts(
                formatName: format.rawValue, width: size.width, height: size.height,
                frames: animation?.frames ?? jxlAnimation?.frames ?? header.frames, hasAlpha: header.hasAlpha)
        }
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
        case .library(.gif, _): return try GIFFrameSource(bytes: bytes, limits: limits, isLenient: isLenient)
        case .library(.webp, _):
            do throws(ImagingError) {
                return try WebPFrameSource(bytes: bytes, limits: limits, isLenient: isLenient)
            } catch {
                throw judged(error)
            }
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
            throw judged(Self.failure(error, bytes, format))
        }
    }

    /// Small, and large enough for what is told of every picture.
    var glimpse: PixelSize {
        PixelSize(width: facts.width, height: facts.height).scaledDown(toBytes: 4 * Miniature.side * Miniature.side)
    }

    /// In all, as the origin sent it.
    var byteCount: Int { original.count }

    /// Lends the file's bytes, as the origin sent them.
    func lend<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result { try body(original) }

    /// Whether it is stored upright, in web colours, and with no more metadata than `policy` keeps.
    func isPlain(_ policy: MetadataPolicy) -> Bool {
        switch decoder {
        case .registered: true
        case .library(let format, let header):
            header.orientation <= 1 && header.isWithin(policy) && !Extras(policy: policy).areIn(original, format)
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

    /// A failure that may be for want of memory is our limit's, and not the file's fault.
    func judged(_ error: ImagingError) -> ImagingError {
        guard error.code == .badImage, case .library(let format, _) = decoder else { return error }
        let cost = DecoderCost(bytes, as: format, limits: limits).bytes
        let size = PixelSize(width: facts.width, height: facts.height)
        return MemoryShortage.objection(format, size, cost: cost) ?? error
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
