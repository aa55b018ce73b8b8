internal import CVips
internal import Core
import ImageFiles

/// A source with its header read; decodes its pixels at the needed size.
struct DecodedSource {
    let facts: ImageFacts
    /// Nil for a still.
    let animation: AnimationFacts?
    /// The bytes that the decoder gets.
    let bytes: UnsafeRawBufferPointer
    /// The bytes as the origin sent them.
    private let original: UnsafeRawBufferPointer
    /// Owns the bytes if they differ from the original ones.
    private let opened: OpenedFile?
    let reading: Reading
    let limits: ImageLimits
    let isAlone: Bool
    /// Whether to accept the visible part of a damaged file.
    let isLenient: Bool
    /// The number of frames, if the format decodes only the first frame; nil for a still.
    let frameCount: Int?
    /// Whether the header's picture has been decoded, since its rows can be read once.
    let opening = Opening()

    /// The decoder: a library, a built-in coder or a registered one.
    enum Reading {
        case library(any FormatDefinition, header: Picture)
        case coder(any ImageCoder, ImageHeader)
    }

    /// Reads the header and checks it against the limits.
    ///
    /// - Parameters:
    ///   - isAlone: whether no other thread of this process uses libvips.
    ///   - isLenient: whether the file is known to be damaged, and its visible part is accepted.
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

    /// The coder that decodes it; nil if a library does.
    var coder: (any ImageCoder)? {
        if case .coder(let coder, _) = reading { coder } else { nil }
    }

    /// The frames of an animation, from the first on, upright.
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
                if let frames = try format.frames(bytes, limits: limits, isLenient: isLenient) {
                    return CheckedFrames(frames, replace: blamingMemory)
                }
            } catch {
                throw blamingMemory(error)
            }
        }
        throw Failure(.transform, "Animated \(facts.formatName) is not supported.")
    }

    /// Converts the frames of an animation to sRGB; nil if they need no conversion.
    var frameColours: FrameColours? {
        if case .library(_, let header) = reading { FrameColours(header) } else { nil }
    }

    /// The metadata that an animated variant keeps.
    func animationMetadata(_ policy: MetadataPolicy) throws(Failure) -> AnimationMetadata {
        guard case .library(let format, _) = reading else { return AnimationMetadata() }
        do throws(VipsFailure) {
            return try AnimationMetadata(of: Picture(of: bytes, as: format), policy)
        } catch {
            throw blamingMemory(format.error(error, bytes))
        }
    }

    /// A small size that is large enough for the placeholders.
    var glimpse: PixelSize {
        PixelSize(width: facts.width, height: facts.height).scaledDown(toBytes: 4 * Miniature.side * Miniature.side)
    }

    /// Size of the original file in bytes.
    var byteCount: Int { original.count }

    /// Lends the original bytes.
    func lend<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result { try body(original) }

    /// Whether the pixels are stored upright and in web colours, and the file has no more metadata than `policy` keeps.
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

    /// Replaces a failure that lack of memory may have caused by the failure of our own limit.
    func blamingMemory(_ error: Failure) -> Failure {
        guard error.failureClass == .badImage || error.failureClass == .tooManyPixels,
            case .library(let format, _) = reading
        else { return error }
        let cost = format.cost(ByteReader(bytes), limits: limits).bytes
        let size = PixelSize(width: facts.width, height: facts.height)
        return MemoryShortage.objection(format.name, size, each: format.bytesPerPixel, cost: cost) ?? error
    }
}

extension Coder {
    /// Nil if a library decodes it.
    fileprivate func ownCoder(takesBeginning: Bool) -> (any ImageCoder)? {
        switch self {
        case .registered(let coder): coder
        case .builtIn(let format): format.definition.coder(takesBeginning: takesBeginning)
        }
    }

    /// Nil if only its coder knows the cost.
    fileprivate func cost(of bytes: UnsafeRawBufferPointer, limits: ImageLimits) -> DecoderCost? {
        if case .builtIn(let format) = self { DecoderCost(bytes, as: format, limits: limits) } else { nil }
    }
}
