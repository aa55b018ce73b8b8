/// JPEG XL. ISO/IEC 18181.
package struct JXLHeader: FormatHeader {
    package let name = "jxl"
    package let title = "JPEG XL"

    /// The signature of its container; bare codestreams begin with FF 0A. ISO/IEC 18181-2, 9.
    private static let signature: [UInt8] = [
        0x00, 0x00, 0x00, 0x0C, 0x4A, 0x58, 0x4C, 0x20, 0x0D, 0x0A, 0x87, 0x0A,
    ]

    package func begins(_ reader: ByteReader) -> Bool {
        reader.has([0xFF, 0x0A], at: 0) || reader.has(Self.signature, at: 0)
    }

    package func mayBegin(_ reader: ByteReader) -> Bool { false }

    package func size(_ reader: ByteReader) -> HeaderFinding? {
        JXLHeader.size(reader).map { .size(width: $0.width, height: $0.height) }
    }

    package func cost(_ reader: ByteReader, limits: ImageLimits) -> DecoderCost {
        DecoderCost(JXLHeader.size(reader), each: 8)
    }

    /// A bare codestream does not state its length, so if its decoder calls it incomplete, it was cut.
    package func endsEarly(_ reader: ByteReader) -> Bool { reader.has([0xFF, 0x0A], at: 0) || Boxes.endEarly(reader) }
}

/// The size of a JPEG XL, from the first bits of its codestream.
///
/// ISO/IEC 18181-1, D.2 (SizeHeader): numbers with as few bits as they need, the least significant first. ISO/IEC
/// 18181-2 for the boxes around it.
extension JXLHeader {
    /// As stored. Nil if the codestream has not come yet.
    package static func size(_ reader: ByteReader) -> PixelSize? {
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

    /// Width to height, by their number in the header, from 1.
    private static let ratios = [(1, 1), (12, 10), (4, 3), (3, 2), (16, 9), (5, 4), (2, 1)]

    private static func side(_ isSmall: Bool, _ bits: inout Bits) -> Int? {
        if isSmall { return bits.take(5).map { ($0 + 1) * 8 } }
        guard let choice = bits.take(2) else { return nil }
        return bits.take([9, 13, 18, 30][choice]).map { $0 + 1 }
    }

    /// Where the codestream begins: at the start, or in a box of the container.
    private static func codestream(_ reader: ByteReader) -> Int? {
        if reader.has([0xFF, 0x0A], at: 0) { return 0 }
        var start: Int?
        Boxes.each(in: 0..<reader.count, reader) { offset, content in
            if reader.has("jxlc", at: offset) { start = content.lowerBound }
            // A partial codestream begins with its number.
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
