/// The location of the items of a HEIC or AVIF: in the file, or in a box of their own.
///
/// ISO/IEC 14496-12, 8.11.3 (`iloc`) and 8.11.6 (`iinf`, `infe`). Invalid numbers end the reading; libheif then reports
/// the error.
package struct HEIFItems {
    /// A part of an item, by its entry in `iloc`.
    private struct Extent {
        let item: Int
        /// 0: from the file's first byte; 1: from the start of `idat`; 2: in another item.
        let method: Int
        let base: Int
        let offset: Int
        let length: Int
        /// Where the offset stands in the file.
        let place: Range<Int>
        /// Where these three numbers stand in the file; all parts of an item share the first.
        let numbers: [Range<Int>]
    }

    private let reader: ByteReader
    /// The boxes in `meta`.
    private let parts: Range<Int>
    /// Maximum items, and maximum parts of all items together. Real pictures have fewer. A list of billions would take
    /// long to read: an entry whose numbers have no bytes can be repeated at will.
    private static let maxCount = 65_536

    package init(_ parts: Range<Int>, _ reader: ByteReader) {
        self.parts = parts
        self.reader = reader
    }

    /// Nil if there is no list of items.
    package init?(_ reader: ByteReader) { self.init(in: 0..<reader.count, reader) }

    /// The items of a part of the file, such as a track; nil if it has no list of items.
    package init?(in range: Range<Int>, _ reader: ByteReader) {
        guard let meta = Boxes.box("meta", in: range, reader) else { return nil }
        // A full box begins with version and flags.
        self.init(min(meta.lowerBound + 4, meta.upperBound)..<meta.upperBound, reader)
    }

    /// The contents of the pictures that are grids.
    package var grids: [Range<Int>] {
        let data = Boxes.box("idat", in: parts, reader)
        return extents(of: ["grid"]).compactMap { extent in
            let start = (extent.method == 1 ? data?.lowerBound ?? 0 : 0).addingReportingOverflow(extent.base)
            let place = start.partialValue.addingReportingOverflow(extent.offset)
            guard extent.method <= 1, !start.overflow, !place.overflow,
                reader.contains(place.partialValue, length: extent.length)
            else { return nil }
            return place.partialValue..<(place.partialValue + extent.length)
        }
    }

    /// The offsets of the numbers that locate EXIF and XMP.
    package var placesOfMetadata: [Range<Int>] { extents(of: ["Exif", "mime", "uri "]).flatMap(\.numbers) }

    /// The numbers that locate items by their offset in the file.
    package var placesOfData: [Range<Int>] {
        guard let list = Boxes.box("iloc", in: parts, reader) else { return [] }
        return extents(in: list).filter { $0.method == 0 && !$0.place.isEmpty }.map(\.place)
    }

    private func extents(of types: [StaticString]) -> [Extent] {
        let items = items(of: types)
        guard !items.isEmpty, let list = Boxes.box("iloc", in: parts, reader) else { return [] }
        return extents(in: list).filter { items.contains($0.item) }
    }

    /// The ids of the items of these types.
    private func items(of types: [StaticString]) -> Set<Int> {
        guard let list = Boxes.box("iinf", in: parts, reader), let version = reader.byte(at: list.lowerBound) else {
            return []
        }
        let first = list.lowerBound + 4 + (version == 0 ? 2 : 4)
        guard first <= list.upperBound else { return [] }
        var items: Set<Int> = []
        Boxes.each(in: first..<list.upperBound, reader) { offset, content in
            // Versions before 2 have no types.
            guard reader.has("infe", at: offset), let version = reader.byte(at: content.lowerBound), version >= 2 else {
                return true
            }
            let length = version == 2 ? 2 : 4
            let type = content.lowerBound + 4 + length + 2
            if let item = reader.big(length, at: content.lowerBound + 4),
                types.contains(where: { reader.has($0, at: type) })
            {
                items.insert(item)
            }
            return items.count < Self.maxCount
        }
        return items
    }

    private func extents(in box: Range<Int>) -> [Extent] {
        var cursor = Cursor(reader: reader, offset: box.lowerBound)
        guard let version = cursor.next(1), cursor.next(3) != nil, let sizes = cursor.next(2) else { return [] }
        let (offsetLength, lengthLength) = (sizes >> 12, sizes >> 8 & 15)
        let (baseLength, indexLength) = (sizes >> 4 & 15, version > 0 ? sizes & 15 : 0)
        guard let count = cursor.next(version < 2 ? 2 : 4), count <= Self.maxCount else { return [] }
        var found: [Extent] = []
        for _ in 0..<count {
            guard cursor.offset < box.upperBound, let item = cursor.next(version < 2 ? 2 : 4) else { return found }
            let method = version == 0 ? 0 : (cursor.next(2) ?? 0) & 15
            guard cursor.next(2) != nil else { return found }
            let first = cursor.offset
            guard let base = cursor.next(baseLength) else { return found }
            let shared = first..<cursor.offset
            guard let extents = cursor.next(2) else { return found }
            for _ in 0..<extents {
                guard found.count < Self.maxCount, cursor.offset < box.upperBound, cursor.next(indexLength) != nil
                else {
                    return found
                }
                let start = cursor.offset
                guard let offset = cursor.next(offsetLength) else { return found }
                let place = start..<cursor.offset
                guard let length = cursor.next(lengthLength) else {
                    return found
                }
                found.append(
                    Extent(
                        item: item, method: method, base: base, offset: offset, length: length,
                        place: place, numbers: [shared, start..<cursor.offset]))
            }
        }
        return found
    }

    /// Reads consecutive numbers.
    private struct Cursor {
        let reader: ByteReader
        var offset: Int

        /// Nil at the end of the bytes; 0 for a number without bytes; the largest number for one that does not fit.
        mutating func next(_ length: Int) -> Int? {
            guard length > 0 else { return 0 }
            defer { offset += length }
            guard length <= 8, reader.contains(offset, length: length) else { return nil }
            return reader.big(length, at: offset) ?? .max
        }
    }
}
