extension VariantSpec.Output {
    /// The formats for still pictures: all but GIF.
    static var stillFormats: [VariantSpec.Output] { allCases.filter { $0 != .gif } }

    /// The usual quality for the web; SDWebImage encodes at the highest. Nil if the format has no quality.
    package var defaultQuality: Int? {
        switch self {
        case .jpeg, .webp: 80
        case .avif, .heic: 55
        case .jxl: 75
        case .png, .gif, .tiff: nil
        }
    }

    /// libjpeg's `JPEG_MAX_DIMENSION`, libwebp's `WEBP_MAX_DIMENSION`, libvips' limit for HEIF; GIF's fields have 16 bits.
    package var largestSide: Int {
        switch self {
        case .jpeg: 65_500
        case .webp: 16_383
        case .avif, .heic: 16_384
        case .png, .jxl, .gif, .tiff: 65_535
        }
    }

    /// Whether the format keeps an animated source animated.
    package var isAnimated: Bool { [.webp, .gif, .png, .avif, .jxl].contains(self) }

    package var hasAlpha: Bool { self != .jpeg }

    /// The efforts of the format's encoder, from fast to small; nil if it has none.
    package var efforts: ClosedRange<Int>? {
        switch self {
        case .webp: 0...6
        case .avif: 0...9
        case .jxl: 3...9
        case .png, .gif: 1...10
        case .jpeg, .tiff, .heic: nil
        }
    }

    /// The effort if none is given. AVIF's and JPEG XL's depend on the picture's size, see ``Encoding``.
    package var usualEffort: Int? {
        switch self {
        case .webp: 4
        case .png, .gif: 7
        case .avif, .jxl, .jpeg, .tiff, .heic: nil
        }
    }

    /// Reads the format's name or the usual file extension.
    init?(word: String) {
        switch word {
        case "apng": self = .png
        case "jpg": self = .jpeg
        case "tif": self = .tiff
        default: self.init(rawValue: word)
        }
    }

    /// libvips keeps colours at full resolution from this quality on, unless `chroma` is set.
    package static let fullChromaQuality = 90
}
