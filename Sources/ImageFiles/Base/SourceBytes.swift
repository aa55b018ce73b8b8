package import Core
package import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// A regular file's bytes, mapped into memory without a copy. The caller's descriptor stays open; its offset stays.
///
/// The file must not shrink while it is mapped. Sources are complete before they are mapped, and never change.
package struct SourceMapping: ~Copyable {
    private let bytes: UnsafeRawBufferPointer

    package init(_ descriptor: FileDescriptor) throws(Failure) {
        bytes = try Self.map(descriptor.rawValue)
    }

    deinit {
        if let start = bytes.baseAddress { munmap(UnsafeMutableRawPointer(mutating: start), bytes.count) }
    }

    /// Lends the bytes, which must not be used after `body`.
    package func lend<Result>(_ body: (UnsafeRawBufferPointer) throws(Failure) -> Result) throws(Failure) -> Result {
        try body(bytes)
    }

    private static func map(_ descriptor: CInt) throws(Failure) -> UnsafeRawBufferPointer {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failure("The source cannot be read", errno) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw Failure(.transform, "The source is not a regular file.")
        }
        let count = Int(status.st_size)
        guard count > 0 else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        guard let start = mmap(nil, count, PROT_READ, MAP_PRIVATE, descriptor, 0), start != MAP_FAILED else {
            throw failure("The source cannot be mapped", errno)
        }
        return UnsafeRawBufferPointer(start: start, count: count)
    }

    private static func failure(_ what: String, _ code: CInt) -> Failure {
        Failure(.transform, "\(what): \(Errno(rawValue: code)).")
    }
}

/// Bounds-checked reading: every read past the end is nil, with any offset that a file names.
package struct ByteReader {
    package let bytes: UnsafeRawBufferPointer

    package init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    package var count: Int { bytes.count }

    package func byte(at offset: Int) -> UInt8? {
        offset >= 0 && offset < bytes.count ? bytes[offset] : nil
    }

    package func has(_ ascii: StaticString, at offset: Int) -> Bool {
        guard contains(offset, length: ascii.utf8CodeUnitCount) else { return false }
        for index in 0..<ascii.utf8CodeUnitCount where bytes[offset + index] != ascii.utf8Start[index] { return false }
        return true
    }

    package func has(_ expected: [UInt8], at offset: Int) -> Bool {
        guard contains(offset, length: expected.count) else { return false }
        for index in expected.indices where bytes[offset + index] != expected[index] { return false }
        return true
    }

    package func contains(_ offset: Int, length: Int) -> Bool {
        offset >= 0 && length >= 0 && offset <= bytes.count && length <= bytes.count - offset
    }

    /// An unsigned number of `length` bytes, most significant first; nil if eight bytes do not fit an Int.
    package func big(_ length: Int, at offset: Int) -> Int? {
        number(length, at: offset) { $0 }
    }

    /// The same, least significant byte first.
    package func little(_ length: Int, at offset: Int) -> Int? {
        number(length, at: offset) { length - 1 - $0 }
    }

    private func number(_ length: Int, at offset: Int, place: (Int) -> Int) -> Int? {
        guard contains(offset, length: length) else { return nil }
        var value: UInt64 = 0
        for index in 0..<length { value = value << 8 | UInt64(bytes[offset + place(index)]) }
        return Int(exactly: value)
    }

    /// Whether the bytes are fewer than a signature and are a prefix of one of `starts`.
    package func mayBecome(_ starts: [[UInt8]]) -> Bool {
        count < 12 && starts.contains { has(Array($0.prefix(count)), at: 0) }
    }

    /// Whether only zeros follow.
    package func isPadding(from end: Int) -> Bool { end >= count || bytes[max(0, end)...].allSatisfy { $0 == 0 } }
}

/// The dimensions, as far as the bytes so far contain them.
package enum HeaderFinding: Equatable {
    case needsMore
    case broken(String)
    case size(width: Int, height: Int)

    package var pixelSize: PixelSize? {
        if case .size(let width, let height) = self { PixelSize(width: width, height: height) } else { nil }
    }
}
