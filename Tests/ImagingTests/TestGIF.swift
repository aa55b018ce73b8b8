/// A GIF put together by hand, with everything a GIF can have and our encoder never writes.
struct TestGIF {
    typealias Colour = [UInt8]

    struct Frame {
        var left = 0
        var top = 0
        var width: Int
        var height: Int
        var disposal = 0
        var transparent: UInt8?
        /// In hundredths of a second.
        var delay = 10
        var isInterlaced = false
        var colours: [Colour]?
        /// Row by row from the top.
        var pixels: [UInt8]

        /// Stripes of the indices below `modulus`, another pattern for each `seed`.
        init(_ width: Int, _ height: Int, seed: Int = 0, modulus: Int = 4) {
            self.width = width
            self.height = height
            pixels = (0..<(width * height)).map { place in
                UInt8((place % max(1, width) / 3 + place / max(1, width) / 2 * (seed + 1) + seed) % modulus)
            }
        }
    }

    var width: Int
    var height: Int
    var colours: [Colour]? = TestGIF.fourColours
    /// The count in a looping extension.
    var loopCount: Int?
    var loopName = "NETSCAPE2.0"
    /// Blocks before each frame.
    var extras: [UInt8] = []
    var frames: [Frame] = []
    var trailer: [UInt8] = [0x3B]

    static let fourColours: [Colour] = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [250, 240, 10]]
    static let otherColours: [Colour] = [[1, 2, 3], [200, 100, 50], [9, 99, 199], [128, 128, 128]]
    static let comment: [UInt8] = [0x21, 0xFE, 2, 0x2C, 0x3B, 0]
    static let unknownExtension: [UInt8] = [0x21, 0x77, 3, 1, 2, 3, 1, 0x21, 0]

    /// Where each frame's data end, so that a file cut there is a whole one of fewer frames.
    var ends: [Int] {
        frames.indices.map { index in
            var part = self
            part.frames = Array(frames.prefix(index + 1))
            part.trailer = []
            return part.bytes.count
        }
    }

    var bytes: [UInt8] {
        var file = Array("GIF89a".utf8) + Self.little(width) + Self.little(height)
        file += [Self.flags(colours), 0, 0] + Self.table(colours)
        if let loopCount {
            file += [0x21, 0xFF, 11] + Array(loopName.utf8) + [3, 1] + Self.little(loopCount) + [0]
        }
        for frame in frames { file += extras + Self.bytes(frame) }
        return file + trailer
    }

    private static func bytes(_ frame: Frame) -> [UInt8] {
        let flags = UInt8(frame.disposal << 2) | (frame.transparent == nil ? 0 : 1)
        var block: [UInt8] = [0x21, 0xF9, 4, flags] + little(frame.delay) + [frame.transparent ?? 0, 0]
        block += [0x2C] + little(frame.left) + little(frame.top) + little(frame.width) + little(frame.height)
        block += [Self.flags(frame.colours) | (frame.isInterlaced ? 0x40 : 0)] + table(frame.colours)
        return block + data(frame.isInterlaced ? interlaced(frame) : frame.pixels)
    }

    private static func interlaced(_ frame: Frame) -> [UInt8] {
        let lines = [(0, 8), (4, 8), (2, 4), (1, 2)].flatMap { stride(from: $0.0, to: frame.height, by: $0.1) }
        return lines.flatMap { frame.pixels[($0 * frame.width)..<(($0 + 1) * frame.width)] }
    }

    private static func little(_ value: Int) -> [UInt8] { [UInt8(value & 0xFF), UInt8(value >> 8)] }

    private static func flags(_ colours: [Colour]?) -> UInt8 {
        guard let colours else { return 0 }
        return 0x80 | UInt8((colours.count - 1).bitWidth - (colours.count - 1).leadingZeroBitCount - 1)
    }

    private static func table(_ colours: [Colour]?) -> [UInt8] { (colours ?? []).flatMap { $0 } }

    /// Codes of nine bits; the table is cleared before it grows.
    private static func data(_ pixels: [UInt8]) -> [UInt8] {
        var codes: [Int] = [256]
        for (index, pixel) in pixels.enumerated() {
            if index > 0, index % 250 == 0 { codes.append(256) }
            codes.append(Int(pixel))
        }
        var bytes: [UInt8] = []
        var (bits, held) = (0, 0)
        for code in codes + [257] {
            bits |= code << held
            held += 9
            while held >= 8 {
                bytes.append(UInt8(bits & 0xFF))
                bits >>= 8
                held -= 8
            }
        }
        if held > 0 { bytes.append(UInt8(bits & 0xFF)) }
        let blocks = stride(from: 0, to: bytes.count, by: 255).flatMap { start in
            let part = bytes[start..<min(start + 255, bytes.count)]
            return [UInt8(part.count)] + part
        }
        return [8] + blocks + [0]
    }
}
