import Core
import SystemPackage
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging
@testable import Variants

/// Each effect on a picture of known pixels, written as PNG.
@Suite(.timeLimit(.minutes(15)))
struct EffectTests {
    /// Left half red, right half blue; the top row of quarters lighter.
    private static func flag(_ width: Int = 40, _ height: Int = 20) -> [UInt8] {
        TestImages.png(width, height) { x, y in
            let level: UInt8 = y < height / 2 ? 200 : 100
            return x < width / 2 ? (level, 0, 0, 255) : (0, 0, level, 255)
        }
    }

    private func raster(_ spec: String, of source: [UInt8] = flag()) throws -> Raster {
        try Raster(make(one: source, "x,png,\(spec)"))
    }

    @Test func aCropIsMeasuredInTheSourcesPixels() throws {
        let picture = try raster("crop:30:10:10:10")
        #expect(picture.size == "10x10")
        #expect(picture[5, 5] == [0, 0, 100])
        let scaled = try Raster(make(one: Self.flag(), "5x,png,crop:30:10:10:10"))
        #expect(scaled.size == "5x5")
        #expect(scaled[2, 2] == [0, 0, 100])
        // What stands after another effect is measured in what is left then.
        let after = try Raster(make(one: Self.flag(), "20x,png,resize,crop:0:0:10:5"))
        #expect(after.size == "10x5")
        #expect(after[5, 2] == [200, 0, 0])
    }

    @Test func aCropIsClippedToThePictureAndAnEmptyCropFails() throws {
        #expect(try raster("crop:30:0:100:100").size == "10x20")
        #expect(failure { _ = try make(one: Self.flag(), "x,png,crop:40:0:5:5") } == .transform)
    }

    @Test func aTrimRemovesThePlainBorder() throws {
        let framed = TestImages.png(30, 20) { x, y in
            (10..<18).contains(x) && (5..<9).contains(y) ? (0, 200, 0, 255) : (250, 250, 250, 255)
        }
        let picture = try raster("trim", of: framed)
        #expect(picture.size == "8x4")
        #expect(picture[0, 0] == [0, 200, 0])
        #expect(try raster("trim", of: TestImages.png(9, 7, pixel: TestImages.solid((9, 9, 9, 255)))).size == "9x7")
    }

