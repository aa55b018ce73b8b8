import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

#if canImport(Glibc)
    import Glibc
#endif

@Suite(.timeLimit(.minutes(15)))
struct AlphaTests {
    private static var half: (Int, Int) -> TestImages.Pixel { TestImages.solid((200, 100, 50, 128)) }

    @Test(arguments: ["png", "webp,q100", "avif,q100"])
    func alphaIsKept(format: String) throws {
        let raster = try Raster(make(one: TestImages.png(40, 40, kind: .rgba, pixel: Self.half), "20x,\(format)"))
        #expect(isNear(raster[10, 10], [200, 100, 50, 128]))
    }

    @Test func alphaOfSixteenBitsIsKept() throws {
        let raster = try Raster(make(one: TestImages.png(40, 40, kind: .rgba16, pixel: Self.half), "20x"))
        #expect(isNear(raster[10, 10], [200, 100, 50, 128], within: 2))
    }

    @Test func alphaOfAPaletteIsKept() throws {
        let left: (Int, Int) -> TestImages.Pixel = { x, _ in (x < 20 ? 10 : 200, 0, 0, 255) }
        let raster = try Raster(make(one: TestImages.png(40, 40, kind: .indexedWithAlpha, pixel: left), "20x"))
        #expect(raster[2, 5].last == 0)
        #expect(raster[17, 5].last == 255 && isNear(Array(raster[17, 5].dropLast()), [200, 200, 200]))
    }

    @Test func greyWithAlphaIsKept() throws {
        for format in ["png", "webp", "avif"] {
            let source = TestImages.png(40, 40, kind: .greyAlpha, pixel: TestImages.solid((90, 0, 0, 128)))
            let pixel = try Raster(make(one: source, "20x,\(format)"))[9, 9]
            #expect(abs((pixel.last ?? 0) - 128) < 4 && abs((pixel.first ?? 0) - 90) < 8)
        }
    }

    @Test func jpegGetsAWhiteBackground() throws {
        let clear = TestImages.png(40, 40, kind: .rgba, pixel: TestImages.solid((255, 0, 0, 0)))
        #expect(isNear(try Raster(make(one: clear, "20x,jpeg"))[10, 10], [255, 255, 255]))
        let half = TestImages.png(40, 40, kind: .rgba, pixel: TestImages.solid((255, 0, 0, 128)))
        #expect(isNear(try Raster(make(one: half, "20x,jpeg"))[10, 10], [255, 127, 127]))
    }

    /// Without weights, the invisible green would bleed into the red.
    @Test func transparentPixelsDoNotColourTheirNeighbours() throws {
        let stripes: (Int, Int) -> TestImages.Pixel = { x, _ in x % 2 == 0 ? (255, 0, 0, 255) : (0, 255, 0, 0) }
        let raster = try Raster(make(one: TestImages.png(64, 64, kind: .rgba, pixel: stripes), "16x"))
        #expect(isNear(Array(raster[8, 8].dropLast()), [255, 0, 0], within: 3))
    }

    @Test func containPadsWithTransparencyOrWhite() throws {
        let red = TestImages.png(40, 20, pixel: TestImages.solid((255, 0, 0, 255)))
        let png = try Raster(make(one: red, "40x40,contain,png"))
        #expect(png[20, 2] == [0, 0, 0, 0] && png[20, 20] == [255, 0, 0, 255])
        let jpeg = try Raster(make(one: red, "40x40,contain,jpeg"))
        #expect(isNear(jpeg[20, 2], [255, 255, 255]) && isNear(jpeg[20, 20], [254, 0, 0]))
    }

    @Test func coverCutsBothSidesEqually() throws {
        let thirds: (Int, Int) -> TestImages.Pixel = { x, _ in
            (20..<40).contains(x) ? (0, 0, 255, 255) : (255, 0, 0, 255)
        }
        let raster = try Raster(make(one: TestImages.png(60, 20, pixel: thirds), "20x20,cover,png"))
        #expect([raster[0, 10], raster[19, 10]] == [[0, 0, 255], [0, 0, 255]])
    }
}

@Suite(.timeLimit(.minutes(15)))
struct ColourTests {
    private static let p3: [[Double]] = [
        [0.5151, 0.2412, -0.0011], [0.2920, 0.6922, 0.0419], [0.1571, 0.0666, 0.7841],
    ]
    private static let srgb: [[Double]] = [
        [0.4361, 0.2225, 0.0139], [0.3851, 0.7169, 0.0971], [0.1431, 0.0606, 0.7141],
    ]
    private static let displayP3 = TestImages.profile(primaries: p3, curve: srgbCurve)

    private static func srgbCurve(_ value: Double) -> Double {
        value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
    }

