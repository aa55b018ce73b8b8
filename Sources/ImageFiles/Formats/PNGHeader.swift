/// PNG. W3C PNG, third edition.
package struct PNGHeader: FormatHeader {
    package let name = "png"

    package static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    package func begins(_ reader: ByteReader) -> Bool { reader.has(Self.signature, at: 0) }
    package func mayBegin(_ reader: ByteReader) -> Bool { reader.mayBecome([Self.signature]) }

    /// Section 11.2.1: IHDR comes first, is 13 bytes long and begins with width and height.
    package func size(_ reader: ByteReader) -> HeaderFinding? {
        guard reader.contains(8, length: 16) else { return .needsMore }
        guard reader.has("IHDR", at: 12), reader.big(4, at: 8) == 13,
            let width = reader.big(4, at: 16), let height = reader.big(4, at: 20)
        else { return .broken("The PNG does not begin with an IHDR chunk.") }
        return .size(width: width, height: height)
    }

    /// An interlaced PNG has its rows only at its end. Section 11.2.1: width, height, depth, colour type, …, interlace.
    package func cost(_ reader: ByteReader, limits: ImageLimits) -> DecoderCost {
        guard let width = reader.big(4, at: 16), let height = reader.big(4, at: 20), let depth = reader.byte(at: 24),
            let type = reader.byte(at: 25), reader.byte(at: 28) == 1
        else { return DecoderCost() }
        // Including the alpha that a tRNS chunk may add.
        let sample = (type & 2 == 0 ? 2 : 4) * (depth == 16 ? 2 : 1)
        return DecoderCost(PixelSize(width: width, height: height), each: sample)
    }
}
