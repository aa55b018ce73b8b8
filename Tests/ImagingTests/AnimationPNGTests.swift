import Core
import SystemPackage
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// Files made by hand compared with the specification's pixels, and written files compared with another program.
@Suite("Animated PNG", .timeLimit(.minutes(15)))
struct AnimationPNGTests {
    private static let size = PixelSize(width: 20, height: 16)

    /// Stripes with holes and half-transparent ones, of another colour in each frame.
    private static func pixel(_ x: Int, _ y: Int, _ number: Int) -> TestImages.Pixel {
        let alpha: UInt8 = [0, 60, 128, 201, 255][(x / 3 + y / 2 + number) % 5]
        return (UInt8(40 * number), UInt8(x * 5), UInt8(y * 7), alpha)
    }

    static func file(_ seed: Int, kind: TestImages.PNGKind = .rgba) -> TestAPNG {
        var file = TestAPNG(width: size.width, height: size.height, kind: kind, loopCount: seed)
        let places = [(0, 0, 20, 16), (2, 4, 9, 7), (10, 8, 10, 8), (0, 0, 5, 16), (18, 14, 2, 2), (3, 3, 4, 4)]
        for (number, place) in places.enumerated() {
            var frame = TestAPNG.Frame(place.2, place.3, at: (place.0, place.1)) { x, y in pixel(x, y, number) }
            frame.disposal = UInt8((seed + number) % 3)
            frame.blend = UInt8((seed >> number) & 1)
            frame.delay = [(10, 100), (1, 0), (10, 1_000), (11, 1_000), (70, 1), (1, 3)][number]
            frame.parts = number + 1
            file.frames.append(frame)
        }
        return file
    }

    /// Section 12.9.
    private static func composed(_ file: TestAPNG) -> [[UInt8]] {
        var canvas = [UInt8](repeating: 0, count: size.pixels * 4)
        var before = canvas
        var frames: [[UInt8]] = []
        for (number, frame) in file.frames.enumerated() {
            if let last = file.frames[..<number].last {
                let isCleared = last.disposal == 1 || last.disposal == 2 && number == 1
                if isCleared { fill(&canvas, last) { _, _, _ in [0, 0, 0, 0] } }
                if last.disposal == 2, number > 1 { canvas = before }
            }
            before = canvas
            fill(&canvas, frame) { x, y, shown in
                let pixel = frame.pixel(x, y)
                let new = [pixel.red, pixel.green, pixel.blue, pixel.alpha]
                return frame.blend == 0 ? new : blended(new, over: shown)
            }
            frames.append(Film.visible(canvas))
        }
        return frames
    }

    private static func blended(_ pixel: [UInt8], over shown: [UInt8]) -> [UInt8] {
        let alpha = Double(pixel[3]) / 255
        let rest = Double(shown[3]) / 255 * (1 - alpha)
        guard alpha + rest > 0 else { return [0, 0, 0, 0] }
        let colours = (0..<3).map { (Double(pixel[$0]) * alpha + Double(shown[$0]) * rest) / (alpha + rest) }
        return (colours + [(alpha + rest) * 255]).map { UInt8($0.rounded()) }
    }

    private static func fill(
        _ canvas: inout [UInt8], _ part: TestAPNG.Frame, _ pixel: (Int, Int, [UInt8]) -> [UInt8],
    ) {
        for y in 0..<part.height {
            for x in 0..<part.width {
                let start = ((part.top + y) * size.width + part.left + x) * 4
                canvas.replaceSubrange(start..<(start + 4), with: pixel(x, y, Array(canvas[start..<(start + 4)])))
            }
        }
    }

    @Test(arguments: 0..<16) func `Frames are blended and disposed`(seed: Int) throws {
        let file = Self.file(seed)
        let film = try Film(file.bytes)
        #expect(film.size == Self.size && film.loopCount == seed)
        #expect(film.durations == [100, 100, 100, 11, 70_000, 333])
        let expected = Self.composed(file)
        #expect(film.frames.count == expected.count)
        for (frame, wanted) in zip(film.frames, expected) {
            #expect(zip(frame, wanted).allSatisfy { abs(Int($0) - Int($1)) <= 1 })
        }
    }

