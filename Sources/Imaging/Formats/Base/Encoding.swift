internal import CVips
import ImageFiles
import Variants

/// A format with the settings of its encoder.
struct Encoding {
    let format: VariantSpec.Output
    let saver: any FormatSaver
    /// 1 to 100; ignored by formats without a quality.
    var quality: Int
    /// 2 to 256; for GIF.
    var colours: Int
    let options: VariantOptions

    init(_ format: VariantSpec.Output, _ saver: any FormatSaver, quality: Int?, _ options: VariantOptions) {
        self.format = format
        self.saver = saver
        self.options = options
        colours = options.whole(.colours) ?? ColourTable.maxCount
        self.quality = quality ?? format.defaultQuality ?? 100
        // Lossless encoding has no quality; libwebp would use it as an effort.
        if isLossless { self.quality = format.defaultQuality ?? 100 }
    }

    /// The setting that is lowered for a smaller file, and its lowest useful value: a GIF's number of colours, the
    /// quality of other formats. Nil if the format has neither.
    var strength: (path: WritableKeyPath<Encoding, Int>, weakest: Int)? {
        if format == .gif { return (\Encoding.colours, 2) }
        guard format.defaultQuality != nil, !isLossless else { return nil }
        return (\Encoding.quality, 1)
    }

    /// Whether the encoding is lossless or near-lossless.
    var isLossless: Bool { options.areLossless(for: format) }

    var losesNothing: gboolean { options.flag(.lossless) ? 1 : 0 }
    var isProgressive: gboolean { options.flag(.progressive) ? 1 : 0 }

    var chroma: VipsForeignSubsample {
        // Below quality 90, libvips would halve the colour resolution of a lossless AVIF.
        if isLossless { return VIPS_FOREIGN_SUBSAMPLE_OFF }
        return switch options.word(.chroma) {
        case "420": VIPS_FOREIGN_SUBSAMPLE_ON
        case "444": VIPS_FOREIGN_SUBSAMPLE_OFF
        // Few decoders of HEIC know colours at full resolution.
        default: format == .heic ? VIPS_FOREIGN_SUBSAMPLE_ON : VIPS_FOREIGN_SUBSAMPLE_AUTO
        }
    }

    /// The defaults of libvips and libwebp, unless the variant names an effort.
    func effort(pixels: Int) -> Int {
        if let efforts = format.efforts, let wanted = options.whole(.effort) {
            return min(max(wanted, efforts.lowerBound), efforts.upperBound)
        }
        return format.usualEffort ?? saver.usualEffort(pixels: pixels)
    }

    func effort(for picture: Picture) -> CInt { CInt(effort(pixels: picture.storedSize.pixels)) }
}
