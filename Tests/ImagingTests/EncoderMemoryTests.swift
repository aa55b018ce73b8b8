import Core
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging
@testable import Variants

/// Pictures that are too large for an encoder fail with a sentence before the encoding.
@Suite(.timeLimit(.minutes(15)))
struct EncoderMemoryTests {
    @Test(arguments: [
        ("x,avif,pad:0:5700:5700:0", "avif", 30), ("x,jxl,pad:0:3900:3900:0", "jxl", 8),
        ("x,jxl,pad:0:3900:3900:0:white", "jxl", 12),
        ("x,jxl,effort:7,pad:0:2300:2300:0", "jxl", 3), ("x,gif,pad:0:4300:4300:0", "gif", 16),
        ("x,webp,lossless,pad:0:5900:5900:0", "webp", 33),
    ])
    func aPictureTooLargeForItsEncoderFailsWithTheLimit(spec: String, format: String, most: Int) throws {
        do {
            _ = try make(one: TestImages.png(8, 8), spec)
            Issue.record("\(spec) was made")
        } catch let error as Failure {
            #expect(error.failureClass == .encode)
            #expect(error.message.contains("more than \(format) can be encoded of"), "\(error.message)")
            #expect(error.message.contains("some \(most) million"), "\(error.message)")
        }
    }

    /// The option auto skips an encoder whose limit the picture exceeds.
    @Test func autoSkipsFormatsForWhichThePictureIsTooLarge() throws {
        let made = try make(TestImages.png(8, 8), "a=x,auto:jxl+jpeg,pad:0:3900:3900:0:white")
        #expect(made.report.renditions[0].format == .jpeg)
    }

    @Test func jpegXLUsesLessEffortForLargePictures() {
        let encoding = Encoding(.jxl, quality: nil, VariantOptions())
        #expect(encoding.effort(pixels: 3_500_000) == 7)
        #expect(encoding.effort(pixels: 3_500_001) == 3)
    }

    /// A file without a readable picture is an error even if the encoder reported none.
    @Test func anEncodedFileWithoutAPictureIsAnError() throws {
        let file = try make(one: TestImages.png(40, 30), "x,avif")
        try EncodedFile(file).checkHeader(PixelSize(width: 40, height: 30), as: .avif)
        #expect(throws: VipsFailure.self) {
            try EncodedFile(file).checkHeader(PixelSize(width: 41, height: 30), as: .avif)
        }
        #expect(throws: VipsFailure.self) {
            try EncodedFile(Array(file.prefix(200))).checkHeader(PixelSize(width: 40, height: 30), as: .avif)
        }
    }
}
