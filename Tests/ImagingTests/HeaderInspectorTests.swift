import Core
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

@Suite(.timeLimit(.minutes(15)))
struct HeaderInspectorTests {
    private static func verdict(_ bytes: [UInt8], pixels: Int = 100_000_000) -> String {
        switch bytes.withUnsafeBytes(HeaderInspector(limits: ImageLimits(pixels: pixels)).inspect) {
        case .undecided: "undecided"
        case .accept: "accepted"
        case .acceptAs(let format): format
        case .refuse(let error): error.failureClass.rawValue
        }
    }

    private static func jpeg(_ width: Int, _ height: Int) -> [UInt8] {
        [0xFF, 0xD8, 0xFF, 0xE0, 0, 4, 1, 2, 0xFF, 0xC2, 0, 17, 8]
            + TestImages.big(height, 2) + TestImages.big(width, 2)
    }

    private static func gif(_ width: Int, _ height: Int) -> [UInt8] {
        Array("GIF89a".utf8) + TestImages.little(width, 2) + TestImages.little(height, 2) + [0, 0, 0]
    }

    private static func webp(_ chunk: String, _ rest: [UInt8]) -> [UInt8] {
        Array("RIFF".utf8) + [0, 1, 0, 0] + Array("WEBP\(chunk)".utf8) + [10, 0, 0, 0] + rest
    }

    @Test(arguments: [
        (TestImages.pngHeaderOnly(50_000, 50_000), "too-many-pixels"),
        (TestImages.pngHeaderOnly(10_000, 10_000), "png"),
        (TestImages.pngHeaderOnly(10_001, 10_000), "too-many-pixels"),
        (TestImages.pngHeaderOnly(0, 5), "bad-image"),
        (Array(TestImages.pngHeaderOnly(50_000, 50_000).prefix(20)), "undecided"),
        (jpeg(20_000, 20_000), "too-many-pixels"),
        (jpeg(640, 480), "jpeg"),
        (jpeg(640, 0), "bad-image"),
        ([0xFF, 0xD8, 0xFF, 0xE1, 0xFF, 0xFF], "undecided"),
        ([0xFF, 0xD8, 0xFF, 0xDA, 0, 4, 0, 0], "bad-image"),
        (gif(640, 480), "gif"),
        (gif(65_535, 65_535), "too-many-pixels"),
        // Its first frame may make it larger.
        (gif(0, 480), "undecided"),
        (gif(0, 480) + [0x3B], "bad-image"),
        (webp("VP8X", [0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]), "too-many-pixels"),
        (webp("VP8X", [0, 0, 0, 0, 0xFF, 0, 0, 0xFF, 0, 0]), "webp"),
        (webp("VP8L", [0x2F, 0xFF, 0xFF, 0xFF, 0xFF]), "too-many-pixels"),
        (webp("VP8 ", [0, 0, 0, 0x9D, 0x01, 0x2A, 0x40, 1, 0xF0, 0]), "webp"),
        (webp("VP8 ", [0, 0, 0, 0x9D, 0x01, 0x2A, 0, 0, 0xF0, 0]), "bad-image"),
        (webp("JUNK", []), "bad-image"),
        (TestImages.tiff(2, 2), "tiff"),
        (Array("<html><body>not found".utf8), "not-an-image"),
        (Array("<html>".utf8), "undecided"),
    ])
    func headersAreAcceptedOrRefused(bytes: [UInt8], expected: String) {
        #expect(Self.verdict(bytes) == expected)
    }

    @Test func prefixesOfAGoodImageAreUndecidedUntilTheHeaderIsComplete() {
        for image in [TestImages.png(8, 8), Self.jpeg(8, 8), Self.gif(8, 8), TestImages.tiff(8, 8)] {
            let verdicts = (0...min(image.count, 200)).map { Self.verdict(Array(image.prefix($0))) }
            let first = verdicts.firstIndex { $0 != "undecided" } ?? verdicts.count
            #expect(Set(verdicts[first...]).count == 1)
        }
    }

    /// A read out of bounds would trap.
    @Test func mutatedHeadersNeverTrap() {
        var random = SystemRandomNumberGenerator()
        let seeds =
            [TestImages.png(4, 4), Self.jpeg(8, 8), Self.gif(8, 8), TestImages.tiff(4, 4), TestImages.gif(3, 3)]
            + ImageFormat.allCases.map(SampleImage.bytes)
        for round in 0..<20_000 {
            var bytes = Array(seeds[round % seeds.count].prefix(Int.random(in: 0...120, using: &random)))
            for _ in 0..<Int.random(in: 0...4, using: &random) where !bytes.isEmpty {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
            }
            _ = Self.verdict(bytes)
            for format in ImageFormat.allCases {
                _ = bytes.withUnsafeBytes { format.definition.endsEarly(ByteReader($0)) }
            }
            _ = bytes.withUnsafeBytes { ColourProfile($0).isSRGB }
        }
    }
}
