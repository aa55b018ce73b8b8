/// Where the pictures that are grids of others lie in a HEIC or AVIF: beside the pixels, or in a box of their own.
///
/// ISO/IEC 14496-12, 8.11.3 (`iloc`) and 8.11.6 (`iinf`, `infe`). Numbers that can't be right end the reading; libheif
/// then has its say.
struct HEIFItems {
    /// What each grid's item holds.
    private(set) var grids: [Range<Int>] = []

    private let reader: ByteReader
    /// Nobody's picture has more; a list of billions would be read for long.
    private static let most = 65_536

    /// - Parameter parts: the boxes in `meta`.
    init(_ parts: Range<Int>, _ reader: ByteReader) {
        self.reader = reader
        let names = gridItems(in: parts)
        guard !names.isEmpty, let locations = HEIFBoxes.box("iloc", in: parts, reader) else { return }
        grids = places(locations, data: HEIFBoxes.box("idat", in: parts, reader), of: names)
    }

    /// The numbers of the items whose type is `grid`.
    private func gridItems(in parts: Range<Int>) -> Set<Int> {
        guard let list = HEIFBoxes.box("iinf", in: parts, reader), let version = reader.byte(at: list.lowerBound) else {
            return []
        }
        let first = list.lowerBound + 4 + (version == 0 ? 2 : 4)
        guard first <= list.upperBound else { return [] }
        var items: Set<Int> = []
        HEIFBoxes.eachBox(in: first..<list.upperBound, reader) { offset, content in
            // Versions before 2 have no types.
            guard reader.has("infe", at: offset), let version = reader.byte(at: content.lowerBound), version >= 2 else {
                return true
            }
            let length = version == 2 ? 2 : 4
            if let item = reader.big(length, at: content.lowerBound + 4),
                reader.has("grid", at: content.lowerBound + 4 + length + 2)
            {
                items.insert(item)
            }
            return items.count < Self.most
        }
        return items
    }

    private func places(_ box: Range<Int>, data: Range<Int>?, of wanted: Set<Int>) -> [Range<Int>] {
        var cursor = Cursor(reader: reader, offset: box.lowerBound)
        guard let version = cursor.next(1), cursor.next(3) != nil, let sizes = cursor.next(2) else { return [] }
        let (offsetLength, lengthLength) = (sizes >> 12, sizes >> 8 & 15)
        let (baseLength, indexLength) = (sizes >> 4 & 15, version > 0 ? sizes & 15 : 0)
        guard let count = cursor.next(version < 2 ? 2 : 4), count <= Self.most else { return [] }
        var found: [Range<Int>] = []
        for _ in 0..<count {
            guard cursor.offset < box.upperBound, let item = cursor.next(version < 2 ? 2 : 4) else { return found }
            // 0: from the file's first byte; 1: from the start of `idat`; 2: in another item.
            let method = version == 0 ? 0 : (cursor.next(2) ?? 0) & 15
            guard cursor.next(2) != nil, let base = cursor.next(baseLength), let extents = cursor.next(2) else {
                return found
            }
            for _ in 0..<extents {
                guard cursor.offset < box.upperBound, cursor.next(indexLength) != nil,
                    let offset = cursor.next(offsetLength), let length = cursor.next(lengthLength)
                else { return found }
                let start = (method == 1 ? data?.lowerBound ?? 0 : 0).addingReportingOverflow(base)
                let place = start.partialValue.addingReportingOverflow(offset)
                guard wanted.contains(item), method <= 1, !start.overflow, !place.overflow,
                    reader.contains(place.partialValue, length: length)
                else { continue }
                found.append(place.partialValue..<(place.partialValue + length))
            }
        }
        return found
    }

    /// Numbers one after the other.
    private struct Cursor {
        let reader: ByteReader
        var offset: Int

        /// Nil at the end of the bytes; 0 for a number without any.
        mutating func next(_ length: Int) -> Int? {
            guard length > 0 else { return 0 }
            defer { offset += length }
            return length <= 8 ? reader.big(length, at: offset) : nil
        }
    }
}
