import Core
import SystemPackage
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

@Suite(.timeLimit(.minutes(15)))
struct AnimationTransformTests {
    private static func gif(_ width: Int = 60, _ height: Int = 40, frames: Int = 5, loopCount: Int? = 0) -> TestGIF {
        var gif = TestGIF(width: width, height: height, loopCount: loopCount)
        gif.frames = (0..<frames).map { TestGIF.Frame(width, height, seed: $0) }
        for index in gif.frames.indices { gif.frames[index].delay = 5 + index }
        return gif
    }

    private static let durations = [50, 60, 70, 80, 90]

    @Test(arguments: [("30x", ImageFormat.gif), ("30x,gif", .gif), ("30x,webp", .webp), ("60x", .gif)])
    func anAnimationKeepsItsFramesDurationsAndLoops(spec: String, format: ImageFormat) throws {
        let made = try make(Self.gif(loopCount: 4).bytes, "v=\(spec)")
        #expect(made.report.facts.frames == 5)
        #expect(made.report.renditions.map(\.format) == [format])
        let film = try Film(#require(made.files.first))
        // A GIF counts the repetitions after the first time.
        #expect(film.durations == Self.durations && film.loopCount == 5)
        let rendition = try #require(made.report.renditions.first)
        #expect(film.size == PixelSize(width: rendition.width, height: rendition.height))
    }

    @Test func aWebPAnimationIsKept() throws {
        let webp = try make(one: Self.gif().bytes, "60x,webp")
        let made = try make(webp, "a=30x b=30x,gif c=30x,png")
        #expect(made.report.renditions.map(\.format) == [.webp, .gif, .png])
        for file in made.files.prefix(2) { #expect(try Film(file).durations == Self.durations) }
    }

    @Test func anAnimationInItsOwnSizeKeepsItsPixels() throws {
        let gif = Self.gif().bytes
        #expect(try Film(make(one: gif, "60x,gif")).frames == Film(gif).frames)
    }

    @Test func stillFormatsGetTheFirstFrame() throws {
        let gif = Self.gif().bytes
        let made = try make(gif, "a=30x,png,decode-first-frame-only b=30x,gif c=30x,jpeg")
        var first = Self.gif()
        first.frames = Array(first.frames.prefix(1))
        let expected = try Raster(make(one: first.bytes, "30x,png"))
        #expect(made.report.renditions.map(\.format) == [.png, .gif, .jpeg])
        #expect(try Raster(#require(made.files.first)).difference(to: expected) < 1)
    }

    @Test func decodeFirstFrameOnlyMakesAStill() throws {
        let formats = try ["30x", "30x,webp", "30x,gif"].map { spec in
            let made = try make(Self.gif().bytes, "v=\(spec),decode-first-frame-only")
            for file in made.files { #expect(try facts(file).frames == 1) }
            return made.report.renditions.map(\.format)
        }
        #expect(formats == [[.jpeg], [.webp], [.gif]] || formats == [[.png], [.webp], [.gif]])
    }

    @Test func aStillGIFBecomesAStill() throws {
        let made = try make(Self.gif(frames: 1).bytes, "a=30x b=30x,webp c=30x,gif")
        #expect(made.report.renditions.map(\.format).dropFirst() == [.webp, .gif])
        for file in made.files { #expect(try facts(file).frames == 1) }
    }

    @Test(
        arguments: ["20x20,cover", "20x50,contain", "20x50,fill", "100x100,inside,enlarge", "90x90,cover,enlarge"],
        ["gif", "webp"])
    func anAnimationHasTheSizeOfAStillForEveryFit(spec: String, format: String) throws {
        let made = try make(Self.gif().bytes, "v=\(spec),\(format)")
        let film = try Film(#require(made.files.first))
        let still = try make(Self.gif().bytes, "v=\(spec),png").report.renditions
        #expect(still.map { PixelSize(width: $0.width, height: $0.height) } == [film.size])
        #expect(film.frames.count == 5)
    }

    @Test func thePaddingOfAContainedAnimationIsTransparent() throws {
        let film = try Film(make(one: Self.gif(60, 30).bytes, "60x60,contain,gif"))
        for frame in film.frames {
            #expect(frame[3] == 0 && frame[(30 * 60 + 30) * 4 + 3] == 255)
        }
    }

    @Test func limitsAreCheckedBeforeAnyFrameIsDecoded() throws {
        let gif = Self.gif().bytes
        #expect(failure { _ = try make(gif, "v=9x", limits: ImageLimits(frames: 4)) } == .tooManyPixels)
        let few = ImageLimits(animationPixels: 60 * 40 * 5 - 1)
        #expect(failure { _ = try make(gif, "v=9x", limits: few) } == .tooManyPixels)
        #expect(failure { _ = try make(gif, "v=9x,jpeg", limits: few) } == nil)
        let webp = try make(one: gif, "60x,webp")
        #expect(failure { _ = try make(webp, "v=9x", limits: few) } == .tooManyPixels)
        #expect(failure { _ = try make(webp, "v=9x", limits: ImageLimits(pixels: 100)) } == .tooManyPixels)
    }

    /// The canvas is small, and the frames are large.
    @Test func hugeFramesOnASmallCanvasAreRefused() throws {
        var gif = Self.gif(4, 4, frames: 2)
        for index in gif.frames.indices { (gif.frames[index].width, gif.frames[index].height) = (65_535, 65_535) }
        #expect(failure { _ = try Film(gif.bytes) } == .tooManyPixels)
    }
}
