import Glibc

// Small files that promise much.

extension TestImages {
    /// A progressive grey JPEG of DC scans only: the same few bits for every block, again and again.
    ///
    /// - Parameters:
    ///   - scans: beyond the first, each refines the one before; libjpeg goes on with a warning.
    ///   - isProgressive: or else the frame is sequential, with a component a scan.
    ///   - sampling: of each component, across and down.
    public static func jpeg(
        _ width: Int, _ height: Int, scans: Int, isProgressive: Bool = true, sampling: [(Int, Int)] = [(1, 1)],
    ) -> [UInt8] {
        var file: [UInt8] = [0xFF, 0xD8, 0xFF, 0xDB, 0, 67, 0] + [UInt8](repeating: 1, count: 64)
        file += [0xFF, isProgressive ? 0xC2 : 0xC1] + big(8 + 3 * sampling.count, 2) + [8] + big(height, 2)
        file += big(width, 2) + [UInt8(sampling.count)]
        for (index, factors) in sampling.enumerated() {
            file += [UInt8(index + 1), UInt8(factors.0 << 4 | factors.1), 0]
        }
        // One code, "0", for the category 0; and one for "end of block".
        file += [0xFF, 0xC4, 0, 20, 0x00, 1] + [UInt8](repeating: 0, count: 15) + [0]
        file += [0xFF, 0xC4, 0, 20, 0x10, 1] + [UInt8](repeating: 0, count: 15) + [0]
        let blocks = (width + 7) / 8 * ((height + 7) / 8)
        let data = [UInt8](repeating: 0, count: (blocks * (isProgressive ? 1 : 2) + 7) / 8)
        for scan in 0..<scans {
            file += [0xFF, 0xDA, 0, 8, 1, UInt8(scan % sampling.count + 1), 0, 0]
            file += isProgressive ? [0, 0] : [63, 0]
            file += data
        }
        return file + [0xFF, 0xD9]
    }

    /// zlib's form of `count` zeros, a thousandth of their size: deflate's fixed codes, with matches of 258 at
    /// distance 1. RFC 1951, 3.2.6.
    public static func zlibZeros(_ count: Int) -> [UInt8] {
        var bits = BitWriter()
        bits.put(0b011, 3)  // the last block, of fixed codes
        let matches = (count - 1) / 258
        // The literal 0: 00110000, its first bit first.
        for _ in 0..<(count - matches * 258) { bits.put(0b0000_1100, 8) }
        // Length 258 is 11000101, and distance 1 is 00000; eight of them are whole bytes.
        for _ in 0..<(matches % 8) { bits.put(0b0_0000_1010_0011, 13) }
        bits.putAgain(0b0_0000_1010_0011, 13, times: matches / 8 * 8)
        bits.put(0, 7)
        // Adler-32 of zeros: one, and the count.
        return [0x78, 0x01] + bits.finished + big((count % 65_521) << 16 | 1, 4)
    }

    /// A PNG of one colour, black unless another is given, compressed a thousandfold.
    public static func pngOfZeros(
        _ width: Int, _ height: Int, colour: [UInt8] = [0, 0, 0], extra: [[UInt8]] = [],
    ) -> [UInt8] {
        var file: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        file += pngChunk("IHDR", big(width, 4) + big(height, 4) + [8, 3, 0, 0, 0]) + pngChunk("PLTE", colour)
        for chunk in extra { file += chunk }
        return file + pngChunk("IDAT", zlibZeros((width + 1) * height)) + pngChunk("IEND", [])
    }

    /// An animated WebP of `frames` lossless frames of one pixel each, on a canvas of any size.
    public static func webp(_ width: Int, _ height: Int, frames: Int) -> [UInt8] {
        // One by one pixel: signature, sizes, no transforms, no cache, five codes of one symbol each.
        let pixel: [UInt8] = [0x2F, 0, 0, 0, 0, 0x88, 0x88, 0x08, 0x07, 0x10]
        let image = Array("VP8L".utf8) + little(pixel.count, 4) + pixel
        let frame =
            Array("ANMF".utf8) + little(16 + image.count, 4) + little(0, 3) + little(0, 3) + little(0, 3) + little(0, 3)
            + little(100, 3) + [0] + image
        var body = Array("WEBPVP8X".utf8) + little(10, 4) + [0x12, 0, 0, 0] + little(width - 1, 3)
        body += little(height - 1, 3) + Array("ANIM".utf8) + little(6, 4) + little(0, 4) + little(0, 2)
        for _ in 0..<frames { body += frame }
        return Array("RIFF".utf8) + little(body.count, 4) + body
    }

    /// A GIF of many frames of one colour each, well compressed: a code for one pixel, one for two, for three, …
    public static func gif(_ width: Int, _ height: Int, frames: Int) -> [UInt8] {
        var bits = BitWriter()
        bits.put(256, 9)
        var (left, run, next, size) = (width * height, 1, 258, UInt32(9))
        while left > 0 {
            let length = min(run, left)
            bits.put(UInt32(length == 1 ? 7 : 256 + length), size)
            left -= length
            run += 1
            if run > 2 { next += 1 }
            if next == 1 << size { size += 1 }
        }
        bits.put(257, size)
        var frame: [UInt8] = [0x21, 0xF9, 4, 0, 10, 0, 0, 0, 0x2C, 0, 0, 0, 0] + little(width, 2) + little(height, 2)
        frame += [0, 8] + subBlocks(bits.finished)
        var file = Array(gif(width, height, frames: [UInt8]()).dropLast())
        for _ in 0..<frames { file += frame }
        return file + [0x3B]
    }

    /// A grey TIFF whose directory says what it likes.
    ///
    /// - Parameters:
    ///   - next: the offset of the next directory; the first is at 8.
    ///   - directories: chained copies of it, before `next`.
    public static func tiff(
        claiming width: Int, _ height: Int, rowsPerStrip: Int, stripBytes: Int = 8, next: Int = 0, directories: Int = 1,
    ) -> [UInt8] {
        let entries: [(Int, Int, Int)] = [
            (256, 4, width), (257, 4, height), (258, 3, 8), (259, 3, 1), (262, 3, 1), (273, 4, 8), (277, 3, 1),
            (278, 4, rowsPerStrip), (279, 4, stripBytes),
        ]
        let length = 2 + entries.count * 12 + 4
        var file = Array("II".utf8) + little(42, 2) + little(8, 4)
        for directory in 1...directories {
            file += little(entries.count, 2)
            for (tag, type, value) in entries {
                file += little(tag, 2) + little(type, 2) + little(1, 4) + little(value, 4)
            }
            file += little(directory == directories ? next : 8 + directory * length, 4)
        }
        return file
    }
}

/// Bits from the lowest of each byte on.
private struct BitWriter {
    private var bytes: [UInt8] = []
    private var bits: UInt32 = 0
    private var held: UInt32 = 0

    mutating func put(_ value: UInt32, _ count: UInt32) {
        bits |= value << held
        held += count
        while held >= 8 {
            bytes.append(UInt8(bits & 0xFF))
            bits >>= 8
            held -= 8
        }
    }

    /// A multiple of eight times, so that the bytes repeat as well.
    mutating func putAgain(_ value: UInt32, _ count: UInt32, times: Int) {
        guard times > 0 else { return }
        let start = bytes.count
        for _ in 0..<8 { put(value, count) }
        let part = Array(bytes[start...])
        bytes.reserveCapacity(bytes.count + part.count * times / 8)
        for _ in 1..<max(1, times / 8) { bytes += part }
    }

    var finished: [UInt8] { held > 0 ? bytes + [UInt8(bits & 0xFF)] : bytes }
}
