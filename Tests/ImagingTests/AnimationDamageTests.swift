import Core
import SystemPackage
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// Every damaged file is decoded or fails with a class.
@Suite(.timeLimit(.minutes(15)))
struct AnimationDamageTests {
    private static func gif() -> TestGIF {
        var gif = TestGIF(width: 50, height: 40, loopCount: 0)
        gif.frames = (0..<6).map { TestGIF.Frame(50, 40, seed: $0) }
        return gif
    }

    @Test func aCutGIFIsTruncatedUnlessCutBetweenFrames() throws {
        let gif = Self.gif()
        let (whole, ends) = (gif.bytes, gif.ends)
        let cuts = Array(stride(from: 7, to: whole.count, by: 64)) + ends.flatMap { [$0 - 1, $0, $0 + 1] }
        for cut in cuts where cut < whole.count {
            let code = failure { _ = try Film(Array(whole.prefix(cut))) }
            #expect(code == (ends.contains(cut) ? nil : .truncated), "\(cut)")
            // What was decoded of the others isn't a rendition either.
            let made = failure { _ = try make(Array(whole.prefix(cut)), "a=20x,gif b=20x,png") }
            #expect(made == (ends.contains(cut) ? nil : .truncated), "\(cut)")
        }
    }

    @Test func aCutWebPIsTruncated() throws {
        let whole = try make(one: Self.gif().bytes, "50x,webp")
        for cut in stride(from: 16, to: whole.count, by: 64) {
            #expect(failure { _ = try make(Array(whole.prefix(cut)), "a=20x,webp") } == .truncated, "\(cut)")
            #expect(failure { _ = try Film(Array(whole.prefix(cut))) } == .truncated, "\(cut)")
        }
    }

    @Test func mutatedAnimationsSucceedOrFailWithAClass() throws {
        var random = SystemRandomNumberGenerator()
        let gif = Self.gif().bytes
        let seeds = [gif, try make(one: gif, "50x,webp"), try make(one: gif, "20x,gif")]
        for round in 0..<600 {
            var bytes = seeds[round % seeds.count]
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                bytes[Int.random(in: 6..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
            }
            let limits = ImageLimits(pixels: 1_000_000, animationPixels: 3_000_000)
            _ = failure { _ = try make(bytes, "a=20x,gif b=20x,webp", limits: limits) }
            _ = failure { _ = try Film(bytes, limits: limits) }
        }
    }

    @Test(.enabled(if: Corpus.isThere, "\(Corpus.missing)"), arguments: ["gif", "webp"])
    func malformedAnimationsSucceedOrFailWithAClass(folder: String) throws {
        let limits = ImageLimits(pixels: 1_000_000, animationPixels: 4_000_000)
        for file in Corpus.files("malformed/\(folder)") {
            let bytes = try Corpus.bytes(file)
            _ = failure { _ = try Film(bytes, limits: limits) }
            _ = failure { _ = try make(bytes, "a=32x,gif b=32x,webp", limits: limits) }
        }
    }

    @Test(.enabled(if: Corpus.isThere, "\(Corpus.missing)"))
    func theSamplesFramesAreThoseOfImageMagick() throws {
        let file = try Corpus.bytes(Corpus.directory.appending("samples/cat.gif"))
        let film = try Film(file)
        #expect(film.frames == (try Film.frames(ofFile: file, byImageMagick: film.size)))
        let again = try Film(make(one: file, "500x,gif"))
        #expect(again.frames == film.frames && again.durations == film.durations)
    }
}
