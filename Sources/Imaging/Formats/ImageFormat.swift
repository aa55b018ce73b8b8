import Variants

/// A format that is decoded here; ``VariantSpec/Output`` has the formats that are written.
public enum ImageFormat: String, CaseIterable, Codable, Hashable, Sendable {
    case jpeg, png, webp, gif, tiff, heic, avif, jxl, bmp, qoi

    /// The only list of all formats.
    var definition: any FormatDefinition {
        switch self {
        case .jpeg: JPEGFormat()
        case .png: PNGFormat()
        case .webp: WebPFormat()
        case .gif: GIFFormat()
        case .tiff: TIFFFormat()
        case .heic: HEIFFormat.heic
        case .avif: HEIFFormat.avif
        case .jxl: JXLFormat()
        case .bmp: BMPFormat()
        case .qoi: QOIFormat()
        }
    }

    public var mediaType: String { definition.mediaType }

    /// Without the dot.
    public var fileExtension: String { definition.fileExtension }

    /// The format whose whole signature is at the beginning of `prefix`, or nil.
    ///
    /// Sixteen bytes are enough, and eighteen for BMP. An exception is an ISO container of the neutral brands `mif1`
    /// and `msf1`: a later brand in its first box says whether it is HEIC or AVIF, and HEIC is assumed until then.
    public static func sniff(_ prefix: UnsafeRawBufferPointer) -> ImageFormat? {
        let reader = ByteReader(prefix)
        return bySignature.first { $0.definition.begins(reader) }?.format
    }

    /// Formats in boxes come last, since another format's signature may stand before a box's name.
    private static let bySignature = {
        let all = allCases.map { (format: $0, definition: $0.definition) }
        return all.filter { !$0.definition.isInBoxes } + all.filter(\.definition.isInBoxes)
    }()

    /// Whether these bytes, which are too few to decide, may be the beginning of an image.
    static func mayBegin(_ prefix: UnsafeRawBufferPointer) -> Bool {
        let reader = ByteReader(prefix)
        return allCases.contains { $0.definition.mayBegin(reader) }
    }
}

/// The picture with which each format is tested.
enum SampleImage {
    static func bytes(of format: ImageFormat) -> [UInt8] { format.definition.sampleBytes }
}

extension VariantSpec.Output {
    /// Every written format can be read too, under the same name.
    var imageFormat: ImageFormat {
        guard let format = ImageFormat(rawValue: rawValue) else { preconditionFailure("\(self) can't be read") }
        return format
    }
}

extension Picture {
    convenience init(
        of bytes: UnsafeRawBufferPointer, as format: ImageFormat, scale: DecodeScale = .full, isLenient: Bool = false,
    ) throws(VipsFailure) {
        try self.init(of: bytes, as: format.definition, scale: scale, isLenient: isLenient)
    }
}

extension Encoding {
    init(_ format: VariantSpec.Output, quality: Int?, _ options: VariantOptions) {
        guard let saver = format.imageFormat.definition.saver else { preconditionFailure("\(format) isn't written") }
        self.init(format, saver, quality: quality, options)
    }
}
