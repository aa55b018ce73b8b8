import Core
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

@Suite(.timeLimit(.minutes(15)))
struct FailureTests {
    private static func code(_ source: [UInt8], _ spec: String = "v=16x,png") -> FailureClass? {
        failure { _ = try make(source, spec) }
    }

    @Test(arguments: ["jpeg,q90", "png", "webp", "avif"])
    func aCutImageIsTruncated(format: String) throws {
        let whole = try make(one: TestImages.png(200, 150), "200x,\(format)")
        for cut in [1, 2, 5, 9] {
            let part = Array(whole.prefix(whole.count * cut / 10))
            #expect(Self.code(part) == .truncated, "\(cut * 10) %")
            // Several variants decode by another road.
            #expect(Self.code(part, "v=16x,png w=160x,webp") == .truncated)
        }
    }

    @Test func cutFilesOfOtherFormatsAreTruncatedToo() throws {
        let images = [
            TestImages.png(60, 60), TestImages.gif(60, 60), TestImages.tiff(60, 60), SampleImage.bytes(of: .heic),
        ]
        for whole in images {
            #expect(Self.code(Array(whole.prefix(whole.count * 6 / 10))) == .truncated)
        }
    }

    /// A source is checked even if its job has no variants.
    @Test func aCutImageIsTruncatedWithoutVariantsToo() throws {
        for whole in [TestImages.png(60, 60), TestImages.gif(60, 60), SampleImage.bytes(of: .jpeg)] {
            #expect(failure { _ = try make(Array(whole.prefix(whole.count * 6 / 10)), "") } == .truncated)
            #expect(failure { _ = try make(whole, "") } == nil)
        }
    }

    @Test func damageInTheMiddleIsABadImage() throws {
        var png = TestImages.png(60, 60)
        for index in 2_000..<2_100 { png[index] ^= 0x55 }
        #expect(Self.code(png) == .badImage)
    }

    @Test func otherFilesAreNotImages() throws {
        let svg = #"<svg xmlns="http://www.w3.org/2000/svg" width="5" height="5"/>"#
        for text in ["<html><body>404", svg, "%PDF-1.4 and so on"] {
            #expect(Self.code(Array(text.utf8)) == .notAnImage)
        }
    }

    @Test func anEmptyFileIsABadImage() throws {
        #expect(Self.code([]) == .badImage)
        #expect(Self.code(Array(TestImages.png(1, 1).prefix(5))) == .truncated)
    }

    @Test func aDecompressionBombIsRefusedByItsHeader() throws {
        let bomb =
            TestImages.pngHeaderOnly(50_000, 50_000) + TestImages.pngChunk("IDAT", [0x78, 1])
            + TestImages.pngChunk("IEND", [])
        #expect(Self.code(bomb) == .tooManyPixels)
        let few = ImageLimits(pixels: 1_000)
        #expect(failure { _ = try facts(TestImages.tiff(40, 40), limits: few) } == .tooManyPixels)
    }

    @Test func aVariantBeyondTheLimitsFails() throws {
        #expect(Self.code(TestImages.png(2, 2), "v=60000x60000,fill,enlarge,png") == .transform)
        #expect(Self.code(TestImages.png(1, 40), "v=2000x,enlarge,webp") == .transform)
    }

    @Test func controlCharactersInAMessageAreReplaced() {
        let text = "a\u{1B}[31m\nb\u{202E}" + String(repeating: "x", count: 2_000)
        let error = Failure(.badImage, text)
        #expect(error.message.hasPrefix("a [31m b x") && error.message.count == 500)
    }

    /// Every damaged file is decoded or fails with a class.
    @Test func mutatedImagesSucceedOrFailWithAClass() throws {
        var random = SystemRandomNumberGenerator()
        let seeds = ImageFormat.allCases.map(SampleImage.bytes) + [TestImages.png(9, 9, kind: .indexedWithAlpha)]
        for round in 0..<400 {
            var bytes = seeds[round % seeds.count]
            for _ in 0..<Int.random(in: 1...8, using: &random) {
                bytes[Int.random(in: 12..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
            }
            _ = Self.code(bytes)
        }
    }
}
