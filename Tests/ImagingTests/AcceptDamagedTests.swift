import Core
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// The part of a damaged picture that a browser would show, for jobs with `accept-damaged`.
@Suite(.timeLimit(.minutes(15)))
struct AcceptDamagedTests {
    static let formats = [
        "jpeg", "jpeg,progressive", "png", "png,progressive", "gif", "webp", "webp,lossless",
    ]

    private static let picture = TestImages.png(120, 90) { x, y in
        (UInt8(x * 2), UInt8(y * 2), UInt8((x * y * 7) & 255), 255)
    }

    private static let accepting = DecodeTolerance(acceptsDamage: true)

    @Test(arguments: formats) func theBeginningOfATruncatedPictureIsAccepted(format: String) throws {
        let whole = try make(one: Self.picture, "x,\(format)")
        let cut = Array(whole.prefix(whole.count * 2 / 3))
        #expect(failure { _ = try make(cut, "v=x,png") } == .truncated)
        for specs in ["v=x,png", "v=40x,webp w=20x,jpeg", ""] {
            let made = try make(cut, specs, tolerance: Self.accepting)
            #expect(made.report.facts.damage != nil && made.report.facts.width == 120, "\(specs)")
            #expect(made.files.allSatisfy { !$0.isEmpty })
        }
        let (seen, right) = try (
            Raster(make(cut, "v=x,png", tolerance: Self.accepting).files[0]), Raster(make(one: whole, "x,png"))
        )
        // The first rows are there, or all of them coarsely.
        for x in stride(from: 5, to: 115, by: 10) {
            #expect(isNear(Array(seen[x, 4].prefix(3)), Array(right[x, 4].prefix(3)), within: 40), "\(format), \(x)")
        }
    }

    @Test(arguments: ["jpeg", "png"]) func damageInTheMiddleIsAccepted(format: String) throws {
        var bytes = try make(one: Self.picture, "x,\(format)")
        for place in (bytes.count / 2)..<(bytes.count / 2 + 60) { bytes[place] = 0 }
        #expect(failure { _ = try make(bytes, "v=x,png") } == .badImage)
        let made = try make(bytes, "v=x,png", tolerance: Self.accepting)
        #expect(made.report.facts.damage != nil)
    }

    /// Also small pictures, which the decoder reads at once.
    @Test(arguments: [(64, 48), (20, 15), (200, 150)]) func aTruncatedUncompressedPNGIsAccepted(width: Int, height: Int)
        throws
    {
        let whole = TestImages.png(width, height)
        for part in [1.0 / 3, 2.0 / 3, 0.9] {
            let cut = Array(whole.prefix(Int(Double(whole.count) * part)))
            for specs in ["v=x,png", "v=20x,webp"] {
                let end = failure { _ = try make(cut, specs, tolerance: Self.accepting) }
                #expect(end == nil, "\(part), \(specs)")
            }
        }
    }

    /// Sixteen bits a sample, and pictures or variants of a single colour.
    @Test func deepAndPlainPicturesAreAcceptedToo() throws {
        let deep = TestImages.png(64, 48, kind: .rgba16)
        let single = TestImages.png(64, 48, pixel: TestImages.solid((200, 100, 50, 255)))
        for whole in [deep, single, try make(one: single, "x,png,progressive"), try make(one: deep, "x,png")] {
            var bytes = whole
            bytes[whole.count - 13] ^= 1
            for specs in ["v=x,png", "v=1x1,png,fill w=20x,webp"] {
                let end = failure { _ = try make(bytes, specs, tolerance: Self.accepting) }
                #expect(end == nil, "\(specs)")
            }
        }
        let made = try make(Array(deep.prefix(deep.count * 2 / 3)), "v=x,png", tolerance: Self.accepting)
        let (found, right) = try (Raster(made.files[0]), Raster(deep))
        #expect(found[60, 3] == right[60, 3] && found[60, 46][3] == 0)
    }

    @Test func aTruncatedAnimationEndsWithTheCutFrame() throws {
        var gif = TestGIF(width: 50, height: 40, loopCount: 3)
        gif.frames = (0..<5).map { TestGIF.Frame(50, 40, seed: $0) }
        let cut = Array(gif.bytes.prefix(gif.ends[3] - 30))
        for spec in ["x,webp", "25x,gif"] {
            #expect(failure { _ = try make(cut, "v=\(spec)") } == .truncated)
            let made = try make(cut, "v=\(spec)", tolerance: Self.accepting)
            #expect(try Film(made.files[0]).durations.count == 4 && made.report.facts.damage != nil)
        }
        let webp = try make(one: gif.bytes, "50x,webp")
        let made = try make(Array(webp.prefix(webp.count - 40)), "v=x,gif", tolerance: Self.accepting)
        #expect(try Film(made.files[0]).durations.count == 4 && made.report.facts.damage != nil)
    }

    @Test func aWholePictureIsMadeTheSame() throws {
        for format in Self.formats {
            let whole = try make(one: Self.picture, "x,\(format)")
            let made = try make(whole, "v=90x w=30x,webp", tolerance: Self.accepting)
            #expect(made.files == (try make(whole, "v=90x w=30x,webp").files) && made.report.facts.damage == nil)
        }
    }

    /// A damaged source is always encoded anew.
    @Test func aDamagedPictureIsNeverPassedThrough() throws {
        let cut = Array(try make(one: Self.picture, "x,jpeg").dropLast(300))
        let made = try make(cut, "v=x,jpeg", tolerance: Self.accepting)
        #expect(made.files[0] != cut)
        #expect(failure { _ = try make(made.files[0], "v=x,png") } == nil)
    }

    /// Formats whose decoders deliver no part of a picture.
    @Test(arguments: ["avif", "jxl", "tiff"]) func formatsWithoutPartialDecodingFail(format: String) throws {
        let whole = try make(one: Self.picture, "x,\(format)")
        let cut = Array(whole.prefix(whole.count * 2 / 3))
        #expect(failure { _ = try make(cut, "v=x,png", tolerance: Self.accepting) } == .truncated)
    }

    @Test func aPictureWithoutAnyVisiblePartFails() throws {
        for format in Self.formats {
            let whole = try make(one: Self.picture, "x,\(format)")
            let start = format == "gif" ? 20 : 60
            let end = failure { _ = try make(Array(whole.prefix(start)), "v=x,png", tolerance: Self.accepting) }
            #expect(end == .truncated || end == .badImage, "\(format)")
        }
        #expect(failure { _ = try make(Array("no picture".utf8), "", tolerance: Self.accepting) } == .notAnImage)
    }

    /// Exceeded limits are no damage of the file.
    @Test func limitsHoldForDamagedPicturesToo() throws {
        let large = TestImages.pngHeaderOnly(50_000, 50_000)
        #expect(failure { _ = try make(large, "", tolerance: Self.accepting) } == .tooManyPixels)
    }
}
