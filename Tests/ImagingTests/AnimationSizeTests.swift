import Core
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// The file sizes of animations, and their differences from the source.
@Suite(.timeLimit(.minutes(15)))
struct AnimationSizeTests {
    /// Waves of many colours that move.
    private static func film(_ width: Int = 96, _ height: Int = 64, frames: Int = 6) throws -> [UInt8] {
        try encoded(
            width, height, durations: [Int](repeating: 50, count: frames),
            sink: { try WebPFrameSink($0, size: $1, loopCount: 0, WebPFrameSettings(compression: .lossless())) },
            pixel: { x, y, number in
                Pixel(
                    red: UInt8((x * 2 + number * 9) & 255), green: UInt8((x * y / 8 + number) & 255),
                    blue: UInt8((y * 3 + x + number * 5) & 255))
            })
    }

    @Test(arguments: ["webp", "gif"]) func anAnimationIsEncodedWithinMaxBytes(format: String) throws {
        let film = try Self.film()
        let whole = try make(one: film, "90x,\(format)").count
        let least = try make(one: film, "90x,\(format == "gif" ? "gif,colours:2" : "webp,q1")").count
        let most = (whole + least) / 2
        let made = try make(film, "a=90x,\(format),max-bytes:\(most) b=40x,\(format)")
        #expect(made.files[0].count <= most && made.files[0].count >= least, "\(made.files[0].count), \(most)")
        #expect(try Film(made.files[0]).durations == [Int](repeating: 50, count: 6))
        #expect(made.files[1] == (try make(one: film, "40x,\(format)")))
    }

    /// The palette of the file is that of the first frame, and has no colours for the others.
    @Test func anAnimationMayBeginWithATransparentFrame() throws {
        let film = try encoded(
            96, 64, durations: [50, 50, 50],
            sink: { try WebPFrameSink($0, size: $1, loopCount: 0, WebPFrameSettings(compression: .lossless())) },
            pixel: { x, y, number in
                guard number > 0 else { return Pixel() }
                return Pixel(red: UInt8(x * 2), green: UInt8(y * 3), blue: UInt8((x * y + number * 50) & 255))
            })
        for spec in ["96x,gif", "50x,gif", "50x,gif,colours:8"] {
            let made = try Film(make(one: film, spec))
            #expect(made.durations == [50, 50, 50], "\(spec)")
            #expect(made.frames[0].allSatisfy { $0 == 0 } && made.frames[2].contains { $0 > 0 }, "\(spec)")
        }
    }

    @Test(arguments: ["webp,max-bytes:200", "gif,max-bytes:200", "webp,lossless,max-bytes:2000"])
    func anUnreachableMaxBytesFails(spec: String) throws {
        let film = try Self.film()
        #expect(failure { _ = try make(one: film, "90x,\(spec)") } == .encode)
    }

    @Test func aFileBelowItsMaximumIsUnchanged() throws {
        let film = try Self.film()
        #expect(try make(one: film, "90x,webp,max-bytes:9999999") == make(one: film, "90x,webp"))
    }

    @Test func aGIFHasAtMostTheGivenNumberOfColours() throws {
        let film = try Film(make(one: Self.film(), "90x,gif,colours:8"))
        for frame in film.frames.prefix(1) {
            let colours = Set(stride(from: 0, to: frame.count, by: 4).map { Array(frame[$0..<($0 + 3)]) })
            #expect((2...8).contains(colours.count), "\(colours.count)")
        }
    }

    @Test func fewerColoursAreFewerBytes() throws {
        let film = try Self.film(frames: 12)
        let sizes = try [256, 64, 16, 4].map { try make(one: film, "90x,gif,colours:\($0)").count }
        #expect(sizes == sizes.sorted(by: >), "\(sizes)")
    }

    /// Also for a source that has a palette already.
    @Test func aSmallerPaletteMakesTheFileSmaller() throws {
        let source = try make(one: Self.film(frames: 12), "96x,gif")
        #expect(try make(one: source, "x,gif,colours:32").count < source.count)
    }

    /// One step per frame is within the tolerance for unchanged pixels; a hundred steps must not add up.
    @Test func slowChangesOfPixelsAreDrawn() throws {
        func pixel(_ x: Int, _ y: Int, _ number: Int) -> Pixel {
            Pixel(red: UInt8(x * 2 + number), green: UInt8(y * 3 + number), blue: UInt8((x + y) & 127 + number))
        }
        let file = try encoded(
            60, 40, durations: [Int](repeating: 50, count: 100),
            sink: { try GIFFrameSink($0, size: $1, loopCount: 0) }, pixel: pixel)
        let film = try Film(file)
        for number in [0, 1, 10, 50, 99] {
            var sum = 0
            for place in 0..<(60 * 40) {
                let expected = pixel(place % 60, place / 60, number)
                sum += abs(Int(film.frames[number][place * 4]) - expected.red)
                sum += abs(Int(film.frames[number][place * 4 + 1]) - expected.green)
            }
            #expect(Double(sum) / (2 * 60 * 40) < 7, "frame \(number): \(Double(sum) / (2 * 60 * 40))")
        }
    }

    /// Invisible noise of more colours than a palette has.
    @Test func invisibleChangesAreNotDrawnAgain() throws {
        func size(noise: Int) throws -> Int {
            var random = SeededGenerator(seed: 7)
            return try encoded(
                64, 64, durations: [Int](repeating: 50, count: 8),
                sink: { try GIFFrameSink($0, size: $1, loopCount: 0) }
            ) { x, y, _ in
                let shift = noise == 0 ? 0 : Int.random(in: 0...noise, using: &random)
                return Pixel(red: UInt8(x * 3 + shift), green: UInt8(y * 3 + shift), blue: UInt8(x + y))
            }.count
        }
        let (still, quiet, loud) = (try size(noise: 0), try size(noise: 2), try size(noise: 60))
        #expect(quiet < still * 3 && loud > quiet * 3, "\(still), \(quiet), \(loud)")
    }
}
