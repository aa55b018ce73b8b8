import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// Placeholders from a transform: they depend on a picture's look, not on its format and size.
@Suite(.timeLimit(.minutes(15))) struct PlaceholderTests {
    private func placeholders(_ source: [UInt8], _ spec: String = "300x,enlarge,png") throws -> Placeholders {
        try #require(try make(source, "v=\(spec)").report.facts.placeholders)
    }

    private func hash(_ source: [UInt8], _ spec: String = "300x,enlarge,png") throws -> PerceptualHash? {
        try placeholders(source, spec).perceptualHash.map { PerceptualHash(bits: UInt64(bitPattern: $0)) }
    }

    @Test func aPictureWithoutVariantsHasPlaceholdersToo() throws {
        #expect(try facts(TestImages.png(20, 10)).placeholders == nil)
        let told = try make(TestImages.png(20, 10), "").report.facts.placeholders
        #expect(try told == placeholders(TestImages.png(20, 10), "20x,png"))
    }

    @Test(arguments: ["80x,jpeg,q40", "200x,webp,q60", "600x,enlarge,jpeg,q90", "320x240,fill,png", "100x,avif,q50"])
    func hashesOfCopiesAreNear(spec: String) throws {
        for number in 1...6 {
            let scene = Scene.png(number)
            let original = try #require(try hash(scene))
            let copy = try #require(try hash(make(one: scene, spec)))
            #expect(original.distance(to: copy) <= 6, "scene \(number)")
        }
    }

    @Test func hashesOfDifferentPicturesAreFar() throws {
        let hashes = try (1...12).map { try #require(try hash(Scene.png($0))) }
        for (index, hash) in hashes.enumerated() {
            for other in hashes[..<index] { #expect(hash.distance(to: other) > 15) }
        }
    }

    /// The decoded size depends on the variants of a job; the placeholders must not.
    @Test func theHashHardlyDependsOnTheVariants() throws {
        let scene = try make(one: Scene.png(3), "1600x,enlarge,jpeg")
        let large = try #require(try hash(scene, "1200x,png"))
        for spec in ["16x", "40x30,cover", "200x50,fill"] {
            #expect(large.distance(to: try #require(try hash(scene, "\(spec),png"))) <= 6, "\(spec)")
        }
    }

    @Test func placeholdersKeepTheShapeOfTheSource() throws {
        let report = try make(Scene.png(2), "wide=300x20,fill,png;tall=20x200,fill,png").report
        let alone = try placeholders(Scene.png(2), "300x,png")
        #expect(report.facts.placeholders?.thumbHash.prefix(6) == alone.thumbHash.prefix(6))
    }

    @Test func aPictureOfOneColourHasADominantColourAndNoHash() throws {
        let plain = try placeholders(TestImages.png(40, 30, pixel: TestImages.solid((10, 200, 30, 255))))
        #expect(plain.dominantColour == "#0ac81e")
        #expect(plain.perceptualHash == nil)
    }

    @Test func aSinglePixelHasPlaceholders() throws {
        let dot = try placeholders(TestImages.png(1, 1, pixel: TestImages.solid((255, 0, 0, 255))), "4x4,fill,enlarge")
        #expect(dot.dominantColour == "#ff0000")
        #expect(dot.blurHash.count == 28)
        #expect(dot.perceptualHash == nil)
    }

    @Test(arguments: [(1, 900), (900, 1), (3, 200)])
    func aPictureOfAnExtremeShapeHasPlaceholders(width: Int, height: Int) throws {
        #expect(try placeholders(TestImages.png(width, height), "20x20,fill,enlarge").blurHash.count == 28)
    }

    @Test func transparentPixelsDoNotCountForTheDominantColour() throws {
        let half = TestImages.png(40, 40, kind: .rgba) { x, _ in x < 30 ? (255, 0, 0, 0) : (0, 0, 255, 255) }
        #expect(try placeholders(half, "40x,png").dominantColour == "#0000ff")
        let empty = TestImages.png(40, 40, kind: .rgba, pixel: TestImages.solid((9, 9, 9, 0)))
        let told = try placeholders(empty, "40x,png")
        #expect(told.dominantColour == nil)
        #expect(told.perceptualHash == nil)
    }

    @Test func aTransparentPictureHasTheHashOfItsCopyOnWhite() throws {
        let picture = TestImages.png(64, 64, kind: .rgba) { x, y in
            (x - 20) * (x - 20) + (y - 40) * (y - 40) < 300 ? (200, UInt8(3 * x), 0, 255) : (0, 0, 0, 0)
        }
        let transparent = try #require(try hash(picture, "64x,png"))
        let onWhite = try #require(try hash(make(one: picture, "64x,jpeg,q90"), "64x,png"))
        #expect(transparent.distance(to: onWhite) <= 6)
    }

    @Test(arguments: [TestImages.PNGKind.grey, .greyAlpha, .rgb, .rgba, .rgba16])
    func everyKindOfPixelIsRead(kind: TestImages.PNGKind) throws {
        let grey = TestImages.png(32, 32, kind: kind, pixel: TestImages.solid((120, 120, 120, 255)))
        #expect(try placeholders(grey, "32x,png").dominantColour == "#787878")
    }
}
