import ImageFiles

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
