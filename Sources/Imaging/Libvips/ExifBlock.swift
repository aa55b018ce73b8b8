import ImageFiles

/// The tags of an EXIF block, for formats into which libvips 8.14 writes none: TIFF and JPEG XL.
///
/// EXIF 2.32 is a TIFF without pixels: a main directory, and one each for the camera and the location. Its bytes are
/// untrusted. https://www.cipa.jp/std/documents/e/DC-X008-Translation-2019-E.pdf
struct ExifBlock {
    struct Entry: Equatable {
        let tag: UInt16
        let type: UInt16
        let count: UInt32
        /// The least significant byte first.
        let value: [UInt8]
    }

    private var main: [Entry] = []
    private var camera: [Entry] = []
    private var place: [Entry] = []

    /// - Parameters:
    ///   - bytes: may begin with the six bytes that mark an EXIF block, and before these with the four bytes of its
    ///     length in a box.
    ///   - isKept: called for each tag of the main directory.
    /// - Returns: nil if nothing in it can be read.
    init?(_ bytes: UnsafeRawBufferPointer, where isKept: (UInt16) -> Bool) {
        guard let start = Self.header(ByteReader(bytes)) else { return nil }
        var directories = ExifDirectories(UnsafeRawBufferPointer(rebasing: bytes[start...]))
        guard let first = directories.first else { return nil }
        let all = directories.entries(at: first)
        main = all.filter { isKept($0.tag) && !Self.describesTheFile($0.tag) }
        if let offset = Self.pointer(Self.cameraTag, in: all) {
            camera = directories.entries(at: offset).filter { !Self.describesTheFile($0.tag) }
        }
        if let offset = Self.pointer(Self.placeTag, in: all) { place = directories.entries(at: offset) }
        if main.isEmpty, camera.isEmpty, place.isEmpty { return nil }
    }

    /// Whether it begins like an EXIF block.
    static func isBlock(_ bytes: UnsafeRawBufferPointer) -> Bool { header(ByteReader(bytes)) != nil }

    /// Where the TIFF in it begins.
    private static func header(_ reader: ByteReader) -> Int? {
        [0, 6, 4, 10].first { reader.has([0x49, 0x49, 0x2A, 0], at: $0) || reader.has([0x4D, 0x4D, 0, 0x2A], at: $0) }
    }

    private static let cameraTag: UInt16 = 0x8769
    private static let placeTag: UInt16 = 0x8825

    private static func pointer(_ tag: UInt16, in entries: [Entry]) -> Int? {
        guard let value = entries.first(where: { $0.tag == tag })?.value, value.count == 4 else { return nil }
        return value.reversed().reduce(0) { $0 << 8 | Int($1) }
    }

    /// Whether a tag belongs to the file that the block came from: the location and type of pixels, the orientation,
    /// other blocks, pointers.
    private static func describesTheFile(_ tag: UInt16) -> Bool {
        switch tag {
        case 254...269, 273...304, 317...347, 512...532, 700, 33723, 34377, 34675: true
        case cameraTag, placeTag, 0xA002, 0xA003, 0xA005: true
        default: false
        }
    }

    /// As a file of its own.
    var bytes: [UInt8] { Array("II".utf8) + [0x2A, 0, 8, 0, 0, 0] + directory(at: 8) }

    /// The directories and their values, for the offset `start` in a little-endian TIFF.
    ///
    /// - Parameter present: further tags of the main directory, twelve bytes each; they override tags of the block.
    func directory(at start: Int, with present: [(tag: UInt16, bytes: [UInt8])] = []) -> [UInt8] {
        let taken = Set(present.map(\.tag))
        let entries = main.filter { !taken.contains($0.tag) }
        let parts = [(Self.cameraTag, camera), (Self.placeTag, place)].filter { !$0.1.isEmpty && !taken.contains($0.0) }
        let length = 2 + 12 * (entries.count + parts.count + present.count) + 4
        var lines = present
        var values: [UInt8] = []
        for entry in entries { lines.append((entry.tag, entry.line(values: &values, at: start + length))) }
        for (tag, part) in parts {
            let place = start + length + values.count
            lines.append((tag, little(tag) + little(UInt16(4)) + little(UInt32(1)) + little(UInt32(place))))
            values += Self.directory(part, at: place)
        }
        return Self.table(lines) + values
    }

    private static func directory(_ entries: [Entry], at start: Int) -> [UInt8] {
        var values: [UInt8] = []
        let length = 2 + 12 * entries.count + 4
        let lines = entries.map { (tag: $0.tag, bytes: $0.line(values: &values, at: start + length)) }
        return table(lines) + values
    }

    /// Sorted by tag, as TIFF requires, without a further directory.
    private static func table(_ lines: [(tag: UInt16, bytes: [UInt8])]) -> [UInt8] {
        little(UInt16(lines.count)) + lines.sorted { $0.tag < $1.tag }.flatMap(\.bytes) + [0, 0, 0, 0]
    }
}

extension ExifBlock.Entry {
    /// Twelve bytes. A value of more than four bytes is appended to `values`, which begin at `start`.
    fileprivate func line(values: inout [UInt8], at start: Int) -> [UInt8] {
        let head = little(tag) + little(type) + little(count)
        if value.count <= 4 { return head + value + [UInt8](repeating: 0, count: 4 - value.count) }
        defer { values += value + [UInt8](repeating: 0, count: value.count & 1) }
        return head + little(UInt32(start + values.count))
    }
}

private func little<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
    withUnsafeBytes(of: number.littleEndian) { Array($0) }
}

/// Reads the directories of an EXIF block or a TIFF, and no more of them than a picture has.
struct ExifDirectories {
    private let reader: ByteReader
    private let isLittle: Bool
    /// Bytes of values that may still be read, so that entries that all point at the same place do not multiply memory.
    private var budget = 1 << 20

    /// Offset of the first directory; nil if this is no TIFF.
    let first: Int?

    init(_ bytes: UnsafeRawBufferPointer) {
        reader = ByteReader(bytes)
        isLittle = reader.byte(at: 0) == UInt8(ascii: "I")
        let isTIFF = reader.has([0x49, 0x49, 0x2A, 0], at: 0) || reader.has([0x4D, 0x4D, 0, 0x2A], at: 0)
        first = isTIFF ? isLittle ? reader.little(4, at: 4) : reader.big(4, at: 4) : nil
    }

    /// The entries that can be read.
    mutating func entries(at offset: Int) -> [ExifBlock.Entry] {
        guard let count = number(2, at: offset), count <= Self.maxCount else { return [] }
        return (0..<count).compactMap { entry(at: offset + 2 + 12 * $0) }
    }

    /// Maximum entries, more than there are tags.
    private static let maxCount = 1_000

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

    /// The size of a value of each type, and of the numbers in it.
    private static let units: [Int: (size: Int, word: Int)] = [
        1: (1, 1), 2: (1, 1), 3: (2, 2), 4: (4, 4), 5: (8, 4), 6: (1, 1), 7: (1, 1), 8: (2, 2), 9: (4, 4),
        10: (8, 4), 11: (4, 4), 12: (8, 8),
    ]
}
