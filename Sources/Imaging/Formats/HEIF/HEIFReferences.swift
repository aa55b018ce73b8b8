import ImageFiles

/// The references between the items of a HEIC or AVIF.
///
/// ISO/IEC 14496-12, 8.11.4 (`pitm`) and 8.11.12 (`iref`); ISO/IEC 23008-12, 6.9 for `prem` and `auxl`.
struct HEIFReferences {
    /// Whether the colours are premultiplied with the alpha: libheif reports this, and does not convert them.
    private(set) var isPremultiplied = false

    private let reader: ByteReader

    init(_ reader: ByteReader) {
        self.reader = reader
        guard let meta = Boxes.box("meta", in: 0..<reader.count, reader) else { return }
        // A full box begins with version and flags.
        let parts = min(meta.lowerBound + 4, meta.upperBound)..<meta.upperBound
        guard let primary = primaryItem(in: parts), let list = Boxes.box("iref", in: parts, reader),
            let version = reader.byte(at: list.lowerBound), list.count >= 4
        else { return }
        let length = version == 0 ? 2 : 4
        var premultiplied: Set<Int> = []
        var helpers: Set<Int> = []
        Boxes.each(in: (list.lowerBound + 4)..<list.upperBound, reader) { offset, content in
            guard let (from, to) = items(in: content, each: length) else { return true }
            if reader.has("prem", at: offset), from == primary { premultiplied.formUnion(to) }
            if reader.has("auxl", at: offset), to.contains(primary) { helpers.insert(from) }
            return true
        }
        isPremultiplied = !premultiplied.isDisjoint(with: helpers)
    }

    private func primaryItem(in parts: Range<Int>) -> Int? {
        guard let box = Boxes.box("pitm", in: parts, reader), let version = reader.byte(at: box.lowerBound) else {
            return nil
        }
        return reader.big(version == 0 ? 2 : 4, at: box.lowerBound + 4)
    }

    /// One item, the number of its references, and the items that it refers to.
    private func items(in content: Range<Int>, each length: Int) -> (from: Int, to: [Int])? {
        let start = content.lowerBound
        guard let from = reader.big(length, at: start), let count = reader.big(2, at: start + length),
            length + 2 + count * length <= content.count
        else { return nil }
        return (from, (0..<count).compactMap { reader.big(length, at: start + length + 2 + $0 * length) })
    }
}
