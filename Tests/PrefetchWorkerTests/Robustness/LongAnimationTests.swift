import SystemPackage
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// Animations of hundreds of frames: a helper's memory doesn't depend on their number.
@Suite(.serialized, .timeLimit(.minutes(15)), .enabled(if: Workplace.isBuilt, Workplace.notBuilt))
struct LongAnimationTests {
    /// 240 million pixels; where nothing was optimised a tenth of them, which takes as long.
    private static let frames: Int = {
        #if DEBUG
            50
        #else
            500
        #endif
    }()

    @Test func fiveHundredFramesAreScaledDownInLittleMemory() async throws {
        let gif = TestImages.gif(800, 600, frames: Self.frames)
        try await PictureHelper.lend { helper in
            let answer = try await helper.make(gif, "a=80x60,gif", within: 100)
            #expect(answer.isDone && answer.peak < 150, "\(answer)")
        }
    }

    /// To WebP in full size, and from WebP to GIF.
    @Test func fiveHundredFramesAreConvertedToWebPAndBackInLittleMemory() async throws {
        let gif = try Self.film(PixelSize(width: 800, height: 600), Self.frames) { place, number in
            let step = UInt8(truncatingIfNeeded: place % 800 / 50 + place / 40_000 + number)
            return Pixel(red: step << 4, green: step << 2, blue: step)
        }
        try await PictureHelper.lend { helper in
            let there = try await helper.make(gif, "a=x,webp,effort:0", within: 200)
            #expect(there.isDone && there.peak < 150, "\(there)")
            let back = try await helper.make(try #require(there.files.first), "a=400x,gif", within: 200)
            #expect(back.isDone && back.peak < 150, "\(back)")
            #expect(back.report?.facts.frames == Self.frames, "\(back)")
        }
    }

    /// To AVIF and JPEG XL, and from these to WebP: five times the frames take hardly more memory.
    @Test(arguments: ["avif", "jxl,effort:3"])
    func `More frames of the newer formats take no more memory`(format: String) async throws {
        var peaks: [[Int]] = []
        for frames in [Self.frames / 10, Self.frames / 2] {
            let gif = try Self.film(PixelSize(width: 320, height: 240), frames) { place, number in
                let step = UInt8(truncatingIfNeeded: place % 320 / 20 + place / 6_400 + number)
                return Pixel(red: step << 4, green: step << 2, blue: step)
            }
            let peak = try await PictureHelper.lend { helper in
                let there = try await helper.make(gif, "a=x,\(format)", within: 200)
                #expect(there.isDone, "\(there)")
                let back = try await helper.make(try #require(there.files.first), "a=160x,webp,effort:0", within: 200)
                #expect(back.isDone && back.report?.facts.frames == frames, "\(back)")
                return [there.peak, back.peak]
            }
            peaks.append(peak)
        }
        #expect(zip(peaks[0], peaks[1]).allSatisfy { $1 < $0 + 24 }, "\(peaks) MiB")
    }

    /// Frames of noise, which encode to many megabytes.
    @Test func writtenFramesAreNotHeldInMemory() async throws {
        var peaks: [Int] = []
        var sizes: [Int] = []
        for frames in [Self.frames / 5, Self.frames] {
            let answer = try await PictureHelper.lend { helper in
                try await helper.make(Self.noise(frames), "a=400x300,enlarge,webp,lossless,effort:0", within: 300)
            }
            #expect(answer.isDone && answer.report?.facts.frames == frames, "\(answer)")
            peaks.append(answer.peak)
            sizes.append((answer.files.first?.count ?? 0) >> 20)
        }
        let what: Comment = "\(peaks) MiB for files of \(sizes) MiB"
        #expect(peaks[1] < 150, what)
        // Fewer frames than these are held as one run.
        #expect(Self.frames < 500 || peaks[1] < peaks[0] + 16 && sizes[1] > 100, what)
    }

    /// A small GIF that changes everywhere.
    private static func noise(_ frames: Int) throws -> [UInt8] {
        var random = SeededGenerator(seed: 3)
        return try film(PixelSize(width: 50, height: 38), frames) { _, _ in
            let bits = UInt8.random(in: 0...255, using: &random)
            return Pixel(red: bits & 0xE0, green: (bits & 0x1C) << 3, blue: bits << 6)
        }
    }

    /// - Parameter pixel: of a place, counted row by row, and a frame's number.
    private static func film(_ size: PixelSize, _ frames: Int, pixel: (Int, Int) -> Pixel) throws -> [UInt8] {
        try withTemporaryDirectory { folder in
            let path = folder.appending("film.gif")
            let file = try FileDescriptor.open(path, .writeOnly, options: .create, permissions: .ownerReadWrite)
            try file.closeAfter {
                let sink = try GIFFrameSink(file, size: size, loopCount: 0)
                let frame = try PixelBuffer(size)
                for number in 0..<frames {
                    frame.lend { pixels in for place in pixels.indices { pixels[place] = pixel(place, number) } }
                    try sink.add(frame, duration: 50)
                }
                try sink.finish()
            }
            return try Corpus.bytes(path)
        }
    }
}
