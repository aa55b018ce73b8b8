internal import CVips

/// A source whose header was read, and its pixels at the size they are needed.
struct DecodedSource {
    let facts: ImageFacts
    /// Nil for a still.
    let animation: AnimationFacts?
    private let bytes: UnsafeRawBufferPointer
    private let pixels: Pixels
    private let limits: ImageLimits
    private let isAlone: Bool
    private let jxlAnimation: JXLAnimation?

    /// Who decodes it.
    private enum Pixels {
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
            pixels = .registered(coder, header)
            jxlAnimation = nil
            animation = try (coder as? any AnimationCoder)?.checkedAnimation(in: bytes, header)
            facts = ImageFacts(
                formatName: coder.name, width: header.width, height: header.height, frames: animation?.frames ?? 1,
                hasAlpha: header.hasAlpha)
        case .library(let format):
            let header = try Self.header(bytes, format, limits: limits, coders: coders)
            pixels = .library(format, header: header)
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
        if case .registered(let coder, _) = pixels { coder } else { nil }
    }

    /// The frames of what is an animation, from the first on, upright.
    ///
    /// - Throws: class `too-many-pixels`, `truncated` or `bad-image`.
    func frames(limits: ImageLimits) throws(ImagingError) -> any FrameSource {
        let frames = try storedFrames(limits: limits)
        guard case .library(_, let header) = pixels, header.orientation > 1 else { return frames }
        return try UprightFrames(frames, orientation: header.orientation)
    }

