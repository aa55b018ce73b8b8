#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// The work that a JPEG causes its decoder: the number of scans, and the coefficients that are held at once.
///
/// ITU-T T.81, annex B. It decodes nothing; it only searches the scans' data for the next marker.
package struct JPEGScans: Equatable {
    /// Bytes of coefficients that libjpeg holds: two for each of the 64 of a block, for every component. None
    /// for a sequential JPEG with all components in one scan, since that is decoded row by row.
    private(set) var coefficientBytes = 0
    /// At most one more than the requested maximum.
    private(set) var count = 0

    private struct Frame {
        let isProgressive: Bool
        let components: Int
        let coefficientBytes: Int
    }

    /// - Parameter most: the maximum at which counting ends, so that a malicious file is not read for long.
    package init(_ reader: ByteReader, upTo most: Int) {
        var offset = 2
        var frame: Frame?
        while count <= most, let marker = JPEGHeader.nextMarker(at: &offset, reader) {
            switch marker {
            case 0xD9: return
            case 0x00, 0x01, 0xD0...0xD8: continue
            case 0xDA:
                count += 1
                guard let frame else { return }
                let components = reader.byte(at: offset + 2).map(Int.init) ?? 0
                // libjpeg reads no second scan after one that has everything.
                guard frame.isProgressive || components < frame.components else { return }
                coefficientBytes = frame.coefficientBytes
                offset = Self.endOfScan(from: offset + (reader.big(2, at: offset) ?? 2), reader)
            default:
                if frame == nil { frame = Self.frame(marker, at: offset, reader) }
                offset += max(2, reader.big(2, at: offset) ?? 2)
            }
        }
    }

    /// B.2.2: precision, height, width, and for each component its sampling factors.
    private static func frame(_ marker: UInt8, at offset: Int, _ reader: ByteReader) -> Frame? {
        guard (0xC0...0xCF).contains(marker), ![0xC4, 0xC8, 0xCC].contains(marker),
            let height = reader.big(2, at: offset + 3), let width = reader.big(2, at: offset + 5),
            let components = reader.byte(at: offset + 7)
        else { return nil }
        let factors = (0..<Int(components)).compactMap { reader.byte(at: offset + 9 + 3 * $0) }
            .map { (across: Int($0 >> 4), down: Int($0 & 15)) }
        let (across, down) = (max(1, factors.map(\.across).max() ?? 1), max(1, factors.map(\.down).max() ?? 1))
        // The size in whole units, each as many blocks as the largest factors; the last ones are padded.
        let units = ((width + 8 * across - 1) / (8 * across)) * ((height + 8 * down - 1) / (8 * down))
        let blocks = factors.reduce(0) { $0 + units * $1.across * $1.down }
        return Frame(
            isProgressive: [0xC2, 0xC6, 0xCA, 0xCE].contains(marker), components: Int(components),
            coefficientBytes: blocks * 64 * 2)
    }

    /// The offset of the next marker that is neither stuffing nor a restart; the end of the bytes if there is none.
    package static func endOfScan(from start: Int, _ reader: ByteReader) -> Int {
        guard let base = reader.bytes.baseAddress else { return start }
        var offset = start
        while offset < reader.count - 1, let found = memchr(base + offset, 0xFF, reader.count - 1 - offset) {
            offset = UnsafeRawPointer(found) - base
            let next = reader.bytes[offset + 1]
            if next != 0x00, next != 0xFF, !(0xD0...0xD7).contains(next) { return offset }
            offset += next == 0xFF ? 1 : 2
        }
        return reader.count
    }

    /// The offset of the picture's end mark, or the file's end if there is none. More bytes may follow it.
    package static func end(_ reader: ByteReader) -> Int {
        var offset = 2
        while let marker = JPEGHeader.nextMarker(at: &offset, reader) {
            switch marker {
            case 0xD9: return offset - 2
            case 0x00, 0x01, 0xD0...0xD8: continue
            default:
                offset += max(2, reader.big(2, at: offset) ?? 2)
                if marker == 0xDA { offset = endOfScan(from: offset, reader) }
            }
        }
        return reader.count
    }
}

/// The complete scans of a progressive JPEG that is still arriving.
package struct ProgressiveJPEG {
    /// Number of complete scans.
    package let scans: Int
    /// Where the last of them ends; nil before the first.
    package let end: Int?

    /// - Returns: nil if the bytes are no progressive JPEG, or if that is not known yet.
    package init?(_ bytes: UnsafeRawBufferPointer) {
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
                guard let length = reader.big(2, at: offset), length >= 2 else { break markers }
                let next = JPEGScans.endOfScan(from: offset + length, reader)
                guard next < reader.count else { break markers }
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
}
