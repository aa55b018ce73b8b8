/// A format that is decoded here; ``VariantSpec/Output`` has those that are written.
public enum ImageFormat: String, CaseIterable, Codable, Hashable, Sendable {
    case jpeg, png, webp, gif, tiff, heic, avif, jxl, bmp

    public var mediaType: String { "image/\(rawValue)" }

    /// Without the dot.
    public var fileExtension: String {
        switch self {
        case .jpeg: "jpg"
        case .tiff: "tif"
        case .png, .webp, .gif, .heic, .avif, .jxl, .bmp: rawValue
        }
    }

    /// The format whose whole signature `prefix` begins with, or nil.
    ///
    /// Twelve bytes are enough, eighteen for BMP, but for an ISO container of the neutral brands `mif1` and `msf1`: whether that is HEIC
    /// or AVIF stands further on in its first box, and HEIC is assumed until that is seen.
    public static func sniff(_ prefix: UnsafeRawBufferPointer) -> ImageFormat? {
        let reader = ByteReader(prefix)
        if reader.has([0xFF, 0xD8, 0xFF], at: 0) { return .jpeg }
        if reader.has(pngSignature, at: 0) { return .png }
        if reader.has("GIF87a", at: 0) || reader.has("GIF89a", at: 0) { return .gif }
        if reader.has("RIFF", at: 0), reader.has("WEBP", at: 8) { return .webp }
        if tiffSignatures.contains(where: { reader.has($0, at: 0) }) { return .tiff }
        if reader.has([0xFF, 0x0A], at: 0) || reader.has(jxlSignature, at: 0) { return .jxl }
        if BMPHeader.begins(reader) { return .bmp }
        if reader.has("ftyp", at: 4) { return FileTypeBox(reader)?.format }
        return nil
    }

    /// Whether these bytes, too few to say, may yet turn out to be an image.
    static func mayBegin(_ prefix: UnsafeRawBufferPointer) -> Bool {
        let starts: [[UInt8]] = [[0xFF, 0xD8, 0xFF], pngSignature, Array("GIF8".utf8), Array("RIFF".utf8)]
        let reader = ByteReader(prefix)
        if reader.has("BM", at: 0) { return prefix.count < BMPHeader.signatureLength }
        guard prefix.count < 12 else { return false }
        return (starts + tiffSignatures).contains { reader.has(Array($0.prefix(prefix.count)), at: 0) }
            || reader.has(Array("ftyp".utf8.prefix(max(0, prefix.count - 4))), at: min(4, prefix.count))
    }

    static let pngSignature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    /// JPEG XL in its container; bare codestreams begin with FF 0A. Source: ISO/IEC 18181-2, 9.
    private static let jxlSignature: [UInt8] = [
        0x00, 0x00, 0x00, 0x0C, 0x4A, 0x58, 0x4C, 0x20, 0x0D, 0x0A, 0x87, 0x0A,
    ]

    /// Both byte orders, classic (42) and BigTIFF (43).
    private static let tiffSignatures: [[UInt8]] = [
        [0x49, 0x49, 0x2A, 0x00], [0x4D, 0x4D, 0x00, 0x2A], [0x49, 0x49, 0x2B, 0x00], [0x4D, 0x4D, 0x00, 0x2B],
    ]
}

/// The first box of an ISO base media file, which names its brands.
struct FileTypeBox {
    let major: String
    let compatible: [String]
    /// All of the box was there to be read.
    let isComplete: Bool

    /// Nil while even the major brand is missing.
    init?(_ reader: ByteReader) {
        guard reader.has("ftyp", at: 4), let size = reader.big(4, at: 0),
            let major = Self.brand(at: 8, reader)
        else { return nil }
        // A box of hundreds of brands is nobody's image; reading stops there rather than wait for it.
        let end = min(max(size, 16), 16 + 4 * 64)
        self.major = major
        compatible = stride(from: 16, to: end - 3, by: 4).compactMap { Self.brand(at: $0, reader) }
        isComplete = reader.count >= end
    }

    var format: ImageFormat? {
        if let format = Self.format(of: major) { return format }
        guard Self.neutral.contains(major) else { return nil }
        return compatible.lazy.compactMap(Self.format).first ?? .heic
    }

    /// Whether more bytes could still change ``format``.
    var isDecided: Bool {
        isComplete || !Self.neutral.contains(major) || compatible.contains { Self.format(of: $0) != nil }
    }

    private static let neutral: Set<String> = ["mif1", "msf1"]

    private static func format(of brand: String) -> ImageFormat? {
        switch brand {
        case "heic", "heix", "hevc", "hevx", "heim", "heis": .heic
        case "avif", "avis": .avif
        default: nil
        }
    }

    private static func brand(at offset: Int, _ reader: ByteReader) -> String? {
        guard reader.contains(offset, length: 4) else { return nil }
        return String(decoding: reader.bytes[offset..<(offset + 4)], as: UTF8.self)
    }
}
