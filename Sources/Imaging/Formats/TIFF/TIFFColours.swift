internal import Core
import ImageFiles

/// The meaning of the samples of a TIFF's first picture, if libvips delivers them as stored.
///
/// TIFF 6.0: PhotometricInterpretation (262) in section 8, InkSet (332) in section 16, YCbCr in sections 20 and 21.
struct TIFFColours {
    /// The conversion of luma and two differences to red, green and blue; nil for other samples.
    private(set) var yCbCr: YCbCrColours?
    /// Why the samples cannot be converted.
    private(set) var objection: Failure?

    init(_ directory: TIFFDirectory) {
        // Without it libvips fails.
        guard let photometric = directory.value(of: 262) else { return }
        let samples = directory.value(of: 277) ?? 1
        switch photometric {
        case 0...3, 8: break
        case 5:
            // Four inks that are cyan, magenta, yellow and black.
            if directory.value(of: 332) ?? 1 != 1 || samples < 4 { objection = Self.refusal("inks other than CMYK") }
        // libjpeg converts them.
        case 6 where [6, 7].contains(directory.value(of: 259)): break
        case 6:
            // libtiff reads no other number of samples, and confuses planes.
            let isPlain = samples == 3 && directory.value(of: 284) ?? 1 == 1
            yCbCr = isPlain ? YCbCrColours(directory) : nil
            if yCbCr == nil { objection = Self.refusal("YCbCr in an unusual form") }
        default: objection = Self.refusal(Self.names[photometric] ?? "of kind \(photometric)")
        }
    }

    private static func refusal(_ name: String) -> Failure {
        Failure(.badImage, "The tiff's colours are \(name), which can't be read.")
    }

    private static let names = [
        4: "a transparency mask", 9: "ICC L*a*b*", 10: "ITU L*a*b*", 32_803: "a sensor's mosaic", 32_844: "LogL",
        32_845: "LogLuv", 34_892: "a sensor's raw light",
    ]
}

/// The conversion of luma and its differences to red, green and blue: each is a weighted sum of all three, and a
/// constant.
struct YCbCrColours {
    /// Three rows of three factors.
    let factors: [Double]
    let constants: [Double]

    /// Nil if the numbers do not have eight or sixteen bits, or are invalid.
    init?(_ directory: TIFFDirectory) {
        guard let bits = directory.value(of: 258), bits == 8 || bits == 16,
            directory.value(of: 339) ?? 1 == 1,
            // YCbCrCoefficients; the defaults are those of ITU-R BT.601.
            let luma = Self.fractions(529, directory, or: [0.299, 0.587, 0.114]),
            luma.allSatisfy({ $0 > 0.001 && $0 < 1 })
        else { return nil }
        let (most, middle) = (Double(1 << bits - 1), Double(1 << (bits - 1)))
        // ReferenceBlackWhite: the values of each sample for none and all of it.
        let usual = [0, most, middle, most, middle, most]
        guard let levels = Self.fractions(532, directory, or: usual), levels[1] - levels[0] >= 1,
            levels[3] - levels[2] >= 1, levels[5] - levels[4] >= 1
        else { return nil }
        let (red, green, blue) = (luma[0], luma[1], luma[2])
        let (fromRed, fromBlue) = (2 - 2 * red, 2 - 2 * blue)
        let scales: [Double] = [
            most / (levels[1] - levels[0]), (most - middle) / (levels[3] - levels[2]),
            (most - middle) / (levels[5] - levels[4]),
        ]
        let (greenFromBlue, greenFromRed): (Double, Double) = (-blue * fromBlue / green, -red * fromRed / green)
        let matrix: [[Double]] = [[1, 0, fromRed], [1, greenFromBlue, greenFromRed], [1, fromBlue, 0]]
        let rows = matrix.map { row in (0..<3).map { row[$0] * scales[$0] } }
        factors = rows.flatMap { $0 }
        constants = rows.map { row in -(0..<3).reduce(0) { $0 + row[$1] * levels[2 * $1] } }
    }

    /// Nil if the field has another number of values.
    private static func fractions(_ tag: Int, _ directory: TIFFDirectory, or usual: [Double]) -> [Double]? {
        guard let field = directory.field(tag) else { return usual }
        let found = (0..<usual.count).compactMap { directory.fraction($0, of: field) }
        return found.count == usual.count ? found : nil
    }
}