    /// Thin lines are content, too, and small pictures are trimmed like large ones.
    @Test func aTrimKeepsThinLines() throws {
        func trimmed(_ width: Int, _ height: Int, _ isDrawn: @escaping (Int, Int) -> Bool) throws -> String {
            let source = TestImages.png(width, height) { x, y in
                isDrawn(x, y) ? (0, 0, 0, 255) : (255, 255, 255, 255)
            }
            return try raster("trim", of: source).size
        }
        #expect(
            try trimmed(100, 80) { $0 == 50 && (20..<60).contains($1) || $1 == 40 && (10..<90).contains($0) } == "80x40"
        )
        #expect(try trimmed(100, 80) { ($0 == 10 || $0 == 89) && (10..<70).contains($1) } == "80x60")
        #expect(try trimmed(100, 80) { $0 == 7 && $1 == 9 } == "1x1")
        #expect(try trimmed(100, 80) { $0 == 99 && $1 == 79 } == "1x1")
        for (width, height) in [(1, 1), (1, 50), (50, 1), (2, 40), (3, 2)] {
            #expect(try trimmed(width, height) { _, _ in false } == "\(width)x\(height)")
            #expect(try trimmed(width, height) { $0 + $1 > 0 && $0 == width - 1 && $1 == height - 1 } == "1x1")
        }
    }

    /// The blurred step between black and white is the integral of the Gaussian, and its width is sigma.
    @Test(arguments: [0.5, 1, 2, 5, 10]) func aBlurHasTheWidthOfItsSigma(sigma: Double) throws {
        let step = TestImages.png(160, 3, kind: .grey) { x, _ in x < 80 ? (0, 0, 0, 255) : (255, 255, 255, 255) }
        let blurred = try raster("blur:\(sigma)", of: step)
        let slopes = (1..<160).map { Double(blurred[$0, 1][0] - blurred[$0 - 1, 1][0]) / 255 }
        let variance = slopes.enumerated().reduce(0) {
            $0 + $1.element * (Double($1.offset + 1) - 80) * (Double($1.offset + 1) - 80)
        }
        #expect(abs(variance.squareRoot() - sigma) < 0.06 * sigma + 0.02, "\(variance.squareRoot())")
    }

    @Test(arguments: ["png", "webp"]) func aTrimRemovesATransparentBorder(format: String) throws {
        let inner = { (x: Int, y: Int) in (10..<21).contains(x) && (12..<26).contains(y) }
        let clear = TestImages.png(40, 40, kind: .rgba) { x, y in inner(x, y) ? (255, 0, 0, 255) : (0, 0, 0, 0) }
        let white = TestImages.png(40, 40, kind: .rgba) { x, y in inner(x, y) ? (255, 0, 0, 255) : (255, 255, 255, 255)
        }
        for source in [clear, white] {
            let made = try make(source, "v=x,\(format),trim")
            #expect(made.report.renditions.map { [$0.width, $0.height] } == [[11, 14]])
        }
    }

    @Test func anEffectThatChangesNothingIsLeftOut() throws {
        let plain = try VariantSpec.parse("a=20x").canonical
        for effect in [
            "rotate:0", "rotate:-360", "brightness:1", "contrast:1", "saturation:1", "gamma:1", "pad:0:0:0:0",
        ] {
            #expect(try VariantSpec.parse("a=20x,\(effect)").canonical == plain, "\(effect)")
        }
        #expect(try VariantSpec.parse("a=20x,rotate:30").canonical == VariantSpec.parse("a=20x,rotate:-330").canonical)
        #expect(try VariantSpec.parse("a=20x,rotate:30").canonical != plain)
    }

    @Test(arguments: [
        ("rotate:90", "20x40", [100, 0, 0]), ("rotate:-90", "20x40", [0, 0, 200]),
        ("rotate:180", "40x20", [0, 0, 100]),
        ("rotate:360", "40x20", [200, 0, 0]), ("rotate:270", "20x40", [0, 0, 200]),
    ])
    func quarterTurnsAreExact(spec: String, size: String, topLeft: [Int]) throws {
        let picture = try raster(spec)
        #expect(picture.size == size)
        #expect(picture[0, 0] == topLeft)
    }

    @Test func anAngleOtherThanAQuarterTurnGrowsOrClipsTheCanvas() throws {
        let grown = try raster("rotate:45")
        #expect(grown.width > 40 && grown.height > 20 && grown.channels == 4)
        #expect(grown[0, 0][3] == 0)
        let clipped = try raster("rotate:45:clip:#00ff00")
        #expect(clipped.size == "40x20")
        #expect(isNear(clipped[0, 0], [0, 255, 0]))
    }

    @Test func quarterTurnsCanBeClippedToo() throws {
        let picture = try raster("rotate:90:clip:#00ff00")
        #expect(picture.size == "40x20")
        #expect(picture[0, 0] == [0, 255, 0])
    }

    @Test(arguments: [
        ("flip", [0, 0, 200]), ("flip:vertical", [100, 0, 0]), ("flip:both", [0, 0, 100]),
    ])
    func flipsMirrorThePicture(spec: String, topLeft: [Int]) throws {
        #expect(try raster(spec)[0, 0] == topLeft)
    }

    @Test func roundCornersAreTransparentAndTheRestIsNot() throws {
        let picture = try raster("round:8")
        #expect(picture[0, 0][3] == 0 && picture[39, 0][3] == 0 && picture[0, 19][3] == 0)
        #expect(picture[20, 0] == [0, 0, 200, 255])
        let one = try raster("round:8:top-left")
        #expect(one[0, 0][3] == 0 && one[39, 0][3] == 255 && one[39, 19][3] == 255)
    }

    @Test func aBorderIsDrawnInsideTheEdge() throws {
        let picture = try raster("round:0:border=2:colour=#00ff00")
        #expect(picture[0, 10] == [0, 255, 0, 255] && picture[1, 10] == [0, 255, 0, 255])
        #expect(picture[2, 10] == [100, 0, 0, 255])
        let round = try raster("round:8:border=2:colour=#00ff00")
        #expect(round[0, 0][3] == 0)
        #expect(round[20, 1] == [0, 255, 0, 255])
    }

    @Test func aTintIsBlendedAndLeavesTheAlpha() throws {
        let half = try raster("tint:#00ff0080")[0, 0]
        #expect(isNear(half, [100, 128, 0], within: 2))
        #expect(isNear(try raster("tint:#800000:multiply")[0, 0], [100, 0, 0], within: 2))
        #expect(isNear(try raster("tint:white:screen")[0, 0], [255, 255, 255], within: 1))
        let hole = TestImages.png(8, 8, kind: .rgba) { x, _ in x < 4 ? (9, 9, 9, 255) : (0, 0, 0, 0) }
        let tinted = try raster("tint:#ff0000", of: hole)
        #expect(tinted[0, 0] == [255, 0, 0, 255] && tinted[7, 0][3] == 0)
    }

    @Test(arguments: [
        ("invert", [55, 255, 255]), ("brightness:0.5", [100, 0, 0]), ("brightness:2", [255, 0, 0]),
        ("contrast:0", [128, 128, 128]), ("contrast:1", [200, 0, 0]), ("saturation:1", [200, 0, 0]),
        ("saturation:0", [43, 43, 43]), ("gamma:1", [200, 0, 0]),
    ])
    func brightnessContrastAndSaturationFollowTheFormula(spec: String, expected: [Int]) throws {
        #expect(isNear(try raster(spec)[0, 0], expected, within: 1))
    }

    @Test func gammaLightensTheMiddleAndKeepsBlackAndWhite() throws {
        let picture = TestImages.png(3, 1) { x, _ in (UInt8([0, 100, 255][x]), 0, 0, 255) }
        let light = try raster("gamma:2", of: picture)
        #expect(light[0, 0][0] == 0 && light[2, 0][0] == 255 && light[1, 0][0] > 140)
        #expect(try raster("gamma:0.5", of: picture)[1, 0][0] < 60)
    }

    @Test func greyscaleMakesOneChannel() throws {
        let grey = try raster("greyscale")
        #expect(grey.channels == 1)
        #expect(grey[0, 0][0] > grey[0, 19][0])
    }

    @Test func invertKeepsTheAlpha() throws {
        let half = TestImages.png(4, 4, kind: .rgba, pixel: TestImages.solid((10, 20, 30, 128)))
        #expect(try raster("invert", of: half)[1, 1] == [245, 235, 225, 128])
    }

    @Test func blurMixesNeighboursAndSharpenSeparatesThem() throws {
        let blurred = try raster("blur:3")
        #expect(blurred[20, 5][0] > 40 && blurred[20, 5][2] > 40)
        #expect(blurred[2, 3][0] > 180)
        let step = TestImages.png(20, 4) { x, _ in x < 10 ? (100, 100, 100, 255) : (150, 150, 150, 255) }
        let sharp = try raster("sharpen:1:5", of: step)
        #expect(sharp[10, 2][0] > 150 && sharp[9, 2][0] < 100)
    }

    @Test func paddingIsTransparentUnlessItHasAColour() throws {
        let clear = try raster("pad:1:2:3:4")
        #expect(clear.size == "46x24")
        #expect(clear[0, 0] == [0, 0, 0, 0] && clear[4, 1] == [200, 0, 0, 255])
        #expect(try raster("pad:1:2:3:4:#010203")[0, 0] == [1, 2, 3])
    }

    @Test func flattenPutsAColourUnder() throws {
        let half = TestImages.png(4, 4, kind: .rgba, pixel: TestImages.solid((0, 0, 0, 128)))
        #expect(isNear(try raster("flatten:#ff0000", of: half)[0, 0], [127, 0, 0], within: 1))
    }

    @Test func eightEffectsAreAppliedInTheirOrder() throws {
        let picture = try Raster(
            make(
                one: Self.flag(),
                "x,png,crop:0:0:20:20,rotate:90,flip,invert,brightness:0.5,pad:1:1:1:1:black,round:8,greyscale"))
        #expect(picture.size == "22x22")
        #expect(picture.channels == 2)
        #expect(picture[0, 0][1] == 0)
        // Red inverted is cyan, at half its brightness.
        #expect((60...120).contains(picture[15, 11][0]))
    }

    @Test func effectsThatExceedTheLimitAreRefused() throws {
        let small = ImageLimits(pixels: 1_000)
        #expect(failure { _ = try make(Self.flag(), "v=x,png,pad:100:100:100:100", limits: small) } == .transform)
    }
}

