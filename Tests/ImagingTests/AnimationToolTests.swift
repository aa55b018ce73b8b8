import SystemPackage
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging
@testable import Variants

/// Written files in the formats' own tools, and those tools' files here, frame by frame.
@Suite("Animations and the tools of their formats", .timeLimit(.minutes(15)))
struct AnimationToolTests {
    private static func isThere(_ names: String...) -> Bool { names.allSatisfy { ChildProcess.find($0) != nil } }

    private static let durations = [50, 60, 1_000, 20]

    private static func frames(_ count: Int, _ pixel: @escaping (Int, Int, Int) -> Pixel) -> [[UInt8]] {
        (0..<count).map { number in
            TestImages.png(48, 40, kind: .rgba) { x, y in
                let pixel = pixel(x, y, number)
                return (UInt8(pixel.red), UInt8(pixel.green), UInt8(pixel.blue), UInt8(pixel.alpha))
            }
        }
    }

    /// RGBA of a PNG file.
    private static func pixels(_ path: FilePath) throws -> [UInt8] {
        let raster = try Raster(Corpus.bytes(path))
        let bytes = raster.channels == 4 ? raster.bytes : raster.bytes.withOpaqueAlpha
        return Film.visible(bytes)
    }

    /// Colours multiplied by their alpha: a file of such colours says little of the others.
    private static func drawn(_ pixels: [UInt8]) -> [UInt8] {
        pixels.enumerated().map { index, value in
            index % 4 == 3 ? value : UInt8((Int(value) * Int(pixels[index | 3]) + 127) / 255)
        }
    }

    private static func difference(_ one: [UInt8], _ other: [UInt8]) -> Int {
        guard one.count == other.count else { return 255 }
        return zip(one, other).reduce(0) { max($0, abs(Int($1.0) - Int($1.1))) }
    }

    // MARK: - GIF and WebP

    @Test(
        .enabled(if: isThere("convert", "identify"), "ImageMagick is not installed."),
        arguments: ["x,gif", "x,webp,lossless", "24x,gif", "24x,webp,lossless"], [0, 1, 2, 9])
    func `ImageMagick reads the frames of written GIFs and WebPs`(spec: String, plays: Int) throws {
        let source = try encoded(
            48, 40, durations: Self.durations, sink: { try PNGFrameSink($0, size: $1, loopCount: plays) },
            pixel: AnimationModernTests.ball)
        let file = try make(one: source, spec)
        let film = try Film(file)
        let theirs = try Film.byImageMagick(file, size: film.size)
        #expect(film.durations == Self.durations && theirs.durations == Self.durations)
        #expect(film.loopCount == plays && theirs.loopCount == plays)
        #expect(film.frames.count == 4 && theirs.frames == film.frames)
    }

    // MARK: - AVIF

    /// libheif 1.15 reads the default picture only, and its tools accept no file of the brand avis.
    @Test(
        .enabled(if: isThere("heif-info", "heif-convert"), "heif-convert is not installed (libheif-examples)."),
        arguments: [(",lossless", 0), (",q95", 3)])
    func `libheif's tools read the default picture of a written AVIF`(options: (String, Int)) throws {
        let file = try AnimationModernTests.made(
            .avif, options.0, 48, 40, durations: Self.durations, pixel: AnimationModernTests.ball)
        let film = try Film(file)
        try withTemporaryDirectory { directory in
            let (input, output) = (directory.appending("in.avif"), directory.appending("out.png"))
            var still = file
            still.replaceSubrange(8..<12, with: Array("avif".utf8))
            try Film.write(still, to: input)
            #expect(try ChildProcess.run("heif-info", [input.string]) == 0)
            #expect(try ChildProcess.run("heif-convert", [input.string, output.string]) == 0)
            #expect(try Self.difference(Self.pixels(output), film.frames[0]) <= options.1)
        }
    }

