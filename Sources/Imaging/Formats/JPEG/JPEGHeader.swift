/// Reads a JPEG's segments to find its size and its end.
enum JPEGHeader {
    // ITU-T T.81, annex B: segments of marker, length and payload until the frame header (SOF).
    static func size(_ reader: ByteReader) -> HeaderFinding {
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
    static func nextMarker(at offset: inout Int, _ reader: ByteReader) -> UInt8? {
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
    static func endsEarly(_ reader: ByteReader) -> Bool {
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

/// The segments of a JPEG besides its pixels.
struct JPEGMetadata {
    let policy: MetadataPolicy

    /// As ``FormatDefinition/hasExtras(_:_:)``.
    func areExtra(in reader: ByteReader) -> Bool {
        var offset = 2
        var isInScan = false
        while offset < reader.count {
            // Segments follow each other immediately; other bytes may stand only in a scan.
            guard isInScan || reader.byte(at: offset) == 0xFF else { return true }
            guard let marker = JPEGHeader.nextMarker(at: &offset, reader) else { return false }
            switch marker {
            case 0xD9: return !reader.isPadding(from: offset)
            case 0x00, 0x01, 0xD0...0xD8: continue
            default:
                guard let length = reader.big(2, at: offset), mayStay(segment: marker, at: offset + 2, length, reader)
                else { return true }
                isInScan = marker == 0xDA
                offset += length
            }
        }
        return false
    }

    private func mayStay(segment marker: UInt8, at start: Int, _ length: Int, _ reader: ByteReader) -> Bool {
        switch marker {
        // Without a thumbnail.
        case 0xE0: length == 16 && reader.has("JFIF\0", at: start)
        case 0xE1:
            policy.keepsAll
                && (reader.has("Exif\0\0", at: start) || reader.has("http://ns.adobe.com/xap/1.0/\0", at: start))
        case 0xE2: policy.keepsProfile && reader.has("ICC_PROFILE\0", at: start)
        case 0xED: policy.keepsAll && reader.has("Photoshop 3.0\0", at: start)
        case 0xEE: length == 14 && reader.has("Adobe", at: start)
        case 0xE3...0xEF, 0xF0...0xFE: false
        default: length >= 2
        }
    }

    /// APP1 and APP13 become APP11, whose content no decoder reads.
    static func hidden(in file: UnsafeRawBufferPointer) -> PatchedBytes {
        let copy = PatchedBytes(file)
        let reader = ByteReader(copy.bytes)
        var offset = 2
        while let marker = JPEGHeader.nextMarker(at: &offset, reader), ![0xD9, 0xDA].contains(marker) {
            if [0x00, 0x01].contains(marker) || (0xD0...0xD8).contains(marker) { continue }
            if marker == 0xE1 || marker == 0xED { copy.memory[offset - 1] = 0xEB }
            offset += max(2, reader.big(2, at: offset) ?? 2)
        }
        return copy
    }
}