    @Test func onlyTheProfileOfSRGBCountsAsSRGB() {
        func isSRGB(_ profile: [UInt8]) -> Bool { profile.withUnsafeBytes { ColourProfile($0).isSRGB } }
        #expect(isSRGB(TestImages.profile(primaries: Self.srgb, curve: Self.srgbCurve)))
        #expect(!isSRGB(Self.displayP3))
        #expect(!isSRGB(TestImages.profile(primaries: Self.srgb) { pow($0, 1.8) }))
        #expect(!isSRGB([]))
    }

    private static let reddish = TestImages.png(32, 32, pixel: TestImages.solid((200, 120, 120, 255)))

    @Test func coloursAreConvertedByTheProfile() throws {
        let jpeg = TestImages.jpeg(try make(one: Self.reddish, "32x,jpeg,q100"), profile: Self.displayP3)
        let pixel = try Raster(make(one: jpeg, "16x,png"))[8, 8]
        // Display P3's (200, 120, 120) is redder in sRGB.
        #expect(pixel[0] > 206 && pixel[1] < 120)
    }

    @Test func aPNGsColoursAreConvertedByItsProfile() throws {
        let chunk = TestImages.pngProfileChunk(Self.displayP3)
        let source = TestImages.png(32, 32, extra: [chunk], pixel: TestImages.solid((200, 120, 120, 255)))
        #expect(try Raster(make(one: source, "16x,png"))[8, 8][0] > 206)
    }

    @Test func aBrokenProfileIsIgnored() throws {
        let broken = Array(Self.displayP3.prefix(140))
        let jpeg = TestImages.jpeg(try make(one: Self.reddish, "32x,jpeg,q100"), profile: broken)
        #expect(isNear(try Raster(make(one: jpeg, "16x,png"))[8, 8], [200, 120, 120], within: 3))
    }

    @Test func greyKeepsItsValueInEveryFormat() throws {
        let grey = TestImages.png(32, 32, kind: .grey, pixel: TestImages.solid((77, 0, 0, 255)))
        for format in ["png", "jpeg", "webp", "avif"] {
            let pixel = try Raster(make(one: grey, "16x,\(format)"))[8, 8]
            #expect(pixel.allSatisfy { abs($0 - 77) < 6 }, "\(format) \(pixel)")
        }
    }

    @Test func cmykBecomesSRGB() throws {
        let cyan = TestImages.tiff(32, 32, kind: .cmyk, pixel: TestImages.solid((255, 0, 0, 0)))
        let pixel = try Raster(make(one: cyan, "16x,png"))[8, 8]
        #expect(pixel == [0, 255, 255])
    }

    @Test(arguments: ["jpeg", "png", "webp", "avif"])
    func metadataAndProfileAreLeftOut(format: String) throws {
        let jpeg = TestImages.jpeg(try make(one: Self.reddish, "32x,jpeg"), profile: Self.displayP3)
        let file = try make(one: TestImages.jpeg(jpeg, orientation: 6), "16x,\(format)")
        for word in ["Exif", "EXIF", "ICC_PROFILE", "ICCP", "iCCP", "eXIf", "prof"] {
            #expect(!contains(file, Array(word.utf8)), "\(word) in \(format)")
        }
    }

    private func contains(_ file: [UInt8], _ word: [UInt8]) -> Bool {
        file.indices.dropLast(word.count).contains { file[$0..<($0 + word.count)].elementsEqual(word) }
    }
}

@Suite(.timeLimit(.minutes(15)))
struct OrientationTests {
    /// The white square in the top left corner of the stored picture, and its place in the shown picture.
    @Test(arguments: [
        (0, "top left"), (1, "top left"), (2, "top right"), (3, "bottom right"), (4, "bottom left"), (5, "top left"),
        (6, "top right"), (7, "bottom right"), (8, "bottom left"), (9, "top left"),
    ])
    func everyOrientationIsAppliedOnce(tag: Int, corner: String) throws {
        let stored = try make(one: TestImages.png(80, 40), "80x,jpeg,q95")
        let source = TestImages.jpeg(stored, orientation: tag)
        let isTurned = (5...8).contains(tag)
        #expect(try facts(source).width == (isTurned ? 40 : 80))
        let raster = try Raster(make(one: source, isTurned ? "20x40,fill,png" : "40x20,fill,png"))
        #expect(raster.size == (isTurned ? "20x40" : "40x20"))
        let x = corner.hasSuffix("left") ? 2 : raster.width - 3
        let y = corner.hasPrefix("top") ? 2 : raster.height - 3
        #expect(isNear(raster[x, y], [255, 255, 255], within: 30))
        #expect(!isNear(raster[raster.width - 1 - x, raster.height - 1 - y], [255, 255, 255], within: 30))
    }
}
