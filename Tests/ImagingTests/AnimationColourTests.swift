import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

#if canImport(Glibc)
    import Glibc
#endif

/// The frames of an animated WebP are converted by its profile.
@Suite(.timeLimit(.minutes(15)))
struct AnimationColourTests {
    private static func curve(_ value: Double) -> Double {
        value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
    }

    private static let displayP3 = TestImages.profile(
        primaries: [[0.5151, 0.2412, -0.0011], [0.2920, 0.6922, 0.0419], [0.1571, 0.0666, 0.7841]], curve: curve)
    private static let sRGB = TestImages.profile(
        primaries: [[0.4361, 0.2225, 0.0139], [0.3851, 0.7169, 0.0971], [0.1431, 0.0606, 0.7141]], curve: curve)

    private static func file(_ profile: [UInt8]) throws -> [UInt8] {
        try AnimationMetadataTests.file(AnimationMetadataTests.film(), [("icc", profile)])
    }

    private static func middle(_ frame: [UInt8]) -> [Int] { frame[400..<403].map(Int.init) }

    @Test(arguments: [
        "x,webp,lossless", "30x20,enlarge,webp,lossless", "18x12,gif",
        "x,webp,lossless,blur:1,transform-animated-image",
    ])
    func framesAreConvertedLikeStills(spec: String) throws {
        let file = try Self.file(Self.displayP3)
        let still = try Raster(make(one: file, "x,png"))[8, 8]
        #expect(still[0] > 206 && still[1] < 120)
        let made = try make(one: file, spec)
        let film = try Film(made)
        #expect(isNear(Self.middle(film.frames[0]), Array(still.prefix(3)), within: 1))
        #expect(film.frames.count == 2 && film.frames[1] != film.frames[0])
        #expect(AnimationMetadataTests.chunk("ICCP", of: made) == nil)
    }

    @Test func aKeptProfileKeepsThePixels() throws {
        let made = try make(
            Self.file(Self.displayP3), "a=x,webp,lossless,keep-profile,effort:3 b=x,webp,lossless c=x,gif,keep-profile")
        let films = try made.files.map { try Film($0) }
        #expect(
            Self.middle(films[0].frames[0]) == [200, 120, 120] && Self.middle(films[0].frames[1]) == [200, 120, 160])
        #expect(AnimationMetadataTests.chunk("ICCP", of: made.files[0]) == Self.displayP3)
        #expect(AnimationMetadataTests.chunk("ICCP", of: made.files[1]) == nil)
        // A GIF has no place for it.
        #expect(Self.middle(films[2].frames[0]) == Self.middle(films[1].frames[0]))
    }

    @Test func semitransparentColoursAreConvertedToo() throws {
        let film = try AnimationMetadataTests.film(pixel: { x, _, number in
            Pixel(red: 200, green: 120, blue: UInt8(120 + number), alpha: x < 12 ? 128 : 0)
        })
        let made = try Film(make(one: AnimationMetadataTests.file(film, [("icc", Self.displayP3)]), "x,webp,lossless"))
        #expect(made.frames[0][3] == 128 && made.frames[0][0] > 206 && made.frames[0][23 * 4 + 3] == 0)
    }

    @Test func aProfileOfAnotherColourSpaceChangesNothing() throws {
        let plain = try make(one: AnimationMetadataTests.film(), "12x,webp")
        var grey = Self.displayP3
        grey.replaceSubrange(16..<20, with: "GRAY".utf8)
        var inks = Self.displayP3
        inks.replaceSubrange(16..<20, with: "CMYK".utf8)
        let noise = (0..<5_000).map { UInt8(truncatingIfNeeded: $0 &* 7919 >> 3) }
        for profile in [Self.sRGB, grey, inks, noise, Array("none".utf8), Array(Self.displayP3.prefix(140))] {
            let file = try Self.file(profile)
            #expect(try make(one: file, "12x,webp") == plain)
            let kept = try make(one: file, "12x,webp,keep-profile")
            // One that is cut short says so itself, and is no better to others than to us.
            #expect((AnimationMetadataTests.chunk("ICCP", of: kept) == profile) == (profile == Self.sRGB))
            #expect(try Film(kept).frames == Film(plain).frames)
        }
    }
}
