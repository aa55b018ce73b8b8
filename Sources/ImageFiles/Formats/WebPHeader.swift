/// WebP. RFC 9649.
package struct WebPHeader: FormatHeader {
    package let name = "webp"
    package let title = "WebP"

    package func begins(_ reader: ByteReader) -> Bool { reader.has("RIFF", at: 0) && reader.has("WEBP", at: 8) }
    package func mayBegin(_ reader: ByteReader) -> Bool { reader.mayBecome([Array("RIFF".utf8)]) }

    package func size(_ reader: ByteReader) -> HeaderFinding? { WebPHeader.size(reader) }

    package func cost(_ reader: ByteReader, limits: ImageLimits) -> DecoderCost {
        DecoderCost(WebPHeader.size(reader).pixelSize, each: 4, frames: WebPHeader.frames(reader))
    }

    package func endsEarly(_ reader: ByteReader) -> Bool {
        guard let size = reader.little(4, at: 4) else { return true }
        return !reader.contains(8, length: size)
    }
}

/// Reads a WebP's header.
extension WebPHeader {
    // RFC 9649, section 2: RIFF, size, WEBP, and the first chunk at 12 is VP8X, VP8L or VP8.
    package static func size(_ reader: ByteReader) -> HeaderFinding {
        guard reader.contains(12, length: 4) else { return .needsMore }
        if reader.has("VP8X", at: 12) { return extended(reader) }
        if reader.has("VP8L", at: 12) { return lossless(reader) }
        if reader.has("VP8 ", at: 12) { return lossy(reader) }
        return .broken("The WebP does not begin with a VP8, VP8L or VP8X chunk.")
    }

    private static func extended(_ reader: ByteReader) -> HeaderFinding {
        guard let width = reader.little(3, at: 24), let height = reader.little(3, at: 27) else { return .needsMore }
        return .size(width: width + 1, height: height + 1)
    }

    private static func lossless(_ reader: ByteReader) -> HeaderFinding {
        guard let signature = reader.byte(at: 20), let bits = reader.little(4, at: 21) else { return .needsMore }
        guard signature == 0x2F else { return .broken("The WebP's lossless chunk has a wrong signature.") }
        return .size(width: (bits & 0x3FFF) + 1, height: ((bits >> 14) & 0x3FFF) + 1)
    }

    private static func lossy(_ reader: ByteReader) -> HeaderFinding {
        guard let width = reader.little(2, at: 26), let height = reader.little(2, at: 28) else { return .needsMore }
        guard reader.has([0x9D, 0x01, 0x2A], at: 23) else { return .broken("The WebP's key frame has no start code.") }
        return .size(width: width & 0x3FFF, height: height & 0x3FFF)
    }

    /// RFC 9649, 2.3: chunks of name, length and data, padded to an even length.
    package static func frames(_ reader: ByteReader) -> Int {
        var offset = 12
        var count = 0
        while let length = reader.little(4, at: offset + 4) {
            if reader.has("ANMF", at: offset) { count += 1 }
            offset += 8 + length + length % 2
        }
        return count
    }
}