    @Test(
        .enabled(if: isThere("avifdec"), "avifdec is not installed (libavif-bin)."),
        arguments: [(",lossless", 0), (",q70", 3), (",q95", 3)])
    func `avifdec reads the frames of a written AVIF`(options: (String, Int)) throws {
        let pixel = options.1 == 0 ? AnimationModernTests.pixel : AnimationModernTests.ball
        let file = try AnimationModernTests.made(
            .avif, options.0, 48, 40, loopCount: 2, durations: Self.durations, pixel: pixel)
        let film = try Film(file)
        try withTemporaryDirectory { directory in
            let input = directory.appending("in.avif")
            try Film.write(file, to: input)
            for (number, frame) in film.frames.enumerated() {
                let output = directory.appending("\(number).png")
                #expect(try ChildProcess.run("avifdec", ["--index", "\(number)", input.string, output.string]) == 0)
                // Rounding of colours differs between the ways in which libavif converts them.
                #expect(try Self.difference(Self.pixels(output), frame) <= options.1, "frame \(number)")
            }
            let info = directory.appending("info")
            let files = ChildProcess.Files(output: info.string)
            #expect(try ChildProcess.run("avifdec", ["--info", input.string], files: files) == 0)
            let text = String(decoding: try Corpus.bytes(info), as: UTF8.self)
            for duration in Self.durations { #expect(text.contains("(\(duration) timescales)"), "\(text)") }
        }
    }

    @Test(
        .enabled(if: isThere("avifenc", "avifdec"), "avifenc is not installed (libavif-bin)."),
        arguments: [[], ["--lossless"], ["-y", "420", "--min", "20", "--max", "30"], ["--premultiply"]])
    func `A file of avifenc has the frames that avifdec reads`(options: [String]) throws {
        try withTemporaryDirectory { directory in
            var inputs: [String] = []
            for (number, png) in Self.frames(4, AnimationModernTests.pixel).enumerated() {
                let path = directory.appending("\(number).png")
                try Film.write(png, to: path)
                inputs += ["--duration", "\(Self.durations[number])", path.string]
            }
            let output = directory.appending("out.avif")
            let arguments = ["-s", "8", "--timescale", "1000"] + options + inputs + [output.string]
            #expect(try ChildProcess.run("avifenc", arguments) == 0)
            let film = try Film(Corpus.bytes(output))
            #expect(film.durations == Self.durations && film.frames.count == 4 && film.loopCount == 0)
            for (number, frame) in film.frames.enumerated() {
                let seen = directory.appending("seen\(number).png")
                #expect(try ChildProcess.run("avifdec", ["--index", "\(number)", output.string, seen.string]) == 0)
                let pictures = [try Self.pixels(seen), frame].map {
                    options.contains("--premultiply") ? Self.drawn($0) : $0
                }
                #expect(Self.difference(pictures[0], pictures[1]) <= 3, "frame \(number)")
            }
        }
    }

    @Test(.enabled(if: isThere("avifenc"), "avifenc is not installed (libavif-bin)."), arguments: 0..<4)
    func `Turned and mirrored frames are shown upright`(turn: Int) throws {
        try withTemporaryDirectory { directory in
            var inputs: [String] = []
            // Its left upper quarter is red.
            for (number, png) in Self.frames(
                2,
                { x, y, _ in
                    x < 24 && y < 20 ? Pixel(red: 255, green: 0, blue: 0) : Pixel(red: 0, green: 0, blue: 255)
                }
            ).enumerated() {
                let path = directory.appending("\(number).png")
                try Film.write(png, to: path)
                inputs.append(path.string)
            }
            let output = directory.appending("out.avif")
            for mirror in [nil, 0, 1] {
                let options = ["--irot", "\(turn)"] + (mirror.map { ["--imir", "\($0)"] } ?? [])
                let status = try ChildProcess.run("avifenc", ["-s", "8"] + options + inputs + [output.string])
                guard status != -1 else {
                    withKnownIssue("avifenc 1.2 crashes when it is to turn frames.") {
                        Issue.record("a signal ended it")
                    }
                    return
                }
                #expect(status == 0)
                let film = try Film(Corpus.bytes(output))
                #expect(
                    film.size == (turn % 2 == 0 ? PixelSize(width: 48, height: 40) : PixelSize(width: 40, height: 48)))
                // A quarter counter-clockwise takes the left upper corner to the left lower one.
                var (isLeft, isUpper) = [(true, true), (true, false), (false, false), (false, true)][turn]
                if mirror == 0 { isUpper.toggle() }
                if mirror == 1 { isLeft.toggle() }
                for frame in film.frames {
                    let place =
                        (isUpper ? 4 : film.size.height - 5) * film.size.width + (isLeft ? 4 : film.size.width - 5)
                    #expect(
                        frame[place * 4] > 200 && frame[place * 4 + 2] < 60, "\(turn) \(String(describing: mirror))")
                }
            }
        }
    }

    // MARK: - JPEG XL

    @Test(
        .enabled(if: isThere("djxl"), "djxl is not installed (libjxl-tools)."),
        arguments: [(",lossless", 0), (",q70", 3), (",q95,effort:3", 3)])
    func `djxl reads the frames of a written JPEG XL`(options: (String, Int)) throws {
        let pixel = options.1 == 0 ? AnimationModernTests.pixel : AnimationModernTests.ball
        let file = try AnimationModernTests.made(
            .jxl, options.0, 48, 40, loopCount: 2, durations: Self.durations, pixel: pixel)
        let film = try Film(file)
        let theirs = try Self.decoded(file)
        #expect(theirs.durations == film.durations && theirs.frames.count == film.frames.count)
        for (one, other) in zip(film.frames, theirs.frames) { #expect(Self.difference(one, other) <= options.1) }
    }

    /// cjxl and djxl don't convert the loop count of an APNG; jxlinfo reads it from the header.
    @Test(.enabled(if: isThere("jxlinfo"), "jxlinfo is not installed (libjxl-tools)."), arguments: [0, 1, 2, 9])
    func `jxlinfo reads the loop count of a written JPEG XL`(plays: Int) throws {
        let file = try AnimationModernTests.made(
            .jxl, "", 48, 40, loopCount: plays, durations: Self.durations, pixel: AnimationModernTests.ball)
        #expect(try Film(file).loopCount == plays)
        try withTemporaryDirectory { directory in
            let (input, info) = (directory.appending("in.jxl"), directory.appending("info"))
            try Film.write(file, to: input)
            let files = ChildProcess.Files(output: info.string)
            #expect(try ChildProcess.run("jxlinfo", ["-v", input.string], files: files) == 0)
            let text = String(decoding: try Corpus.bytes(info), as: UTF8.self)
            #expect(text.contains("num_loops: \(plays)\n"), "\(text)")
        }
    }

    @Test(
        .enabled(if: isThere("cjxl", "djxl"), "cjxl is not installed (libjxl-tools)."),
        arguments: [["-d", "0"], ["-q", "80"], ["-q", "90", "-e", "3"]])
    func `A file of cjxl has the frames that djxl reads`(options: [String]) throws {
        let png = try encoded(48, 40, durations: Self.durations, sink: { try PNGFrameSink($0, size: $1, loopCount: 0) })
        {
            AnimationModernTests.pixel($0, $1, $2)
        }
        try withTemporaryDirectory { directory in
            let (input, output) = (directory.appending("in.apng"), directory.appending("out.jxl"))
            try Film.write(png, to: input)
            #expect(try ChildProcess.run("cjxl", [input.string, output.string] + options) == 0)
            let file = try Corpus.bytes(output)
            let (film, theirs) = (try Film(file), try Self.decoded(file))
            #expect(film.durations == theirs.durations && film.frames.count == 4)
            for (one, other) in zip(film.frames, theirs.frames) { #expect(Self.difference(one, other) <= 2) }
            if options == ["-d", "0"] { #expect(try film.frames == Film(png).frames) }
        }
    }

    /// An animated PNG of djxl.
    private static func decoded(_ file: [UInt8]) throws -> Film {
        try withTemporaryDirectory { directory in
            let (input, output) = (directory.appending("in.jxl"), directory.appending("out.apng"))
            try Film.write(file, to: input)
            #expect(try ChildProcess.run("djxl", [input.string, output.string]) == 0)
            return try Film(Corpus.bytes(output))
        }
    }
}

extension [UInt8] {
    /// Of red, green and blue, the same with an opaque alpha.
    fileprivate var withOpaqueAlpha: [UInt8] {
        stride(from: 0, to: count, by: 3).flatMap { Array(self[$0..<($0 + 3)]) + [255] }
    }
}
