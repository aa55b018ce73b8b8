import SystemPackage
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// An animation, decoded.
struct Film {
    var size: PixelSize
    var loopCount: Int
    /// In milliseconds.
    var durations: [Int] = []
    /// RGBA of each frame; transparent pixels are black.
    var frames: [[UInt8]] = []

    init(size: PixelSize, loopCount: Int) { (self.size, self.loopCount) = (size, loopCount) }

    init(_ file: [UInt8], limits: ImageLimits = ImageLimits()) throws {
        try ImagingRuntime.start()
        (size, loopCount, durations, frames) = try file.withUnsafeBytes { bytes in
            let source: any FrameSource =
                switch ImageFormat.sniff(bytes) {
                case .gif: try GIFFrameSource(bytes: bytes, limits: limits)
                case .png: try PNGFrameSource(bytes: bytes, limits: limits)
                case .avif: try AVIFFrameSource.upright(bytes, limits: limits)
                case .jxl: try JXLFrameSource(bytes: bytes, limits: limits)
                default: try WebPFrameSource(bytes: bytes, limits: limits)
                }
            var durations: [Int] = []
            var frames: [[UInt8]] = []
            while let frame = try source.next() {
                durations.append(frame.duration)
                frames.append(Self.visible(frame.pixels.lend { Array(UnsafeRawBufferPointer($0)) }))
            }
            return (source.canvas, source.loopCount, durations, frames)
        }
    }

    /// What is under nothing doesn't matter.
    static func visible(_ pixels: [UInt8]) -> [UInt8] {
        var pixels = pixels
        for start in stride(from: 0, to: pixels.count, by: 4) where pixels[start + 3] == 0 {
            pixels.replaceSubrange(start..<(start + 4), with: [0, 0, 0, 0])
        }
        return pixels
    }

    /// Frames, durations and plays of a GIF or a WebP as ImageMagick tells them; its durations are tens of milliseconds.
    static func byImageMagick(_ file: [UInt8], size: PixelSize) throws -> Film {
        var film = Film(size: size, loopCount: 1)
        film.frames = try frames(ofFile: file, byImageMagick: size)
        try withTemporaryDirectory { directory in
            let (input, output) = (directory.appending("in"), directory.appending("out"))
            try write(file, to: input)
            let files = ChildProcess.Files(output: output.string)
            #expect(try ChildProcess.run("identify", ["-verbose", input.string], files: files) == 0)
            for line in String(decoding: try Corpus.bytes(output), as: UTF8.self).split(separator: "\n") {
                let words = line.split(whereSeparator: { $0 == " " || $0 == "x" })
                guard words.count > 1, let number = Int(words[1]) else { continue }
                if words[0] == "Delay:" { film.durations.append(number * 10) }
                // Not told of a file that plays once.
                if words[0] == "Iterations:" { film.loopCount = number }
            }
        }
        return film
    }

    /// The frames of a file as ImageMagick composes them.
    static func frames(ofFile file: [UInt8], byImageMagick size: PixelSize) throws -> [[UInt8]] {
        try withTemporaryDirectory { directory in
            let input = directory.appending("in.gif")
            let output = directory.appending("out.rgba")
            try write(file, to: input)
            let status = try ChildProcess.run(
                "convert", [input.string, "-coalesce", "-depth", "8", "rgba:\(output.string)"])
            #expect(status == 0)
            let bytes = try Corpus.bytes(output)
            let length = size.pixels * 4
            return stride(from: 0, to: bytes.count, by: length).map {
                visible(Array(bytes[$0..<min($0 + length, bytes.count)]))
            }
        }
    }

    static func write(_ bytes: [UInt8], to path: FilePath) throws {
        let file = try FileDescriptor.open(path, .writeOnly, options: .create, permissions: .ownerReadWrite)
        _ = try file.closeAfter { try file.writeAll(bytes) }
    }
}

/// Frames of which each is a function of place and number, in the sink that is made for them.
func encoded(
    _ width: Int, _ height: Int, durations: [Int], sink: (FileDescriptor, PixelSize) throws -> any FrameSink,
    pixel: (Int, Int, Int) -> Pixel,
) throws -> [UInt8] {
    let size = PixelSize(width: width, height: height)
    return try withFile([]) { file in
        let sink = try sink(file, size)
        for (number, duration) in durations.enumerated() {
            let buffer = try PixelBuffer(size)
            buffer.lend { pixels in
                for place in pixels.indices { pixels[place] = pixel(place % width, place / width, number) }
            }
            try sink.add(buffer, duration: duration)
        }
        try sink.finish()
        return try readAll(file)
    }
}
