internal import CVips
internal import Core

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
    let reading: Reading
    let limits: ImageLimits
    let isAlone: Bool
    /// What can be seen of a damaged file is taken.
    let isLenient: Bool
    /// Of a file whose format decodes the first frame alone; nil for a still.
    let frameCount: Int?
    /// Whether the header's picture has been decoded: its rows come once.
    let opening = Opening()

    /// What decodes it: a library, or a coder of our own or the program's.
    enum Reading {
        case library(any FormatDefinition, header: Picture)
        case coder(any ImageCoder, ImageHeader)
    }

    /// Reads the header and holds it to the limits.
    ///
    /// - Parameters:
    ///   - isAlone: no other thread of this process uses libvips.
    ///   - isLenient: the file is known to be damaged, and what can be seen of it is wanted.
    init(
        _ bytes: UnsafeRawBufferPointer, limits: ImageLimits, coders: CoderRegistry = CoderRegistry(),
        isAlone: Bool = false, isLenient: Bool = false,
    ) throws(Failure) {
        self.isAlone = isAlone
        self.isLenient = isLenient
        original = bytes
        self.limits = limits
        let found = try Self.coder(for: bytes, coders)
        if let coder = found.ownCoder(takesBeginning: isLenient) {
            guard let header = try coder.checkedHeader(of: bytes, limits: limits) else {
                throw Failure(.truncated, "The \(coder.name) ends within its header.")
            }
            if let objection = found.cost(of: bytes, limits: limits)?.objection(limits) { throw objection }
            reading = .coder(coder, header)
            (self.bytes, opened, frameCount) = (bytes, nil, nil)
            animation = try (coder as? any AnimationCoder)?.checkedAnimation(in: bytes, header)
            facts = ImageFacts(
                formatName: coder.name, width: header.width, height: header.height, frames: animation?.frames ?? 1,
                hasAlpha: header.hasAlpha)
            return
        }
        guard case .builtIn(let format) = found else { throw HeaderInspector.notAnImage }
        let definition = format.definition
        let opened = try OpenedFile(bytes, format, limits: limits, coders: coders, isLenient: isLenient)
        let header = opened.header
        reading = .library(definition, header: header)
        (self.bytes, self.opened) = (opened.bytes, opened)
        frameCount = definition.frameCount(opened.bytes)
        let moving = definition.animation(opened.bytes)
        animation = moving.flatMap { $0.isAnimation ? $0 : nil }
        let hasCanvas = moving.map { $0.isAnimation || $0.isCanvasOfStill } ?? false
        let stored = moving.flatMap { hasCanvas ? $0.canvas : nil } ?? header.storedSize
        let size = header.isTurnedByAQuarter ? stored.transposed : stored
        if let objection = limits.objection(width: size.width, height: size.height) { throw objection }
        facts = ImageFacts(
            formatName: format.rawValue, width: size.width, height: size.height,
            frames: animation?.frames ?? frameCount ?? header.frames, hasAlpha: header.hasAlpha)
    }

    /// The coder that reads it; nil where a library does.
    var coder: (any ImageCoder)? {
        if case .coder(let coder, _) = reading { coder } else { nil }
    }

    /// The frames of what is an animation, from the first on, upright.
    ///
    /// - Throws: class `too-many-pixels`, `truncated` or `bad-image`.
    func frames(limits: ImageLimits) throws(Failure) -> any FrameSource {
        let frames = try storedFrames(limits: limits)
        guard case .library(_, let header) = reading, header.orientation > 1 else { return frames }
        return try UprightFrames(frames, orientation: header.orientation)
    }

    private func storedFrames(limits: ImageLimits) throws(Failure) -> any FrameSource {
        switch reading {
        case .coder(let coder, _):
            if let coder = coder as? any AnimationCoder, let animation {
                return try RegisteredFrameSource(coder, animation, bytes: bytes, limits: limits)
            }
        case .library(let format, _):
            do throws(Failure) {
                if let frames = try format.frames(bytes, limits: limits, isLenient: isLenient) { return frames }
            } catch {
                throw judged(error)
            }
        }
        throw Failure(.transform, "Animated \(facts.formatName) is not supported.")
    }

    /// What brings the frames of an animation to sRGB; nil where there is nothing to do.
    var frameColours: FrameColours? {
        if case .library(_, let header) = reading { FrameColours(header) } else { nil }
    }

    /// What an animation keeps of it.
    func animationMetadata(_ policy: MetadataPolicy) throws(Failure) -> AnimationMetadata {
        guard case .library(let format, _) = reading else { return AnimationMetadata() }
        do throws(VipsFailure) {
            return try AnimationMetadata(of: Picture(of: bytes, as: format), policy)
        } catch {
            throw judged(format.error(error, bytes))
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
        guard case .library(let format, let header) = reading else { return true }
        guard header.orientation <= 1, header.isWithin(policy) else { return false }
        return policy.keepsAll && policy.keepsCopyright || !format.hasExtras(ByteReader(original), policy)
    }

    private static func coder(
        for bytes: UnsafeRawBufferPointer, _ coders: CoderRegistry,
    ) throws(Failure) -> Coder {
        if let coder = coders.coder(for: bytes) { return coder }
        if bytes.isEmpty { throw Failure(.badImage, "The file is empty.") }
        guard ImageFormat.mayBegin(bytes) else { throw HeaderInspector.notAnImage }
        throw Failure(.truncated, "The file ends within the signature of an image.")
    }

    /// A failure that may be for want of memory is our limit's, and not the file's fault.
    func judged(_ error: Failure) -> Failure {
        guard error.failureClass == .badImage, case .library(let format, _) = reading else { return error }
        let cost = format.cost(ByteReader(bytes), limits: limits).bytes
        let size = PixelSize(width: facts.width, height: facts.height)
        return MemoryShortage.objection(format.name, size, each: format.bytesPerPixel, cost: cost) ?? error
    }
}

extension Coder {
    /// Nil where a library decodes it.
    fileprivate func ownCoder(takesBeginning: Bool) -> (any ImageCoder)? {
        switch self {
        case .registered(let coder): coder
        case .builtIn(let format): format.definition.coder(takesBeginning: takesBeginning)
        }
    }

    /// Nil where only its coder knows it.
    fileprivate func cost(of bytes: UnsafeRawBufferPointer, limits: ImageLimits) -> DecoderCost? {
        if case .builtIn(let format) = self { DecoderCost(bytes, as: format, limits: limits) } else { nil }
    }
}
