/// The first directory of a TIFF: whether what it points at lies within the file.
///
/// TIFF 6.0, section 2, and BigTIFF's wider numbers.
struct TIFFStructure {
    private let reader: ByteReader
    private let isLittle: Bool
    private let isBig: Bool

    init(_ reader: ByteReader) {
        self.reader = reader
        isLittle = reader.byte(at: 0) == UInt8(ascii: "I")
        isBig = reader.byte(at: 2) == 0x2B || reader.byte(at: 3) == 0x2B
    }

    var endsEarly: Bool {
        guard let directory = number(isBig ? 8 : 4, at: isBig ? 8 : 4) else { return true }
        guard let entries = number(isBig ? 8 : 2, at: directory) else { return true }
        // 4,096 is far more than there are tags; a number beyond it is damage, not a cut.
        guard entries <= 4096 else { return false }
        let first = directory + (isBig ? 8 : 2)
        guard reader.contains(first, length: entries * entrySize) else { return true }
        return (0..<entries).contains { entryEndsEarly(at: first + $0 * entrySize) } || pixelsEndEarly(first, entries)
    }

    private var entrySize: Int { isBig ? 20 : 12 }

    private struct Field {
        let tag: Int
        let size: Int
        let count: Int
        let offset: Int
    }

    private func field(at entry: Int) -> Field? {
        guard let tag = number(2, at: entry), let type = number(2, at: entry + 2),
            let count = number(isBig ? 8 : 4, at: entry + 4), let size = Self.sizes[type],
            count <= Int(Int32.max)
        else { return nil }
        let room = isBig ? 8 : 4
        let inline = entry + (isBig ? 12 : 8)
        guard size * count > room else { return Field(tag: tag, size: size, count: count, offset: inline) }
        guard let offset = number(room, at: inline) else { return nil }
        return Field(tag: tag, size: size, count: count, offset: offset)
    }

    private func entryEndsEarly(at entry: Int) -> Bool {
        guard let field = field(at: entry) else { return false }
        return !reader.contains(field.offset, length: field.size * field.count)
    }

    /// Strips (273, 279) or tiles (324, 325): offsets and lengths, side by side.
    private func pixelsEndEarly(_ first: Int, _ entries: Int) -> Bool {
        let fields = (0..<entries).compactMap { field(at: first + $0 * entrySize) }
        for (offsets, lengths) in [(273, 279), (324, 325)] {
            guard let offsets = fields.first(where: { $0.tag == offsets }),
                let lengths = fields.first(where: { $0.tag == lengths })
            else { continue }
            for index in 0..<min(offsets.count, lengths.count) {
                guard let offset = value(index, of: offsets), let length = value(index, of: lengths) else { continue }
                if !reader.contains(offset, length: length) { return true }
            }
        }
        return false
    }

    private func value(_ index: Int, of field: Field) -> Int? {
        number(field.size, at: field.offset + index * field.size)
    }

    private func number(_ length: Int, at offset: Int) -> Int? {
        isLittle ? reader.little(length, at: offset) : reader.big(length, at: offset)
    }

    /// Bytes of each field type, by its number.
    private static let sizes = [
        1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8,
    ]
}
