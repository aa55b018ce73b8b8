internal import CVips
import Variants

/// A format with all that its encoder is told.
struct Encoding {
    let format: VariantSpec.Output
    let saver: any FormatSaver
    /// 1 to 100; of no meaning to formats without one.
    var quality: Int
    /// 2 to 256; of a GIF.
    var colours: Int
    let options: VariantOptions

    init(_ format: VariantSpec.Output, _ saver: any FormatSaver, quality: Int?, _ options: VariantOptions) {
        self.format = format
        self.saver = saver
        self.options = options
        colours = options.whole(.colours) ?? ColourTable.maxCount
        self.quality = quality ?? format.defaultQuality ?? 100
        // What loses nothing has no quality; libwebp would take it for an effort.
        if isLossless { self.quality = format.defaultQuality ?? 100 }
    }

    /// What is lowered for a smaller file, and the least that makes sense: a GIF's colours, others' quality. Nil where
    /// there is nothing to lower.
    var strength: (path: WritableKeyPath<Encoding, Int>, weakest: Int)? {
        if format == .gif { return (\Encoding.colours, 2) }
        guard format.defaultQuality != nil, !isLossless else { return nil }
        return (\Encoding.quality, 1)
    }

    /// Whether all pixels, or nearly all, come out as they are.
    var isLossless: Bool { options.areLossless(for: format) }

    var losesNothing: gboolean { options.flag(.lossless) ? 1 : 0 }
    var isProgressive: gboolean { options.flag(.progressive) ? 1 : 0 }

    var chroma: VipsForeignSubsample {
        // libvips would halve the colours of a lossless AVIF below its quality 90.
        if isLossless { return VIPS_FOREIGN_SUBSAMPLE_OFF }
        return switch options.word(.chroma) {
        case "420": VIPS_FOREIGN_SUBSAMPLE_ON
        case "444": VIPS_FOREIGN_SUBSAMPLE_OFF
        default: VIPS_FOREIGN_SUBSAMPLE_AUTO
        }
    }

    /// What libvips and libwebp take by default, unless named.
    func effort(pixels: Int) -> Int {
        if let efforts = format.efforts, let wanted = options.whole(.effort) {
            return min(max(wanted, efforts.lowerBound), efforts.upperBound)
        }
        return format.usualEffort ?? saver.usualEffort(pixels: pixels)
    }

    func effort(for picture: Picture) -> CInt { CInt(effort(pixels: picture.storedSize.pixels)) }
}
