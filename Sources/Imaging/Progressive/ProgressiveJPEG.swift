/// The scans of a progressive JPEG that have arrived whole.
struct ProgressiveJPEG {
    /// Scans of which every byte is there.
    let scans: Int
    /// Where the last of them ends; nil before the first.
    let end: Int?

    /// - Returns: nil where the bytes are no progressive JPEG, or it doesn't show yet.
    init?(_ bytes: UnsafeRawBufferPointer) {
        let reader = ByteReader(bytes)
        guard reader.has([0xFF, 0xD8], at: 0) else { return nil }
        var offset = 2
        var isProgressive = false
        var scans = 0
        var end: Int?
        markers: while let marker = JPEGHeader.nextMarker(at: &offset, reader) {
            switch marker {
            case 0x00, 0x01, 0xD0...0xD8: continue
            case 0xD9: break markers
            case 0xDA:
                guard let length = reader.big(2, at: offset), length >= 2,
                    let next = Self.endOfScan(from: offset + length, reader)
                else { break markers }
                offset = next
                scans += 1
                end = next
            default:
                if marker == 0xC2 { isProgressive = true }
                guard let length = reader.big(2, at: offset), length >= 2 else { break markers }
                offset += length
            }
        }
        guard isProgressive else { return nil }
        self.scans = scans
        self.end = end
    }

    /// Where the next marker stands that is neither stuffing nor a restart.
    private static func endOfScan(from start: Int, _ reader: ByteReader) -> Int? {
        var offset = start
        while let byte = reader.byte(at: offset) {
            if byte == 0xFF, let next = reader.byte(at: offset + 1), next != 0x00, next != 0xFF, next & 0xF8 != 0xD0 {
                return offset
            }
            offset += 1
        }
        return nil
    }
}
