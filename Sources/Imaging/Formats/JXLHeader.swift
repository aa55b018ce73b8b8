/// The size a JPEG XL claims, read from the first bits of its codestream.
///
/// ISO/IEC 18181-1, D.2 (SizeHeader): numbers of as few bits as they need, the least significant first. ISO/IEC 18181-2
/// for the boxes around it.
enum JXLHeader {
    /// As stored. Nil where the codestream has not come yet.
    static func size(_ reader: ByteReader) -> PixelSize? {
        guard let start = codestream(reader), reader.has([0xFF, 0x0A], at: start) else { return nil }
        var bits = Bits(reader: reader, next: (start + 2) * 8)
        guard let isSmall = bits.take(1), let height = side(isSmall == 1, &bits), let ratio = bits.take(3) else {
            return nil
        }
        guard ratio > 0 else {
            return side(isSmall == 1, &bits).map { PixelSize(width: $0, height: height) }
        }
        let (across, down) = ratios[ratio - 1]
        return PixelSize(width: height * across / down, height: height)
    }

    /// Width to height, by the number that stands for it, from 1.
    private static let ratios = [(1, 1), (12, 10), (4, 3), (3, 2), (16, 9), (5, 4), (2, 1)]

    private static func side(_ isSmall: Bool, _ bits: inout Bits) -> Int? {
        if isSmall { return bits.take(5).map { ($0 + 1) * 8 } }
        guard let choice = bits.take(2) else { return nil }
        return bits.take([9, 13, 18, 30][choice]).map { $0 + 1 }
    }

    /// Where the codestream begins: at once, or in a box of the container.
    private static func codestream(_ reader: ByteReader) -> Int? {
        if reader.has([0xFF, 0x0A], at: 0) { return 0 }
        var start: Int?
        HEIFBoxes.eachBox(in: 0..<reader.count, reader) { offset, content in
            if reader.has("jxlc", at: offset) { start = content.lowerBound }
            // A part of it begins with its number.
            if reader.has("jxlp", at: offset) { start = content.lowerBound + 4 }
            return start == nil
        }
        return start
    }

    private struct Bits {
        let reader: ByteReader
        var next: Int

        mutating func take(_ count: Int) -> Int? {
            var value = 0
            for place in 0..<count {
                guard let byte = reader.byte(at: next / 8) else { return nil }
                value |= Int(byte >> UInt8(next % 8) & 1) << place
                next += 1
            }
            return value
        }
    }
}
