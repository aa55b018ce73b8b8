/// Bounds-checked reading: every read past the end is nil, whatever offset a file names.
struct ByteReader {
    let bytes: UnsafeRawBufferPointer

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var count: Int { bytes.count }

    func byte(at offset: Int) -> UInt8? {
        offset >= 0 && offset < bytes.count ? bytes[offset] : nil
    }

    func has(_ ascii: StaticString, at offset: Int) -> Bool {
        guard contains(offset, length: ascii.utf8CodeUnitCount) else { return false }
        for index in 0..<ascii.utf8CodeUnitCount where bytes[offset + index] != ascii.utf8Start[index] { return false }
        return true
    }

    func has(_ expected: [UInt8], at offset: Int) -> Bool {
        guard contains(offset, length: expected.count) else { return false }
        for index in expected.indices where bytes[offset + index] != expected[index] { return false }
        return true
    }

    func contains(_ offset: Int, length: Int) -> Bool {
        offset >= 0 && length >= 0 && offset <= bytes.count && length <= bytes.count - offset
    }

    /// An unsigned number of `length` bytes, most significant first; of eight bytes, nil when it doesn't fit an Int.
    func big(_ length: Int, at offset: Int) -> Int? {
        number(length, at: offset) { $0 }
    }

    /// The same, least significant first.
    func little(_ length: Int, at offset: Int) -> Int? {
        number(length, at: offset) { length - 1 - $0 }
    }

    private func number(_ length: Int, at offset: Int, place: (Int) -> Int) -> Int? {
        guard contains(offset, length: length) else { return nil }
        var value: UInt64 = 0
        for index in 0..<length { value = value << 8 | UInt64(bytes[offset + place(index)]) }
        return Int(exactly: value)
    }
}
