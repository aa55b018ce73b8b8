import TestSupport

@testable import ImageFiles
@testable import Imaging

/// An animated PNG made by hand: every field is what a test says, right or wrong.
struct TestAPNG {
    struct Frame {
        var left = 0
        var top = 0
        var width: Int
        var height: Int
        /// Seconds as a fraction.
        var delay = (parts: 10, whole: 100)
        var disposal: UInt8 = 0
        var blend: UInt8 = 0
        /// Chunks that the pixels are divided into.
        var parts = 1
        var pixel: (Int, Int) -> TestImages.Pixel

        init(
            _ width: Int, _ height: Int, at place: (Int, Int) = (0, 0),
            _ pixel: @escaping (Int, Int) -> TestImages.Pixel,
        ) {
            (self.width, self.height, left, top) = (width, height, place.0, place.1)
            self.pixel = pixel
        }
    }

    var width: Int
    var height: Int
    var kind = TestImages.PNGKind.rgba
    var loopCount = 0
    /// By the header, where it isn't their number.
    var announced: Int?
    /// Shown by programs that know no animations, where that isn't the first frame.
    var picture: ((Int, Int) -> TestImages.Pixel)?
    var frames: [Frame] = []
    var hasEnd = true

    /// The chunks of a still of the same kind, by their names.
    private static func chunks(_ png: [UInt8]) -> [(name: String, content: [UInt8])] {
        var chunks: [(String, [UInt8])] = []
        var offset = 8
        while offset < png.count {
            let length = png[offset..<(offset + 4)].reduce(0) { $0 << 8 | Int($1) }
            let name = String(decoding: png[(offset + 4)..<(offset + 8)], as: UTF8.self)
            chunks.append((name, Array(png[(offset + 8)..<(offset + 8 + length)])))
            offset += 12 + length
        }
        return chunks
    }

    private func data(_ width: Int, _ height: Int, _ pixel: @escaping (Int, Int) -> TestImages.Pixel) -> [UInt8] {
        Self.chunks(TestImages.png(width, height, kind: kind, pixel: pixel)).first { $0.name == "IDAT" }?.content ?? []
    }

    var bytes: [UInt8] { made.bytes }

    /// The file, and where each of its frames ends.
    var made: (bytes: [UInt8], ends: [Int]) {
        let still = Self.chunks(TestImages.png(width, height, kind: kind))
        var file = Array(TestImages.pngHeaderOnly(width, height).prefix(8))
        for chunk in still where chunk.name == "IHDR" { file += TestImages.pngChunk("IHDR", chunk.content) }
        file += TestImages.pngChunk("acTL", PNGChunk.big(announced ?? frames.count, 4) + PNGChunk.big(loopCount, 4))
        for chunk in still where ["PLTE", "tRNS"].contains(chunk.name) {
            file += TestImages.pngChunk(chunk.name, chunk.content)
        }
        if let picture { file += TestImages.pngChunk("IDAT", data(width, height, picture)) }
        var ends: [Int] = []
        var sequence = 0
        for (number, frame) in frames.enumerated() {
            let places = [frame.width, frame.height, frame.left, frame.top].flatMap { PNGChunk.big($0, 4) }
            file += TestImages.pngChunk(
                "fcTL",
                PNGChunk.big(sequence, 4) + places + PNGChunk.big(frame.delay.parts, 2)
                    + PNGChunk.big(frame.delay.whole, 2) + [frame.disposal, frame.blend])
            sequence += 1
            let pixels = data(frame.width, frame.height, frame.pixel)
            let length = (pixels.count + frame.parts - 1) / frame.parts
            for start in stride(from: 0, to: pixels.count, by: max(1, length)) {
                let part = Array(pixels[start..<min(start + length, pixels.count)])
                if number == 0, picture == nil {
                    file += TestImages.pngChunk("IDAT", part)
                } else {
                    file += TestImages.pngChunk("fdAT", PNGChunk.big(sequence, 4) + part)
                    sequence += 1
                }
            }
            ends.append(file.count)
        }
        return (hasEnd ? file + TestImages.pngChunk("IEND", []) : file, ends)
    }
}
