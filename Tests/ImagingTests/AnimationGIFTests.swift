import SystemPackage
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// Composed frames compared with ImageMagick's.
@Suite(.timeLimit(.minutes(15)))
struct AnimationGIFTests {
    struct Case: CustomTestStringConvertible, Sendable {
        let disposal: Int
        let transparent: UInt8?
        let isInterlaced: Bool
        let isLocal: Bool

        var testDescription: String {
            "disposal \(disposal), transparent \(transparent.map(String.init) ?? "none"), interlaced \(isInterlaced), "
                + "local colours \(isLocal)"
        }

        static let all: [Case] = (0...3).flatMap { disposal in
            [nil, 2].flatMap { transparent in
                [false, true].flatMap { isInterlaced in
                    [false, true].map {
                        Case(disposal: disposal, transparent: transparent, isInterlaced: isInterlaced, isLocal: $0)
                    }
                }
            }
        }
    }

    /// Offsets inside, at the edges and over them.
    private static let places = [
        (0, 0, 24, 18), (3, 2, 9, 7), (15, 10, 9, 8), (18, 12, 20, 20), (0, 5, 24, 1), (5, 0, 1, 18),
    ]

    static func gif(_ test: Case) -> TestGIF {
        var gif = TestGIF(width: 24, height: 18)
        for (number, place) in places.enumerated() {
            var frame = TestGIF.Frame(place.2, place.3, seed: number)
            (frame.left, frame.top) = (place.0, place.1)
            // The first covers all, and stays for one that is taken back.
            frame.disposal = number == 0 && test.disposal == 3 ? 1 : test.disposal
            frame.transparent = test.transparent
            frame.isInterlaced = test.isInterlaced
            frame.colours = test.isLocal && number % 2 == 1 ? TestGIF.otherColours : nil
            gif.frames.append(frame)
        }
        return gif
    }

    @Test(arguments: Case.all)
    func composedFramesAreThoseOfImageMagick(test: Case) throws {
        let file = Self.gif(test).bytes
        let film = try Film(file)
        let expected = try Film.frames(ofFile: file, byImageMagick: film.size)
        #expect(film.frames.count == Self.places.count)
        #expect(film.frames == expected)
    }

    @Test func framesWithMixedDisposalsAreThoseOfImageMagick() throws {
        for seed in 0..<24 {
            var gif = Self.gif(Case(disposal: 0, transparent: 1, isInterlaced: false, isLocal: seed % 2 == 0))
            for index in gif.frames.indices.dropFirst() { gif.frames[index].disposal = (seed * 7 + index * index) % 4 }
            let film = try Film(gif.bytes)
            #expect(film.frames == (try Film.frames(ofFile: gif.bytes, byImageMagick: film.size)), "\(seed)")
        }
    }

    @Test(arguments: [(0, 100), (1, 100), (2, 20), (10, 100), (65_535, 655_350)])
    func delaysAreReadInMilliseconds(delay: Int, duration: Int) throws {
        var gif = TestGIF(width: 4, height: 4)
        gif.frames = [TestGIF.Frame(4, 4), TestGIF.Frame(4, 4, seed: 1)]
        gif.frames[1].delay = delay
        #expect(try Film(gif.bytes).durations == [100, duration])
    }

    @Test(arguments: [
        (nil, "NETSCAPE2.0", 1), (0, "NETSCAPE2.0", 0), (7, "NETSCAPE2.0", 8), (513, "ANIMEXTS1.0", 514),
        (65_535, "NETSCAPE2.0", 65_536), (9, "XMP DataXMP", 1),
    ])
    func aGIFPlaysOnceMoreThanItsLoopCount(count: Int?, name: String, expected: Int) throws {
        var gif = TestGIF(width: 4, height: 4, loopCount: count, loopName: name)
        gif.frames = [TestGIF.Frame(4, 4), TestGIF.Frame(4, 4, seed: 1)]
        #expect(try Film(gif.bytes).loopCount == expected)
    }

    @Test func commentsAndUnknownExtensionsAreSkipped() throws {
        var gif = TestGIF(width: 9, height: 9)
        gif.frames = (0..<3).map { TestGIF.Frame(9, 9, seed: $0) }
        let plain = try Film(gif.bytes)
        gif.extras = TestGIF.comment + TestGIF.unknownExtension
        #expect(try Film(gif.bytes).frames == plain.frames)
    }

    @Test func withoutAPaletteTheFirstTwoColoursAreBlackAndWhite() throws {
        var gif = TestGIF(width: 4, height: 1, colours: nil)
        gif.frames = [TestGIF.Frame(4, 1), TestGIF.Frame(4, 1)]
        gif.frames[0].pixels = [0, 1, 1, 2]
        let frame = try #require(try Film(gif.bytes).frames.first)
        #expect(frame == [0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0])
    }

    @Test func aFrameOutsideTheCanvasOrWithoutPixelsChangesNothing() throws {
        var gif = TestGIF(width: 6, height: 6)
        var outside = TestGIF.Frame(5, 5, seed: 1)
        (outside.left, outside.top) = (60, 2)
        gif.frames = [TestGIF.Frame(6, 6), outside, TestGIF.Frame(0, 3), TestGIF.Frame(6, 6, seed: 2)]
        let film = try Film(gif.bytes)
        #expect(film.frames.count == 4)
        #expect(film.frames[1] == film.frames[0] && film.frames[2] == film.frames[0])
        #expect(film.frames[3] != film.frames[0])
    }

    @Test(arguments: [[], [0x00], [0xAB, 0xCD], [0x3B, 0x2C, 0xFF]] as [[UInt8]])
    func aMissingOrBrokenTrailerChangesNoFrame(trailer: [UInt8]) throws {
        var gif = TestGIF(width: 6, height: 6)
        gif.frames = [TestGIF.Frame(6, 6), TestGIF.Frame(6, 6, seed: 1)]
        let whole = try Film(gif.bytes)
        gif.trailer = trailer
        #expect(try Film(gif.bytes).frames == whole.frames)
    }
}
