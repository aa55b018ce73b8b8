import ImageFiles

/// The first directory of a TIFF, which describes the decoded picture.
///
/// TIFF 6.0, section 2, and BigTIFF's wider numbers.
struct TIFFDirectory {
    struct Field {
        let tag: Int
        let type: Int
        /// Bytes of each value.
        let size: Int
        let count: Int
        let offset: Int
    }

    /// The fields of known types, with their values anywhere. Empty if the directory is incomplete.
    private(set) var fields: [Field] = []
    /// Whether the file ends before the directory does.
    private(set) var endsEarly = true

    private let reader: ByteReader
    private let isLittle: Bool
    private let isBig: Bool

    init(_ reader: ByteReader) {
        self.reader = reader
        isLittle = reader.byte(at: 0) == UInt8(ascii: "I")
        isBig = reader.byte(at: 2) == 0x2B || reader.byte(at: 3) == 0x2B
        guard let directory = number(isBig ? 8 : 4, at: isBig ? 8 : 4),
            let entries = number(isBig ? 8 : 2, at: directory)
        else { return }
        // 4,096 is far more than there are tags; a larger number is damage, not a cut.
        endsEarly = entries <= 4096
        let first = directory + (isBig ? 8 : 2)
        let size = isBig ? 20 : 12
        guard entries <= 4096, reader.contains(first, length: entries * size) else { return }
        endsEarly = false
        fields = (0..<entries).compactMap { field(at: first + $0 * size) }
    }

    private func field(at entry: Int) -> Field? {
        guard let tag = number(2, at: entry), let type = number(2, at: entry + 2),
            let count = number(isBig ? 8 : 4, at: entry + 4), let size = Self.sizes[type],
            count <= Int(Int32.max)
        else { return nil }
        let room = isBig ? 8 : 4
        let inline = entry + (isBig ? 12 : 8)
        let offset = size * count > room ? number(room, at: inline) : inline
        return offset.map { Field(tag: tag, type: type, size: size, count: count, offset: $0) }
    }

    func field(_ tag: Int) -> Field? { fields.first { $0.tag == tag } }

    /// A whole number; nil if it is not in the file.
    func value(_ index: Int, of field: Field) -> Int? {
        index < field.count ? place(index, of: field).flatMap { number(field.size, at: $0) } : nil
    }

    /// The first value of the field with this tag.
    func value(of tag: Int) -> Int? { field(tag).flatMap { value(0, of: $0) } }

    /// A fraction of two whole numbers, or a whole number.
    func fraction(_ index: Int, of field: Field) -> Double? {
        guard field.type == Self.fraction else {
            return Self.wholeNumbers.contains(field.type) ? value(index, of: field).map(Double.init) : nil
        }
        guard index < field.count, let start = place(index, of: field), let above = number(4, at: start),
            let below = number(4, at: start + 4), below > 0
        else { return nil }
        return Double(above) / Double(below)
    }

    /// Offsets may be any number; nil if the sum is no place in the file.
    private func place(_ index: Int, of field: Field) -> Int? {
        reader.contains(field.offset, length: 0) ? field.offset + index * field.size : nil
    }

    private func number(_ length: Int, at offset: Int) -> Int? {
        isLittle ? reader.little(length, at: offset) : reader.big(length, at: offset)
    }

    private static let fraction = 5
    private static let wholeNumbers = [1, 3, 4]

    /// Bytes of each field type, by its number.
    private static let sizes = [
        1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8,
    ]
}

extension TIFFDirectory {
    /// Whether the file ends before the directory, or before data that it points to.
    var pointsPastTheEnd: Bool {
        endsEarly
            || fields.contains { !reader.contains($0.offset, length: $0.size * $0.count) } || pixelsEndEarly
    }

    /// Strips (273, 279) or tiles (324, 325): offsets and lengths, side by side.
    private var pixelsEndEarly: Bool {
        for (offsets, lengths) in [(273, 279), (324, 325)] {
            guard let offsets = field(offsets), let lengths = field(lengths) else { continue }
            for index in 0..<min(offsets.count, lengths.count) {
                guard let offset = value(index, of: offsets), let length = value(index, of: lengths) else { continue }
                if !reader.contains(offset, length: length) { return true }
            }
        }
        return false
    }
}

/// The tags of a TIFF.
enum TIFFTags {
    /// As ``FormatDefinition/hasExtras(_:_:)``, for all of its pages.
    static func areExtra(in reader: ByteReader, _ policy: MetadataPolicy) -> Bool {
        let isLittle = reader.byte(at: 0) == UInt8(ascii: "I")
        func number(_ length: Int, at offset: Int) -> Int? {
            isLittle ? reader.little(length, at: offset) : reader.big(length, at: offset)
        }
        // BigTIFF, which is not written here.
        guard number(2, at: 2) == 42 else { return true }
        var next = number(4, at: 4) ?? 0
        for _ in 0..<maxPages where next != 0 {
            guard let count = number(2, at: next), reader.contains(next, length: 2 + 12 * count) else { return false }
            for index in 0..<count {
                guard let tag = number(2, at: next + 2 + 12 * index), mayStay(tag: tag, policy) else { return true }
            }
            next = number(4, at: next + 2 + 12 * count) ?? 0
        }
        return next != 0
    }

    /// This limit also ends directories that form a circle.
    private static let maxPages = 1_000

    /// The tags that libtiff needs for the pixels, and the others that may be kept.
    private static func mayStay(tag: Int, _ policy: MetadataPolicy) -> Bool {
        switch tag {
        case 254...259, 262...266, 273, 274, 277...284, 286...293, 296, 297, 301, 317...325, 332, 334, 336, 338...341,
            347, 512...521, 529...532:
            true
        case 34675: policy.keepsProfile
        default: false
        }
    }
}
