/// The boxes of ISO base media files and of JPEG XL's container: length, name, content.
package enum Boxes {
    package static func box(_ name: StaticString, in range: Range<Int>, _ reader: ByteReader) -> Range<Int>? {
        var found: Range<Int>?
        each(in: range, reader) { offset, content in
            if reader.has(name, at: offset) { found = content }
            return found == nil
        }
        return found
    }

    /// - Parameter body: gets the offset of the name and the range of the content, and returns whether to continue.
    package static func each(in range: Range<Int>, _ reader: ByteReader, _ body: (Int, Range<Int>) -> Bool) {
        var offset = range.lowerBound
        while offset + 8 <= range.upperBound, var size = reader.big(4, at: offset) {
            var header = 8
            if size == 1 {
                guard let large = reader.big(8, at: offset + 8) else { return }
                (size, header) = (large, 16)
            }
            if size == 0 { size = range.upperBound - offset }
            guard size >= header, size <= range.upperBound - offset else { return }
            guard body(offset + 4, (offset + header)..<(offset + size)) else { return }
            offset += size
        }
    }

    /// Whether the file is cut. ISO/IEC 14496-12, 4.2: size and type; size 1: a 64-bit size follows; 0: "to the end".
    package static func endEarly(_ reader: ByteReader) -> Bool {
        var offset = 0
        var hasMedia = false
        while offset < reader.count {
            guard var size = reader.big(4, at: offset), reader.contains(offset, length: 8) else { return true }
            if size == 0 { return false }
            if size == 1 {
                guard reader.contains(offset, length: 16) else { return true }
                guard let large = reader.big(8, at: offset + 8) else { return false }
                size = large
            }
            guard size >= 8 else { return false }
            guard reader.contains(offset, length: size) else { return true }
            hasMedia = hasMedia || hasPictures(at: offset, size: size, reader)
            offset += size
        }
        // There are only descriptions of pictures, and their data are missing.
        return !hasMedia
    }

    /// Whether a box has the data of pictures: `mdat`; `jxlc` and `jxlp`, JPEG XL's codestream, whole or in parts
    /// (ISO/IEC 18181-2); or `idat` within `meta`, for small pictures (ISO/IEC 14496-12, 8.11.11).
    private static func hasPictures(at offset: Int, size: Int, _ reader: ByteReader) -> Bool {
        if ["mdat", "jxlc", "jxlp"].contains(where: { reader.has(Array($0.utf8), at: offset + 4) }) { return true }
        // `meta` has a version and flags before its boxes. A grid's description is in `idat` even if its tiles are in `mdat`.
        guard reader.has("meta", at: offset + 4), size >= 12 else { return false }
        let parts = (offset + 12)..<(offset + size)
        return box("idat", in: parts, reader) != nil && HEIFItems(parts, reader).placesOfData.isEmpty
    }

    /// Whether there are other boxes than these, or anything but zeros after the last.
    package static func areThere(_ reader: ByteReader, besides names: [String]) -> Bool {
        let names = names.map { Array($0.utf8) }
        var end = 0
        var hasOthers = false
        each(in: 0..<reader.count, reader) { offset, content in
            end = content.upperBound
            hasOthers = !names.contains { reader.has($0, at: offset) }
            return !hasOthers
        }
        return hasOthers || !reader.isPadding(from: end)
    }
}
