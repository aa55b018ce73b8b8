/// Judges an image by its first bytes while it is still arriving, so that a transfer that is going to be refused ends
/// there and then.
///
/// TIFF, HEIC, AVIF and JPEG XL may keep their dimensions anywhere in the file: where they have not come with the first
/// bytes, a file is accepted by its signature, and ``Transformer`` holds them to the limit before it decodes a pixel.
public struct HeaderInspector: Sendable {
    public enum Verdict: Sendable {
        /// More bytes are needed to say.
        case undecided
        /// With the format's name.
        case acceptable(String)
        case refused(ImagingError)
    }

    private let limits: ImageLimits
    private let coders: CoderRegistry

    public init(limits: ImageLimits, coders: CoderRegistry = CoderRegistry()) {
        self.limits = limits
        self.coders = coders
    }

    /// - Parameter prefix: the image from its first byte on, as much as has arrived. Longer prefixes of the same image
    ///   never turn `refused` into anything else.
    public func inspect(_ prefix: UnsafeRawBufferPointer) -> Verdict {
        let reader = ByteReader(prefix)
        switch coders.coder(for: prefix) {
        case nil: return prefix.count < coders.signatureLength ? .undecided : .refused(Self.notAnImage)
        case .registered(let coder)?: return judge(prefix, coder)
        case .library(let format)?: return judge(reader, format)
        }
    }

    private func judge(_ prefix: UnsafeRawBufferPointer, _ coder: any ImageCoder) -> Verdict {
        do throws(ImagingError) {
            return try coder.checkedHeader(of: prefix, limits: limits) == nil ? .undecided : .acceptable(coder.name)
        } catch {
            return .refused(error)
        }
    }

    private func judge(_ reader: ByteReader, _ format: ImageFormat) -> Verdict {
        if let size = Self.size(reader, format) { return judge(format, size) }
        guard format == .heic || format == .avif else { return .acceptable(format.rawValue) }
        let isDecided = FileTypeBox(reader)?.isDecided ?? false
        return isDecided ? .acceptable(format.rawValue) : .undecided
    }

    /// The size by the header, as stored. Nil for formats that may keep it anywhere, and for BMP, which has a coder of
    /// its own.
    static func size(_ reader: ByteReader, _ format: ImageFormat) -> HeaderFinding? {
        switch format {
        case .jpeg: JPEGHeader.size(reader)
        case .png: pngSize(reader)
        case .gif: GIFBlocks.canvas(reader)
        case .webp: WebPHeader.size(reader)
        case .jxl: JXLHeader.size(reader).map { .size(width: $0.width, height: $0.height) }
        case .tiff, .heic, .avif, .bmp: nil
        }
    }

    static let notAnImage = ImagingError(
        code: .notAnImage,
        message: "The first bytes are not those of a JPEG, PNG, WebP, GIF, TIFF, HEIC, AVIF, JPEG XL or BMP image.",
    )

    private func judge(_ format: ImageFormat, _ finding: HeaderFinding) -> Verdict {
        switch finding {
        case .needsMore: return .undecided
        case .broken(let why): return .refused(ImagingError(code: .badImage, message: why))
        case .size(let width, let height):
            if let objection = limits.objection(width: width, height: height) { return .refused(objection) }
            return .acceptable(format.rawValue)
        }
    }

    // PNG, third edition, section 11.2.1: IHDR comes first, is 13 bytes long and begins with width and height.
    private static func pngSize(_ reader: ByteReader) -> HeaderFinding {
        guard reader.contains(8, length: 16) else { return .needsMore }
        guard reader.has("IHDR", at: 12), reader.big(4, at: 8) == 13,
            let width = reader.big(4, at: 16), let height = reader.big(4, at: 20)
        else { return .broken("The PNG does not begin with an IHDR chunk.") }
        return .size(width: width, height: height)
    }
}

/// What the bytes so far say of the dimensions.
enum HeaderFinding: Equatable {
    case needsMore
    case broken(String)
    case size(width: Int, height: Int)
}

enum WebPHeader {
    // RFC 9649, section 2: RIFF, size, WEBP, and the first chunk at 12 is VP8X, VP8L or VP8.
    static func size(_ reader: ByteReader) -> HeaderFinding {
        guard reader.contains(12, length: 4) else { return .needsMore }
        if reader.has("VP8X", at: 12) { return extended(reader) }
        if reader.has("VP8L", at: 12) { return lossless(reader) }
        if reader.has("VP8 ", at: 12) { return lossy(reader) }
        return .broken("The WebP does not begin with a VP8, VP8L or VP8X chunk.")
    }

    private static func extended(_ reader: ByteReader) -> HeaderFinding {
        guard let width = reader.little(3, at: 24), let height = reader.little(3, at: 27) else { return .needsMore }
        return .size(width: width + 1, height: height + 1)
    }

    private static func lossless(_ reader: ByteReader) -> HeaderFinding {
        guard let signature = reader.byte(at: 20), let bits = reader.little(4, at: 21) else { return .needsMore }
        guard signature == 0x2F else { return .broken("The WebP's lossless chunk has a wrong signature.") }
        return .size(width: (bits & 0x3FFF) + 1, height: ((bits >> 14) & 0x3FFF) + 1)
    }

    private static func lossy(_ reader: ByteReader) -> HeaderFinding {
        guard let width = reader.little(2, at: 26), let height = reader.little(2, at: 28) else { return .needsMore }
        guard reader.has([0x9D, 0x01, 0x2A], at: 23) else { return .broken("The WebP's key frame has no start code.") }
        return .size(width: width & 0x3FFF, height: height & 0x3FFF)
    }
}

enum JPEGHeader {
    // ITU-T T.81, annex B: segments of marker, length and payload until the frame header (SOF).
    static func size(_ reader: ByteReader) -> HeaderFinding {
        var offset = 2
        while let marker = nextMarker(at: &offset, reader) {
            switch marker {
            case 0xC0...0xCF where ![0xC4, 0xC8, 0xCC].contains(marker): return frame(at: offset, reader)
            case 0xD9, 0xDA: return .broken("The JPEG has pixels or an end before its frame header.")
            case 0x00, 0x01, 0xD0...0xD8: continue
            default:
                guard let length = reader.big(2, at: offset) else { return .needsMore }
                guard length >= 2 else { return .broken("The JPEG has a segment shorter than its own length.") }
                offset += length
            }
        }
        return .needsMore
    }

    /// The next marker's second byte, with `offset` moved past it; nil at the end of what is there.
    ///
    /// libjpeg skips stray bytes between segments with a warning, so they are no ground to refuse.
    static func nextMarker(at offset: inout Int, _ reader: ByteReader) -> UInt8? {
        while let byte = reader.byte(at: offset), byte != 0xFF { offset += 1 }
        while let byte = reader.byte(at: offset), byte == 0xFF { offset += 1 }
        defer { offset += 1 }
        return reader.byte(at: offset)
    }

    private static func frame(at offset: Int, _ reader: ByteReader) -> HeaderFinding {
        guard let height = reader.big(2, at: offset + 3), let width = reader.big(2, at: offset + 5) else {
            return .needsMore
        }
        return .size(width: width, height: height)
    }
}
