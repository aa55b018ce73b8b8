/// JPEG. ITU-T T.81.
package struct JPEGHeader: FormatHeader {
    package let name = "jpeg"
    package let fileExtension = "jpg"

    package func begins(_ reader: ByteReader) -> Bool { reader.has([0xFF, 0xD8, 0xFF], at: 0) }
    package func mayBegin(_ reader: ByteReader) -> Bool { reader.mayBecome([[0xFF, 0xD8, 0xFF]]) }

    package func size(_ reader: ByteReader) -> HeaderFinding? { JPEGHeader.size(reader) }
    package func endsEarly(_ reader: ByteReader) -> Bool { JPEGHeader.endsEarly(reader) }

    package func cost(_ reader: ByteReader, limits: ImageLimits) -> DecoderCost {
        let found = JPEGScans(reader, upTo: limits.scans)
        return DecoderCost(bytes: found.coefficientBytes, scans: found.count)
    }
}

/// Reads a JPEG's segments to find its size and its end.
extension JPEGHeader {
    // ITU-T T.81, annex B: segments of marker, length and payload until the frame header (SOF).
    package static func size(_ reader: ByteReader) -> HeaderFinding {
        var offset = 2
        while let marker = nextMarker(at: &offset, reader) {
            switch marker {
            case 0xC0...0xCF where ![0xC4, 0xC8, 0xCC].contains(marker): return frame(at: offset, reader)
            case 0xD9, 0xDA: return .broken("The JPEG has pixels or an end before its frame header.")
            case 0x00, 0x01, 0xD0...0xD8: continue
            default:
                guard let length = reader.big(2, at: offset) else { return .needsMore }
                guard length >= 2 else { return .broken("The JPEG has a segment shorter than its own length.") }
                offset += length
            }
        }
        return .needsMore
    }

    /// The second byte of the next marker, with `offset` moved past it; nil at the end of the bytes.
    ///
    /// libjpeg skips stray bytes between segments with a warning, so they are accepted.
    package static func nextMarker(at offset: inout Int, _ reader: ByteReader) -> UInt8? {
        while let byte = reader.byte(at: offset), byte != 0xFF { offset += 1 }
        while let byte = reader.byte(at: offset), byte == 0xFF { offset += 1 }
        defer { offset += 1 }
        return reader.byte(at: offset)
    }

    private static func frame(at offset: Int, _ reader: ByteReader) -> HeaderFinding {
        guard let height = reader.big(2, at: offset + 3), let width = reader.big(2, at: offset + 5) else {
            return .needsMore
        }
        return .size(width: width, height: height)
    }

    /// Skips segments by their lengths, so that the end mark of an embedded thumbnail is not taken for the image's.
    package static func endsEarly(_ reader: ByteReader) -> Bool {
        var offset = 2
        while let marker = nextMarker(at: &offset, reader) {
            switch marker {
            case 0xD9: return false
            case 0x00, 0x01, 0xD0...0xD8: continue  // stuffing and restarts, in and between scans
            default:
                guard let length = reader.big(2, at: offset) else { return true }
                guard length >= 2 else { return false }
                offset += length
            }
        }
        return true
    }
}
