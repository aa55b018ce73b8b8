import SystemPackage
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// Files composed by libwebp's own tools; their frames are compared with a few lines that do what the container's
/// specification says.
@Suite(.timeLimit(.minutes(15)))
struct AnimationWebPTests {
    struct Part: Sendable {
        var left: Int
        var top: Int
        var width: Int
        var height: Int
        var duration: Int
        var isCleared: Bool
        var isBlended: Bool
        /// Some of the stripes are half transparent.
        var isSoft = false

        /// Stripes with holes, of one colour a part.
        func pixel(_ x: Int, _ y: Int, _ number: Int) -> [UInt8] {
            let stripe = (x / 3 + y / 2 + number) % (isSoft ? 5 : 3)
            let alpha: UInt8 = isSoft ? [0, 60, 128, 201, 255][stripe] : stripe == 0 ? 0 : 255
            return stripe == 0 ? [0, 0, 0, 0] : [UInt8(40 * number), UInt8(x * 5), UInt8(y * 7), alpha]
        }

        /// As `webpmux` wants it.
        var option: String {
            "+\(duration)+\(left)+\(top)+\(isCleared ? 1 : 0)\(isBlended ? "+b" : "-b")"
        }
    }

    private static let size = PixelSize(width: 20, height: 16)

    static func parts(_ seed: Int, isSoft: Bool = false) -> [Part] {
        let places = [(0, 0, 20, 16), (2, 4, 9, 7), (10, 8, 10, 8), (0, 0, 5, 16), (18, 14, 2, 2)]
        return places.enumerated().map { number, place in
            Part(
                left: place.0, top: place.1, width: place.2, height: place.3,
                duration: [100, 5, 10, 11, 70_000][number],
                isCleared: (seed >> (number % 3)) & 1 == 1, isBlended: (seed >> (number % 2 + 1)) & 1 == 0,
                isSoft: isSoft)
        }
    }

    static func file(_ parts: [Part], loopCount: Int) throws -> [UInt8] {
        try withTemporaryDirectory { directory in
            var arguments: [String] = []
            for (number, part) in parts.enumerated() {
                let png = directory.appending("\(number).png")
                let webp = directory.appending("\(number).webp")
                let image = TestImages.png(part.width, part.height, kind: .rgba) { x, y in
                    let pixel = part.pixel(x, y, number)
                    return (pixel[0], pixel[1], pixel[2], pixel[3])
                }
                try Film.write(image, to: png)
                let status = try ChildProcess.run(
                    "cwebp", ["-quiet", "-lossless", "-exact", png.string, "-o", webp.string])
                #expect(status == 0)
                arguments += ["-frame", webp.string, part.option]
            }
            let output = directory.appending("out.webp")
            let status = try ChildProcess.run("webpmux", arguments + ["-loop", "\(loopCount)", "-o", output.string])
            #expect(status == 0)
            return try Corpus.bytes(output)
        }
    }

    /// https://developers.google.com/speed/webp/docs/riff_container#assembling_the_canvas_from_frames
    private static func composed(_ parts: [Part]) -> [[UInt8]] {
        var canvas = [UInt8](repeating: 0, count: size.pixels * 4)
        var frames: [[UInt8]] = []
        for (number, part) in parts.enumerated() {
            let before = parts[..<number].last
            if let before, before.isCleared { fill(&canvas, before) { _, _ in [0, 0, 0, 0] } }
            let shown = canvas
            fill(&canvas, part) { x, y in
                let pixel = part.pixel(x, y, number)
                let start = ((part.top + y) * size.width + part.left + x) * 4
                return part.isBlended ? blended(pixel, over: Array(shown[start..<(start + 4)])) : pixel
            }
            frames.append(canvas)
        }
        return frames
    }

    /// Colours straight and not premultiplied, as they are stored.
    private static func blended(_ pixel: [UInt8], over shown: [UInt8]) -> [UInt8] {
        let alpha = Double(pixel[3]) / 255
        let rest = Double(shown[3]) / 255 * (1 - alpha)
        guard alpha + rest > 0 else { return [0, 0, 0, 0] }
        let colours = (0..<3).map { (Double(pixel[$0]) * alpha + Double(shown[$0]) * rest) / (alpha + rest) }
        return (colours + [(alpha + rest) * 255]).map { UInt8($0.rounded()) }
    }

    private static func fill(_ canvas: inout [UInt8], _ part: Part, _ pixel: (Int, Int) -> [UInt8]) {
        for y in 0..<part.height {
            for x in 0..<part.width {
                let start = ((part.top + y) * size.width + part.left + x) * 4
                canvas.replaceSubrange(start..<(start + 4), with: pixel(x, y))
            }
        }
    }

    @Test(arguments: 0..<8)
    func framesAreBlendedAndDisposed(seed: Int) throws {
        let parts = Self.parts(seed)
        let film = try Film(Self.file(parts, loopCount: seed))
        #expect(film.size == Self.size && film.loopCount == seed)
        #expect(film.durations == [100, 100, 100, 11, 70_000])
        #expect(film.frames == Self.composed(parts))
    }

    /// libwebp counts in whole numbers, so colours may be off by a step or two for each blending.
    @Test(arguments: 0..<8)
    func semitransparentFramesAreBlended(seed: Int) throws {
        let parts = Self.parts(seed, isSoft: true)
        let film = try Film(Self.file(parts, loopCount: 0))
        let expected = Self.composed(parts)
        #expect(film.frames.count == expected.count)
        var soft = 0
        for (frame, wanted) in zip(film.frames, expected) {
            for start in stride(from: 0, to: frame.count, by: 4) {
                let (pixel, other) = (
                    frame[start..<(start + 4)].map(Int.init), wanted[start..<(start + 4)].map(Int.init)
                )
                #expect(isNear(pixel, other, within: 5), "\(pixel) for \(other)")
                if (1..<255).contains(pixel[3]) { soft += 1 }
            }
        }
        #expect(soft > 100)
    }

    /// A lossless WebP keeps the alpha, and a GIF has opaque and transparent pixels only.
    @Test(arguments: [0, 3, 5])
    func semitransparentPixelsStaySemitransparentInWebP(seed: Int) throws {
        let file = try Self.file(Self.parts(seed, isSoft: true), loopCount: 0)
        let film = try Film(file)
        let made = try make(file, "a=x,webp,lossless,effort:2 b=x,gif")
        #expect(try Film(made.files[0]).frames == film.frames)
        for (frame, shown) in zip(try Film(made.files[1]).frames, film.frames) {
            for alpha in stride(from: 3, to: frame.count, by: 4) {
                #expect(frame[alpha] == (shown[alpha] < 128 ? 0 : 255))
            }
        }
    }
}
