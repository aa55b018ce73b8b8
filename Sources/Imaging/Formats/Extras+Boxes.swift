// Of the formats that are made of boxes or directories.

extension Extras {
    func areInHEIF(_ reader: ByteReader) -> Bool {
        if Self.hasBoxes(reader, besides: ["ftyp", "meta", "mdat", "moov"]) { return true }
        guard !policy.keepsAll, let meta = HEIFBoxes.box("meta", in: 0..<reader.count, reader) else { return false }
        // A full box: version and flags come first.
        let parts = min(meta.lowerBound + 4, meta.upperBound)..<meta.upperBound
        guard let list = HEIFBoxes.box("iinf", in: parts, reader) else { return false }
        let first = list.lowerBound + (reader.byte(at: list.lowerBound) == 0 ? 6 : 8)
        guard first <= list.upperBound else { return false }
        var found = false
        HEIFBoxes.eachBox(in: first..<list.upperBound, reader) { _, content in
            let start = content.lowerBound
            // Behind version, flags, the item's number and its protection.
            let type = start + (reader.byte(at: start) == 3 ? 10 : 8)
            found = ["Exif", "mime", "uri "].contains { reader.has($0, at: type) }
            return !found
        }
        return found
    }

    func areInJXL(_ reader: ByteReader) -> Bool {
        // A bare codestream is nothing but the picture.
        guard reader.has("JXL ", at: 4) else { return false }
        let picture = ["JXL ", "ftyp", "jxll", "jxlc", "jxlp", "jxli"]
        return Self.hasBoxes(reader, besides: policy.keepsAll ? picture + ["Exif", "xml "] : picture)
    }

    private static func hasBoxes(_ reader: ByteReader, besides names: [String]) -> Bool {
        let names = names.map { Array($0.utf8) }
        var end = 0
        var hasOthers = false
        HEIFBoxes.eachBox(in: 0..<reader.count, reader) { offset, content in
            end = content.upperBound
            hasOthers = !names.contains { reader.has($0, at: offset) }
            return !hasOthers
        }
        return hasOthers || !isPadding(from: end, reader)
    }

    /// Of any of its pages.
    func areInTIFF(_ reader: ByteReader) -> Bool {
        let isLittle = reader.byte(at: 0) == UInt8(ascii: "I")
        func number(_ length: Int, at offset: Int) -> Int? {
            isLittle ? reader.little(length, at: offset) : reader.big(length, at: offset)
        }
        // Of wider numbers none are made here.
        guard number(2, at: 2) == 42 else { return true }
        var next = number(4, at: 4) ?? 0
        for _ in 0..<Self.mostPages where next != 0 {
            guard let count = number(2, at: next), reader.contains(next, length: 2 + 12 * count) else { return false }
            for index in 0..<count {
                guard let tag = number(2, at: next + 2 + 12 * index), mayStay(tag: tag) else { return true }
            }
            next = number(4, at: next + 2 + 12 * count) ?? 0
        }
        return next != 0
    }

    /// Which also ends those that go in circles.
    private static let mostPages = 1_000

    /// What libtiff needs for the pixels, and of the rest what may be kept.
    private func mayStay(tag: Int) -> Bool {
        switch tag {
        case 254...259, 262...266, 273, 274, 277...284, 286...293, 296, 297, 301, 317...325, 332, 334, 336, 338...341,
            347, 512...521, 529...532:
            true
        case 34675: policy.keepsProfile
        default: false
        }
    }
}
