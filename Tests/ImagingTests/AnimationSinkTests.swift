import Core
import SystemPackage
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// Written animations are read back.
@Suite(.timeLimit(.minutes(15)))
struct AnimationSinkTests {
    private static func gif(loopCount: Int = 0) -> (FileDescriptor, PixelSize) throws -> any FrameSink {
        { try GIFFrameSink($0, size: $1, loopCount: loopCount) }
    }

    private static func lossless(_ file: FileDescriptor, _ size: PixelSize) throws -> any FrameSink {
        try WebPFrameSink(file, size: size, loopCount: 3, WebPFrameSettings(compression: .lossless()))
    }

    /// Pixels that come, go and become transparent, of few colours in each frame.
    private static func moving(_ x: Int, _ y: Int, _ number: Int) -> Pixel {
        if (x + number * 3) % 16 < 4, y > number { return Pixel() }
        let isBall = abs(x - number * 4) < 5 && abs(y - 10) < 5
        return isBall ? Pixel(red: 255, green: UInt8(number), blue: 9) : Pixel(red: UInt8(y * 8), green: 40, blue: 90)
    }

    /// 256 colours in every frame, others in each.
    private static func colourful(_ x: Int, _ y: Int, _ number: Int) -> Pixel {
        Pixel(red: UInt8(x * 8), green: UInt8(y * 32), blue: UInt8(number * 40))
    }

    private static func bytes(_ width: Int, _ height: Int, _ number: Int, _ pixel: (Int, Int, Int) -> Pixel) -> [UInt8]
    {
        (0..<(width * height)).flatMap { place in
            let pixel = pixel(place % width, place / width, number)
            return [pixel.red, pixel.green, pixel.blue, pixel.alpha].map { UInt8($0) }
        }
    }

    @Test func framesOfFewColoursAreExact() throws {
        let file = try encoded(40, 24, durations: [Int](repeating: 50, count: 9), sink: Self.gif(), pixel: Self.moving)
        let film = try Film(file)
        #expect(film.frames == (0..<9).map { Self.bytes(40, 24, $0, Self.moving) })
        #expect(film.frames == (try Film.frames(ofFile: file, byImageMagick: film.size)))
    }

    @Test func framesWithAFullPaletteAreExact() throws {
        let file = try encoded(32, 8, durations: [50, 50, 50], sink: Self.gif(), pixel: Self.colourful)
        #expect(try Film(file).frames == (0..<3).map { Self.bytes(32, 8, $0, Self.colourful) })
    }

    @Test func losslessWebPIsExact() throws {
        for pixel in [Self.moving, Self.colourful] {
            let file = try encoded(30, 8, durations: [50, 60, 70], sink: Self.lossless, pixel: pixel)
            let film = try Film(file)
            #expect(film.frames == (0..<3).map { Self.bytes(30, 8, $0, pixel) })
            #expect(film.durations == [50, 60, 70] && film.loopCount == 3)
        }
    }

    @Test func framesOfManyColoursAreNearToTheSource() throws {
        func pixel(_ x: Int, _ y: Int, _ number: Int) -> Pixel {
            Pixel(red: UInt8(x * 2), green: UInt8(y * 2), blue: UInt8((x + y + number * 20) & 0xFF))
        }
        let file = try encoded(128, 128, durations: [50, 50], sink: Self.gif(), pixel: pixel)
        for (number, frame) in try Film(file).frames.enumerated() {
            let expected = Self.bytes(128, 128, number, pixel)
            let difference = zip(frame, expected).reduce(0) { $0 + abs(Int($1.0) - Int($1.1)) }
            #expect(Double(difference) / Double(frame.count) < 8)
        }
    }

    @Test func semitransparentPixelsBecomeOpaqueOrTransparent() throws {
        let file = try encoded(2, 1, durations: [50, 50], sink: Self.gif()) { x, _, number in
            Pixel(red: 200, green: 100, blue: 50, alpha: (x + number) % 2 == 0 ? 128 : 127)
        }
        let (shown, nothing): ([UInt8], [UInt8]) = ([200, 100, 50, 255], [0, 0, 0, 0])
        #expect(try Film(file).frames == [shown + nothing, nothing + shown])
    }

    @Test func unchangedFramesAreKept() throws {
        let file = try encoded(9, 9, durations: [50, 60, 70, 80], sink: Self.gif()) { x, y, _ in
            Pixel(red: UInt8(x), green: UInt8(y), blue: 0)
        }
        let film = try Film(file)
        #expect(film.durations == [50, 60, 70, 80] && Set(film.frames).count == 1)
    }

    @Test(arguments: [[33, 33, 34, 33, 33, 34], [17, 17, 16, 50], [25, 35, 45, 45], [4, 6, 90], [655_350, 20]])
    func theTotalDurationStaysExact(durations: [Int]) throws {
        let file = try encoded(2, 2, durations: durations, sink: Self.gif()) { _, _, number in
            Pixel(red: UInt8(number), green: 0, blue: 0)
        }
        let made = try Film(file).durations
        #expect(made.reduce(0, +) == durations.reduce(0, +) && made.allSatisfy { $0 >= 20 })
    }

    @Test(arguments: [0, 1, 2, 500, 65_535])
    func theLoopCountIsWritten(count: Int) throws {
        let file = try encoded(3, 3, durations: [50, 50], sink: Self.gif(loopCount: count)) { _, _, number in
            Pixel(red: UInt8(number * 90), green: 0, blue: 0)
        }
        #expect(try Film(file).loopCount == count)
    }

    @Test func anAnimationWithoutFramesFails() throws {
        #expect(failure { _ = try encoded(2, 2, durations: [], sink: Self.gif(), pixel: Self.moving) } == .encode)
    }

    @Test func aFullDiskIsAnEncodeFailure() throws {
        let full = try FileDescriptor.open("/dev/full", .writeOnly)
        try full.closeAfter {
            let size = PixelSize(width: 40, height: 24)
            for sink in [try Self.gif()(full, size), try Self.lossless(full, size)] {
                let code = failure {
                    for _ in 0..<3 { try sink.add(PixelBuffer(size), duration: 50) }
                    try sink.finish()
                }
                #expect(code == .encode)
            }
        }
    }
}