    private func storedFrames(limits: ImageLimits) throws(ImagingError) -> any FrameSource {
        switch pixels {
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

    /// Upright, in web colours, in memory, and no smaller than any of `sizes` but where the source itself is.
    ///
    /// All decoding happens in here, so that whatever fails is the source's fault and not the encoder's.
    ///
    /// - Parameter keepingProfile: leaves the colours as the embedded profile tells of them, where any encoder could
    ///   write them so.
    func pixels(for sizes: [PixelSize], keepingProfile: Bool = false) throws(ImagingError) -> Picture {
        let wanted = PixelSize(
            width: min(facts.width, sizes.map(\.width).max() ?? 1),
            height: min(facts.height, sizes.map(\.height).max() ?? 1),
        )
        switch pixels {
        case .registered(let coder, let header):
            return try registered(coder, header, wanted)
        case .library(.gif, let header): return try firstFrame(header, wanted)
        case .library(.jxl, let header) where jxlAnimation != nil:
            return try firstFrameOfJXL(header, wanted, keepingProfile: keepingProfile)
        case .library(let format, let header):
            return try library(format, header, wanted, isShared: sizes.count > 1, keepingProfile: keepingProfile)
        }
    }

    /// Of a GIF, by the reader of its animations: libvips' fills up what is missing without a word.
    private func firstFrame(_ header: Picture, _ size: PixelSize) throws(ImagingError) -> Picture {
        // How many others there are doesn't matter.
        var limits = limits
        (limits.frames, limits.animationPixels) = (.max, .max)
        guard let first = try GIFFrameSource(bytes: bytes, limits: limits).next() else {
            throw ImagingError(code: .badImage, message: "The GIF has no frame.")
        }
        let needsAlpha = header.hasAlpha || !first.pixels.isOpaque
        let frame = try first.pixels.picture()
        do throws(VipsFailure) {
            let seen = needsAlpha ? frame : try frame.then { pw_vips_first_bands($0, &$1, 3) }
            return try seen.resized(to: size).inMemory()
        } catch {
            throw error.error(.transform, "The GIF could not be scaled")
        }
    }

    private func firstFrameOfJXL(
        _ header: Picture, _ size: PixelSize, keepingProfile: Bool,
    ) throws(ImagingError) -> Picture {
        guard let first = try jxlAnimation?.firstFrame(limits) else {
            throw ImagingError(code: .transform, message: "The jxl is no animation.")
        }
        do throws(VipsFailure) {
            let seen = header.hasAlpha ? first : try first.then { pw_vips_first_bands($0, &$1, 3) }
            seen.takeMetadata(of: header)
            return try seen.resized(to: size).inWebColours(keepingProfile: keepingProfile).inMemory()
        } catch {
            throw error.error(.transform, "The jxl could not be scaled")
        }
    }

    private func registered(
        _ coder: any ImageCoder, _ header: ImageHeader, _ size: PixelSize,
    ) throws(ImagingError) -> Picture {
        let image = try coder.checkedImage(of: bytes, header, limits: limits)
        do throws(VipsFailure) {
            return try image.picture(hasAlpha: header.hasAlpha).resized(to: size).inMemory()
        } catch {
            throw error.error(.transform, "The \(coder.name) could not be scaled")
        }
    }

    private func library(
        _ format: ImageFormat, _ header: Picture, _ wanted: PixelSize, isShared: Bool, keepingProfile: Bool,
    ) throws(ImagingError) -> Picture {
        let stored = header.isTurnedByAQuarter ? wanted.transposed : wanted
        let decoded: Picture
        let isSuspicious: Bool
        let isDamaged: Bool
        do throws(VipsFailure) {
            // Pixels are read from the top, once: who wants them a second time opens the file anew.
            let opened = try keepingProfile ? Picture(of: bytes, as: format) : header
            let suspicion = JPEGSuspicion(isAlone: isAlone)
            let loaded = try loaded(opened, format, for: stored, isShared: isShared)
            decoded = try loaded.resized(to: stored).inMemory()
            isSuspicious = format == .jpeg && suspicion.isFounded(after: loaded, of: bytes)
            isDamaged = format == .tiff && suspicion.isOfParts
        } catch {
            throw Self.failure(error, bytes, format)
        }
        if isSuspicious, let damage = JPEGDamage.description(of: bytes) {
            throw ImagingError(code: .badImage, message: "The jpeg is damaged: \(damage)")
        }
        if isDamaged { throw ImagingError(code: .badImage, message: "The tiff has damaged JPEG data.") }
        if format == .tiff, let objection = TIFFDeflate(ByteReader(bytes))?.objection { throw objection }
        do throws(VipsFailure) {
            return try decoded.upright().inWebColours(keepingProfile: keepingProfile).inMemory()
        } catch {
            throw error.error(.transform, "The colours could not be converted")
        }
    }

    /// What brings the frames of an animation to sRGB; nil where there is nothing to do.
    var frameColours: FrameColours? {
        if case .library(_, let header) = pixels { FrameColours(header) } else { nil }
    }

    /// What an animation keeps of it.
    func animationMetadata(_ policy: MetadataPolicy) throws(ImagingError) -> AnimationMetadata {
        guard case .library(let format, _) = pixels else { return AnimationMetadata() }
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
        switch pixels {
        case .registered: true
        case .library(let format, let header):
            header.orientation <= 1 && header.isWithin(policy) && !Extras(policy: policy).areIn(bytes, format)
        }
    }

    private func loaded(
        _ opened: Picture, _ format: ImageFormat, for size: PixelSize, isShared: Bool,
    ) throws(VipsFailure) -> Picture {
        let scale = DecodeScale(from: opened.storedSize, to: size, format: format, isShared: isShared)
        return scale == .full ? opened : try Picture(of: bytes, as: format, scale: scale)
    }

    private static func coder(
        for bytes: UnsafeRawBufferPointer, _ coders: CoderRegistry,
    ) throws(ImagingError) -> Coder {
        if let coder = coders.coder(for: bytes) { return coder }
        if bytes.isEmpty { throw ImagingError(code: .badImage, message: "The file is empty.") }
        guard ImageFormat.mayBegin(bytes) else { throw HeaderInspector.notAnImage }
        throw ImagingError(code: .truncated, message: "The file ends within the signature of an image.")
    }

    private static func failure(
        _ failure: VipsFailure, _ bytes: UnsafeRawBufferPointer, _ format: ImageFormat,
    ) -> ImagingError {
        if format == .jxl, let objection = JXLAnimation.objection(to: bytes, ImageLimits()) { return objection }
        return switch Structure(of: bytes, as: format) {
        case .endsEarly: failure.error(.truncated, "The \(format.rawValue) ends before its picture does")
        case .whole: failure.error(.badImage, "The \(format.rawValue) cannot be decoded")
        }
    }
}

extension DecodeScale {
    /// The smallest a decoder should deliver for a picture of `from` pixels that is going to be `to`.
    ///
    /// libjpeg's scaled blocks are sharper than they should be, so a part of the shrinking is left for the resize. For
    /// one variant that is at least a factor of two, the rule of libvips' own thumbnails, and the pixels are the same
    /// as theirs. Several variants take 1.25, which saves a fifth of their time together; their pixels are within
    /// 1 % of the others on average. libwebp's scaling is meant to be final.
    init(from: PixelSize, to: PixelSize, format: ImageFormat, isShared: Bool) {
        let shrink = min(Double(from.width) / Double(to.width), Double(from.height) / Double(to.height))
        let spare = isShared ? 1.25 : 2
        switch format {
        case .jpeg where shrink >= 8 * spare: self = .jpeg(8)
        case .jpeg where shrink >= 4 * spare: self = .jpeg(4)
        case .jpeg where shrink >= 2 * spare: self = .jpeg(2)
        case .webp where shrink > 1: self = .webp(1 / shrink)
        default: self = .full
        }
    }
}
