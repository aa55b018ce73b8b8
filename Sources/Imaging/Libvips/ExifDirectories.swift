/// Reads the directories of an EXIF block or a TIFF, and no more of them than a picture has.
struct ExifDirectories {
    private let reader: ByteReader
    private let isLittle: Bool
    /// Bytes of values that may still be read: entries that all point at the same place cost memory only once.
    private var budget = 1 << 20

    /// Where the first one is; nil where this is no TIFF.
    let first: Int?

    init(_ bytes: UnsafeRawBufferPointer) {
        reader = ByteReader(bytes)
        isLittle = reader.byte(at: 0) == UInt8(ascii: "I")
        let isTIFF = reader.has([0x49, 0x49, 0x2A, 0], at: 0) || reader.has([0x4D, 0x4D, 0, 0x2A], at: 0)
        first = isTIFF ? isLittle ? reader.little(4, at: 4) : reader.big(4, at: 4) : nil
    }

    /// Those that can be read.
    mutating func entries(at offset: Int) -> [ExifBlock.Entry] {
        guard let count = number(2, at: offset), count <= Self.most else { return [] }
        return (0..<count).compactMap { entry(at: offset + 2 + 12 * $0) }
    }

    /// More than there are tags.
    private static let most = 1_000

    private mutating func entry(at offset: Int) -> ExifBlock.Entry? {
        guard let tag = number(2, at: offset), let type = number(2, at: offset + 2),
            let count = number(4, at: offset + 4), let unit = Self.units[type]
        else { return nil }
        let length = count * unit.size
        guard length <= budget, let start = length <= 4 ? offset + 8 : number(4, at: offset + 8),
            reader.contains(start, length: length)
        else { return nil }
        budget -= length
        var value = Array(reader.bytes[start..<start + length])
        if !isLittle { Self.reverse(&value, unit.word) }
        return ExifBlock.Entry(tag: UInt16(tag), type: UInt16(type), count: UInt32(count), value: value)
    }

    private static func reverse(_ value: inout [UInt8], _ word: Int) {
        guard word > 1 else { return }
        for start in stride(from: 0, to: value.count, by: word) { value[start..<start + word].reverse() }
    }

    private func number(_ length: Int, at offset: Int) -> Int? {
        isLittle ? reader.little(length, at: offset) : reader.big(length, at: offset)
    }

    /// Bytes of a value of each type, and of the numbers it is made of.
    private static let units: [Int: (size: Int, word: Int)] = [
        1: (1, 1), 2: (1, 1), 3: (2, 2), 4: (4, 4), 5: (8, 4), 6: (1, 1), 7: (1, 1), 8: (2, 2), 9: (4, 4),
        10: (8, 4), 11: (4, 4), 12: (8, 8),
    ]
}
