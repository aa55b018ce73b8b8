import SystemPackage
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// Animated WebPs that are written run by run.
@Suite(.timeLimit(.minutes(15)))
struct AnimationRunTests {
    private static let durations = (0..<60).map { 40 + $0 }

    /// A ball before waves, which leave the edges bare where `isBare`, and are half transparent below.
    private static func pixel(_ isBare: Bool) -> (Int, Int, Int) -> Pixel {
        { x, y, number in
            if isBare, x < 6 || y < 4 || x > 40 { return Pixel() }
            if abs(x - number * 7 % 32 - 8) < 5 && abs(y - 12) < 5 {
                return Pixel(red: 250, green: UInt8(number), blue: 9)
            }
            return Pixel(
                red: UInt8((x * 5 + number / 20 * 30) & 255), green: UInt8(y * 9), blue: 70,
                alpha: isBare && y > 20 ? 120 : 255)
        }
    }

    private static func file(
        _ compression: WebPFrameSettings.Compression, most: Int?, durations: [Int] = durations,
        metadata: AnimationMetadata = AnimationMetadata(), pixel: (Int, Int, Int) -> Pixel,
    ) throws -> [UInt8] {
        let settings = WebPFrameSettings(compression: compression, pixelsInMemory: most)
        return try encoded(
            48, 28, durations: durations,
            sink: { try WebPFrameSink($0, size: $1, loopCount: 7, settings, metadata: metadata) }, pixel: pixel)
    }

    @Test(arguments: [false, true], [1, 4_000, 15_000])
    func manyRunsHaveTheSameFramesAsOneRun(isBare: Bool, most: Int) throws {
        let pixel = Self.pixel(isBare)
        let one = try Self.file(.lossless(), most: nil, pixel: pixel)
        let many = try Self.file(.lossless(), most: most, pixel: pixel)
        let film = try Film(many)
        #expect(film.frames == (try Film(one).frames) && film.durations == Self.durations && film.loopCount == 7)
        #expect(try Self.info(many).contains("Number of frames: 60"))
        // One frame a run is the most that it can cost.
        #expect(most == 1 || many.count < one.count * 5 / 4, "\(many.count) \(one.count)")
        #expect(many != one)
    }

    @Test(arguments: [false, true]) func manyLossyRunsAreAsGoodAsOneRun(isBare: Bool) throws {
        let pixel = Self.pixel(isBare)
        let one = try Self.file(.lossy(quality: 80), most: nil, pixel: pixel)
        let many = try Self.file(.lossy(quality: 80), most: 10_000, pixel: pixel)
        let (expected, film) = (try Film(one), try Film(many))
        #expect(film.durations == Self.durations && many.count < one.count * 5 / 4, "\(many.count) \(one.count)")
        for (frame, other) in zip(film.frames, expected.frames) {
            let difference = zip(frame, other).reduce(0) { $0 + abs(Int($1.0) - Int($1.1)) }
            #expect(Double(difference) / Double(frame.count) < 8)
        }
    }

    @Test func unchangedFramesAreMergedIntoLongerOnes() throws {
        let durations = [Int](repeating: 900, count: 60)
        let file = try Self.file(.lossless(), most: 3_000, durations: durations) { x, y, number in
            Pixel(red: UInt8(x), green: UInt8(y), blue: UInt8(number / 7))
        }
        #expect(try Film(file).durations == [Int](repeating: 6_300, count: 8) + [3_600])
    }

    @Test func anAnimationMayBecomeTransparentInLaterRuns() throws {
        let file = try Self.file(.lossless(), most: 3_000) { x, y, number in
            number < 50 || x > 4 ? Pixel(red: UInt8(x), green: UInt8(y + number), blue: 3) : Pixel()
        }
        let film = try Film(file)
        #expect(film.frames[49][3] == 255 && film.frames[59][3] == 0)
        #expect(try Self.info(file).contains("transparency"))
    }

    @Test func bytesBeforeTheAnimationStayUnchanged() throws {
        let size = PixelSize(width: 48, height: 28)
        for most in [3_000, nil] {
            let bytes = try withFile(Array("before".utf8)) { file in
                try file.seek(offset: 0, from: .end)
                let settings = WebPFrameSettings(compression: .lossless(), pixelsInMemory: most)
                let sink = try WebPFrameSink(file, size: size, loopCount: 0, settings)
                for number in 0..<30 {
                    let frame = try PixelBuffer(size)
                    frame.lend { $0.update(repeating: Pixel(red: UInt8(number * 8), green: 0, blue: 0)) }
                    try sink.add(frame, duration: 50)
                }
                try sink.finish()
                return try readAll(file)
            }
            #expect(bytes.starts(with: "before".utf8))
            #expect(try Film(Array(bytes.dropFirst(6))).frames.count == 30)
        }
    }

    /// What libwebp's own tool says of a file, which must be whole.
    private static func info(_ file: [UInt8]) throws -> String {
        try withTemporaryDirectory { directory in
            let path = directory.appending("film.webp")
            let output = directory.appending("info")
            try Film.write(file, to: path)
            #expect(try AnimationMetadataTests.isValid(file))
            #expect(try ChildProcess.run("sh", ["-c", "webpmux -info '\(path)' >'\(output)'"]) == 0)
            return String(decoding: try Corpus.bytes(output), as: UTF8.self)
        }
    }
}