@Suite(.timeLimit(.minutes(15)))
struct PositionTests {
    /// Its red is its column, its green its row.
    private static let map = TestImages.png(200, 100) { x, y in (UInt8(x), UInt8(y * 2), 0, 255) }

    @Test(arguments: [
        ("west", 0), ("centre", 50), ("east", 100), ("north-east", 100), ("south-west", 0), ("focus:0.3:0.5", 10),
        ("focus:0:0", 0), ("focus:1:1", 100), ("focus:0.5:0.5", 50),
    ])
    func coverKeepsThePartAtThePosition(position: String, left: Int) throws {
        let raster = try Raster(make(one: Self.map, "100x100,cover,png,\(position)"))
        #expect(raster.size == "100x100")
        #expect(raster[0, 0][0] == left)
    }

    @Test(arguments: [("north", 0), ("centre", 25), ("south", 50), ("focus:0.5:1", 50)])
    func containPutsThePictureAtThePosition(position: String, top: Int) throws {
        let raster = try Raster(make(one: Self.map, "100x100,contain,png,\(position)"))
        let firstVisible = (0..<100).first { raster[50, $0][3] > 0 }
        #expect(firstVisible == top)
    }

    @Test(arguments: ["attention", "entropy"])
    func smartCropsKeepTheBusyPart(position: String) throws {
        let source = TestImages.png(300, 100) { x, y in
            (230..<270).contains(x) && (30..<70).contains(y)
                ? (UInt8(x * 7 % 256), UInt8(y * 5 % 256), 40, 255)
                : (128, 128, 128, 255)
        }
        let raster = try Raster(make(one: source, "100x100,cover,png,\(position)"))
        let busy = (0..<100).filter { raster[$0, 50] != [128, 128, 128] }.count
        #expect(busy >= 35)
    }
}

