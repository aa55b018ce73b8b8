public import Core
public import SystemPackage

/// Checks an image by its first bytes while it is still arriving, so that the transfer of a refused image ends
/// immediately.
///
/// TIFF, HEIC, AVIF and JPEG XL may keep their dimensions anywhere in the file. If the first bytes do not have them, a
/// file is accepted by its signature, and ``Transformer`` checks the limit before it decodes a pixel.
public struct HeaderInspector: Sendable {
    private let limits: ImageLimits
    private let coders: CoderRegistry

    public init(limits: ImageLimits, coders: CoderRegistry = CoderRegistry()) {
        self.limits = limits
        self.coders = coders
    }

    /// - Parameter prefix: the image's bytes so far, from the first on. More bytes of the same image never change
    ///   `refuse` into another verdict.
    public func inspect(_ prefix: UnsafeRawBufferPointer) -> BodyVerdict {
        let reader = ByteReader(prefix)
        switch coders.coder(for: prefix) {
        case nil: return prefix.count < coders.signatureLength ? .undecided : .refuse(Self.notAnImage)
        case .registered(let coder)?: return judge(prefix, coder)
        case .builtIn(let format)?:
            if let coder = format.header.coder(takesBeginning: false) { return judge(prefix, coder) }
            return judge(reader, format)
        }
    }

    /// The size of an acceptable image, if its first bytes contain it, before it is turned upright.
    public func size(_ prefix: UnsafeRawBufferPointer) -> (width: Int, height: Int)? {
        let registered: (any ImageCoder)?
        switch coders.coder(for: prefix) {
        case nil: return nil
        case .registered(let coder)?: registered = coder
        case .builtIn(let format)?:
            if let size = format.header.size(ByteReader(prefix))?.pixelSize { return (size.width, size.height) }
            registered = format.header.coder(takesBeginning: false)
        }
        // Best effort: `inspect` has reported the error.
        let header = try? registered?.checkedHeader(of: prefix, limits: limits)
        return header.map { ($0.width, $0.height) }
    }

    private func judge(_ prefix: UnsafeRawBufferPointer, _ coder: any ImageCoder) -> BodyVerdict {
        do throws(Failure) {
            return try coder.checkedHeader(of: prefix, limits: limits) == nil ? .undecided : .acceptAs(coder.name)
        } catch {
            return .refuse(error)
        }
    }

    private func judge(_ reader: ByteReader, _ format: ImageFormat) -> BodyVerdict {
        let header = format.header
        if let size = header.size(reader) { return judge(format, size) }
        return header.isDecided(reader) ? .acceptAs(format.rawValue) : .undecided
    }

    private static let titles = ImageFormat.allCases.map(\.header.title)

    package static let notAnImage = Failure(
        .notAnImage,
        "The first bytes are not those of a \(titles.dropLast().joined(separator: ", ")) or \(titles.last ?? "") image."
    )

    private func judge(_ format: ImageFormat, _ finding: HeaderFinding) -> BodyVerdict {
        switch finding {
        case .needsMore: return .undecided
        case .broken(let why): return .refuse(Failure(.badImage, why))
        case .size(let width, let height):
            if let objection = limits.objection(width: width, height: height) { return .refuse(objection) }
            return .acceptAs(format.rawValue)
        }
    }
}

/// Estimates the memory that a decoder needs besides the rows it delivers, so that several large pictures are not
/// decoded at once.
public struct DecoderEstimate: Sendable {
    private let limits: ImageLimits

    public init(limits: ImageLimits) {
        self.limits = limits
    }

    /// - Returns: bytes; 0 for a picture that is decoded row by row, and for one that cannot be read.
    public func bytes(_ source: FileDescriptor) -> Int {
        // Best effort: the decoder meets the same error and reports it.
        let cost = try? SourceMapping(source).lend { bytes throws(Failure) in
            ImageFormat.sniff(bytes).map { DecoderCost(bytes, as: $0, limits: limits).bytes } ?? 0
        }
        return cost ?? 0
    }
}

extension DecoderCost {
    package init(_ bytes: UnsafeRawBufferPointer, as format: ImageFormat, limits: ImageLimits) {
        self = format.header.cost(ByteReader(bytes), limits: limits)
    }
}
