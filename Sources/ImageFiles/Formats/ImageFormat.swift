/// A format that is decoded here; ``VariantSpec/Output`` has the formats that are written.
public enum ImageFormat: String, CaseIterable, Codable, Hashable, Sendable {
    case jpeg, png, webp, gif, tiff, heic, avif, jxl, bmp, qoi

    /// The only list of all formats.
    package var header: any FormatHeader {
        switch self {
        case .jpeg: JPEGHeader()
        case .png: PNGHeader()
        case .webp: WebPHeader()
        case .gif: GIFHeader()
        case .tiff: TIFFHeader()
        case .heic: HEIFHeader.heic
        case .avif: HEIFHeader.avif
        case .jxl: JXLHeader()
        case .bmp: BMPFormatHeader()
        case .qoi: QOIFormat()
        }
    }

    public var mediaType: String { header.mediaType }

    /// Without the dot.
    public var fileExtension: String { header.fileExtension }

    /// The format whose whole signature is at the beginning of `prefix`, or nil.
    ///
    /// Sixteen bytes are enough, and eighteen for BMP. An exception is an ISO container of the neutral brands `mif1`
    /// and `msf1`: a later brand in its first box says whether it is HEIC or AVIF, and HEIC is assumed until then.
    public static func sniff(_ prefix: UnsafeRawBufferPointer) -> ImageFormat? {
        let reader = ByteReader(prefix)
        return bySignature.first { $0.header.begins(reader) }?.format
    }

    /// Formats in boxes come last, since another format's signature may stand before a box's name.
    private static let bySignature = {
        let all = allCases.map { (format: $0, header: $0.header) }
        return all.filter { !$0.header.isInBoxes } + all.filter(\.header.isInBoxes)
    }()

    /// Whether these bytes, which are too few to decide, may be the beginning of an image.
    package static func mayBegin(_ prefix: UnsafeRawBufferPointer) -> Bool {
        let reader = ByteReader(prefix)
        return allCases.contains { $0.header.mayBegin(reader) }
    }
}
