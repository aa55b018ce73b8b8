import ImageFiles
import Variants

extension ImageFormat {
    /// The only list of the formats that libraries decode; for any other format its ``FormatHeader`` provides
    /// the decoder.
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
        default: CodedFormat(header: header)
        }
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
        // The language of variants names as output only formats that have a saver.
        guard let saver = format.imageFormat.definition.saver else { preconditionFailure("\(format) isn't written") }
        self.init(format, saver, quality: quality, options)
    }
}