    @Test(arguments: TestImages.PNGKind.allCases)
    func `Frames of every colour type and depth are read`(kind: TestImages.PNGKind) throws {
        var file = Self.file(0, kind: kind)
        for index in file.frames.indices { (file.frames[index].blend, file.frames[index].disposal) = (0, 0) }
        let film = try Film(file.bytes)
        #expect(film.frames.count == 6)
        // Each frame by itself, as a still of the same kind.
        let frame = file.frames[1]
        let png = TestImages.png(frame.width, frame.height, kind: kind, pixel: frame.pixel)
        let still = try Raster(make(one: png, "x,webp,lossless"))
        for y in 0..<frame.height {
            for x in 0..<frame.width {
                let start = ((frame.top + y) * Self.size.width + frame.left + x) * 4
                let shown = film.frames[1][start..<(start + 4)].map(Int.init)
                let seen = still[x, y]
                if shown[3] > 0 { #expect(Array(shown.prefix(seen.count)) == seen, "\(x), \(y)") }
            }
        }
    }

    @Test func `A default picture that is no frame is used for stills`() throws {
        var file = Self.file(2)
        file.picture = { _, _ in (9, 200, 9, 255) }
        let film = try Film(file.bytes)
        #expect(film.frames.count == 6)
        #expect(try film.frames == Film(Self.file(2).bytes).frames)
        let made = try make(file.bytes, "a=x,jpeg b=x,webp,lossless c=x,png,decode-first-frame-only d=20x16,png")
        #expect(made.report.facts.frames == 6)
        #expect(isNear(try Raster(made.files[0])[5, 5], [9, 200, 9]))
        #expect(try Film(made.files[1]).frames == film.frames)
        #expect(isNear(Array(try Raster(made.files[2])[5, 5].prefix(3)), [9, 200, 9], within: 0))
        // It is what was asked for.
        #expect(made.files[3] == file.bytes)
    }

    @Test func `A written PNG has the frames of its source`() throws {
        for seed in 0..<8 {
            let film = try Film(Self.file(seed).bytes)
            // Effects that aren't for animations make no difference but that the file is written anew.
            for spec in ["x,png,blur:2", "x,apng,strip-copyright,max-bytes:900000,blur:2"] {
                let again = try Film(make(one: Self.file(seed).bytes, spec))
                #expect(again.frames == film.frames && again.durations == film.durations)
                #expect(again.loopCount == film.loopCount && again.size == film.size)
            }
        }
    }

    @Test func `apngdis reads the same frames`() throws {
        var gif = TestGIF(width: 60, height: 40, loopCount: 3)
        gif.frames = (0..<5).map { TestGIF.Frame(60, 40, seed: $0) }
        let file = try make(one: gif.bytes, "40x,png")
        let film = try Film(file)
        #expect(film.frames.count == 5 && film.loopCount == 4)
        try withTemporaryDirectory { directory in
            let input = directory.appending("in.png")
            try Film.write(file, to: input)
            #expect(try ChildProcess.run("apngdis", [input.string, "f"]) == 0)
            for (number, frame) in film.frames.enumerated() {
                let raster = try Raster(Corpus.bytes(directory.appending("f\(number + 1).png")))
                let seen = raster.channels == 4 ? raster.bytes : raster.bytes.withAlpha
                #expect(Film.visible(seen) == frame, "frame \(number)")
                let words = String(decoding: try Corpus.bytes(directory.appending("f\(number + 1).txt")), as: UTF8.self)
                #expect(words.contains("delay=\(film.durations[number])/1000"))
            }
        }
    }

    @Test func `Effects are applied to every frame with transform-animated-image`() throws {
        let film = try Film(make(one: Self.file(3).bytes, "x,png,invert,transform-animated-image"))
        let before = try Film(Self.file(3).bytes)
        #expect(film.frames.count == 6)
        #expect(film.frames != before.frames && film.durations == before.durations)
    }
}

extension [UInt8] {
    /// Of red, green and blue, the same with an opaque alpha.
    fileprivate var withAlpha: [UInt8] {
        stride(from: 0, to: count, by: 3).flatMap { Array(self[$0..<($0 + 3)]) + [255] }
    }
}

@Suite("Damaged animated PNG", .timeLimit(.minutes(15)))
struct AnimationPNGDamageTests {
    private static func file() -> TestAPNG {
        var file = TestAPNG(width: 30, height: 20)
        for number in 0..<4 {
            var frame = TestAPNG.Frame(30, 20) { x, y in (UInt8(x * 8), UInt8(y * 12), UInt8(60 * number), 255) }
            frame.parts = 2
            file.frames.append(frame)
        }
        return file
    }