@Suite(.timeLimit(.minutes(15)))
struct WatermarkTests {
    private func marked(_ spec: String) throws -> Raster {
        let source = TestImages.png(100, 60, pixel: TestImages.solid((0, 0, 0, 255)))
        let mark = TestImages.png(10, 10, pixel: TestImages.solid((255, 0, 0, 255)))
        let file = try withFile(source) { input in
            try withFile(mark) { logo in
                try withFile([]) { output in
                    let spec = try VariantSpec.parse("v=x,png,watermark:logo.png\(spec)")
                    #expect(spec.assetNames == ["logo.png"])
                    _ = try Transformer(limits: ImageLimits()).transform(
                        input, into: [VariantOutput(spec: spec, output: output)], assets: ["logo.png": logo])
                    return try readAll(output)
                }
            }
        }
        return try Raster(file)
    }

    @Test func aWatermarkIsInItsCornerInItsShareOfTheWidth() throws {
        let picture = try marked("")
        #expect(picture.size == "100x60" && picture.channels == 3)
        #expect(picture[99, 59] == [255, 0, 0] && picture[76, 36] == [255, 0, 0])
        #expect(picture[73, 59] == [0, 0, 0] && picture[99, 33] == [0, 0, 0])
    }

    @Test func aWatermarkHasItsPositionOpacityScaleAndMargin() throws {
        let picture = try marked(":north-west:0.5:0.1:margin=5")
        #expect(isNear(picture[5, 5], [128, 0, 0], within: 1) && isNear(picture[14, 14], [128, 0, 0], within: 1))
        #expect(picture[4, 4] == [0, 0, 0] && picture[15, 15] == [0, 0, 0])
    }

    @Test func aMissingWatermarkFailsWithClassTransform() {
        #expect(failure { _ = try make(one: TestImages.png(9, 9), "x,png,watermark:logo.png") } == .transform)
    }
}