    @Test func `A cut file is truncated, unless cut behind its last frame`() throws {
        let (whole, ends) = Self.file().made
        for cut in Array(stride(from: 33, to: whole.count, by: 61)) + ends.flatMap({ [$0 - 1, $0, $0 + 1] }) {
            let cutFile = Array(whole.prefix(cut))
            let code = failure { _ = try make(cutFile, "a=20x,png b=20x,webp c=9x,jpeg") }
            #expect(code == (cut == ends.last ? nil : .truncated), "\(cut)")
            #expect(failure { _ = try make(cutFile, "") } == code, "\(cut)")
        }
    }

    @Test func `Fewer and more frames than announced are accepted, as in browsers`() throws {
        for announced in [1, 2, 3, 9] {
            var file = Self.file()
            file.announced = announced
            #expect(try Film(file.bytes).frames.count == 4)
        }
    }

    private func code(_ change: (inout TestAPNG) -> Void) -> FailureClass? {
        var file = Self.file()
        change(&file)
        return failure { _ = try make(file.bytes, "a=20x,png") }
    }

    @Test func `An invalid frame is a bad image`() {
        #expect(code { $0.frames[2].left = 1 } == .badImage)
        #expect(code { $0.frames[2].top = 1 << 31 } == .badImage)
        #expect(code { ($0.frames[2].width, $0.frames[2].height) = (0, 5) } == .badImage)
        #expect(code { $0.frames[1].disposal = 3 } == .badImage)
        #expect(code { $0.frames[1].blend = 2 } == .badImage)
        // A first frame that isn't the default picture, or no animation at all: a still, as in browsers.
        #expect(code { ($0.frames[0].width, $0.frames[0].height) = (9, 9) } == .badImage)
        #expect(code { $0.announced = 0 } == nil)
    }

    @Test func `A wrong checksum or number is a bad image`() throws {
        let (whole, ends) = Self.file().made
        for offset in [ends[0] + 12, ends[1] + 15, ends[1] + 60, ends[2] - 2] {
            var bytes = whole
            bytes[offset] ^= 1
            #expect(failure { _ = try make(bytes, "a=20x,webp") } == .badImage, "\(offset)")
        }
        // Two frames that changed places.
        let frames = [whole[ends[0]..<ends[1]], whole[ends[1]..<ends[2]]]
        let swapped = whole[..<ends[0]] + frames[1] + frames[0] + whole[ends[2]...]
        #expect(failure { _ = try make(Array(swapped), "a=20x,webp") } == .badImage)
    }

    @Test func `A job that accepts damage gets the frames before the damage`() throws {
        let (whole, ends) = Self.file().made
        let tolerance = DecodeTolerance(acceptsDamage: true)
        let cut = try make(Array(whole.prefix(ends[1] + 70)), "a=30x,webp,lossless", tolerance: tolerance)
        #expect(cut.report.facts.damage != nil)
        #expect(try Film(cut.files[0]).frames == Array(Film(whole).frames.prefix(2)))
    }

    @Test func `Limits are checked before memory is allocated`() throws {
        let file = Self.file().bytes
        #expect(failure { _ = try make(file, "a=9x,webp", limits: ImageLimits(frames: 3)) } == .tooManyPixels)
        let few = ImageLimits(animationPixels: 2_399)
        #expect(failure { _ = try make(file, "a=9x,png", limits: few) } == .tooManyPixels)
        // Its default picture is still that of a still.
        #expect(failure { _ = try make(file, "a=9x,jpeg", limits: ImageLimits(frames: 3)) } == nil)
    }

    @Test func `Mutated files succeed or fail with a class`() throws {
        var random = SystemRandomNumberGenerator()
        let seeds = [Self.file().bytes, try make(one: Self.file().bytes, "20x,png")]
        for round in 0..<400 {
            var bytes = seeds[round % seeds.count]
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                bytes[Int.random(in: 6..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
            }
            let limits = ImageLimits(pixels: 1_000_000, animationPixels: 3_000_000)
            let tolerance = DecodeTolerance(acceptsDamage: round % 3 == 0)
            _ = failure { _ = try make(bytes, "a=20x,gif b=20x,png", limits: limits, tolerance: tolerance) }
            _ = failure { _ = try Film(bytes, limits: limits) }
        }
    }
}
