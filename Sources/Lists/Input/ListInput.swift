internal import CInflate
internal import CZstd
public import SystemPackage

/// The decoded bytes of a list, piece by piece: gzip and zstd are unpacked, and UTF-16 is converted to UTF-8.
public final class ListInput {
    /// The bytes of one read.
    static let pieceSize = 1 << 18

    private let file: FileDescriptor
    private let name: String
    /// Maximum bytes after unpacking; nil for no limit.
    private let limit: Int64?
    private var unpacker: (any Unpacker)?
    private var converter: UTF16Converter?
    private var isStarted = false
    private var count: Int64 = 0
    /// Whether the list was UTF-16, so that an encoding that it declares is no longer true.
    private(set) var wasConverted = false

    /// - Parameters:
    ///   - file: read to its end. The caller closes it.
    ///   - name: for messages.
    public init(_ file: FileDescriptor, name: String, limit: Int64? = nil) {
        self.file = file
        self.name = name
        self.limit = limit
    }

    /// Calls `body` with the next piece, which may be empty.
    ///
    /// - Returns: false at the end, after the last call.
    func read(_ body: (UnsafeRawBufferPointer) throws -> Void) throws -> Bool {
        let piece = try nextPiece()
        let isLast = piece.isEmpty
        if !isStarted { try start(piece) }
        guard let unpacker else {
            try convert(piece, isLast: isLast, body)
            return !isLast
        }
        try unpacker.unpack(piece, isLast: isLast) { try convert($0, isLast: false, body) }
        if isLast { try convert([], isLast: true, body) }
        return !isLast
    }

    private func nextPiece() throws -> [UInt8] {
        do {
            var piece: [UInt8] = []
            // The first piece shows what the list is, and a pipe may deliver single bytes.
            repeat {
                let more = try [UInt8](unsafeUninitializedCapacity: Self.pieceSize) { buffer, count in
                    count = try file.read(into: UnsafeMutableRawBufferPointer(buffer))
                }
                if more.isEmpty { break }
                piece = piece.isEmpty ? more : piece + more
            } while !isStarted && piece.count < 64
            return piece
        } catch let error as Errno {
            throw ListMistake("\(name) can't be read: \(error).")
        }
    }

    private func start(_ first: [UInt8]) throws {
        isStarted = true
        if first.starts(with: [0x1F, 0x8B]) {
            unpacker = try GzipUnpacker(name)
        } else if first.starts(with: [0x28, 0xB5, 0x2F, 0xFD]) {
            unpacker = try ZstdUnpacker(name)
        }
    }

    private var isConverterKnown = false

    private func convert(
        _ bytes: UnsafeRawBufferPointer, isLast: Bool, _ body: (UnsafeRawBufferPointer) throws -> Void,
    ) throws {
        if let limit {
            count += Int64(bytes.count)
            guard count <= limit else {
                throw ListMistake("\(name) has more than \(limit) bytes. Allow more with --max-list.")
            }
        }
        var rest = bytes
        if !isConverterKnown, !bytes.isEmpty {
            isConverterKnown = true
            converter = UTF16Converter(for: bytes)
            wasConverted = converter != nil
            if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { rest = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(3)) }
        }
        guard converter != nil else { return try body(rest) }
        let text = converter?.convert(rest, isLast: isLast) ?? []
        try text.withUnsafeBytes(body)
    }

    private func convert(
        _ bytes: [UInt8], isLast: Bool, _ body: (UnsafeRawBufferPointer) throws -> Void,
    ) throws {
        try bytes.withUnsafeBytes { try convert($0, isLast: isLast, body) }
    }
}

/// UTF-16 as UTF-8, piece by piece.
struct UTF16Converter {
    private let isBigEndian: Bool
    /// Bytes for the next piece: the first half of a surrogate pair, and a byte without its second.
    private var left: [UInt8] = []
    private var isAtStart = true

    /// Nil for text that is not UTF-16. UTF-16 text begins with a byte order mark, or every second of its first bytes
    /// is 0.
    init?(for bytes: UnsafeRawBufferPointer) {
        if bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF]) {
            isBigEndian = bytes[0] == 0xFE
            return
        }
        let first = bytes.prefix(16)
        guard first.count >= 4 else { return nil }
        let zeros = first.indices.filter { first[$0] == 0 }
        guard zeros.count == first.count / 2 else { return nil }
        if zeros.allSatisfy({ $0 % 2 == 1 }) {
            isBigEndian = false
        } else if zeros.allSatisfy({ $0 % 2 == 0 }) {
            isBigEndian = true
        } else {
            return nil
        }
    }

    mutating func convert(_ bytes: UnsafeRawBufferPointer, isLast: Bool) -> [UInt8] {
        let all = left + bytes
        var units: [UInt16] = []
        units.reserveCapacity(all.count / 2)
        for index in stride(from: 0, to: all.count - 1, by: 2) {
            let (one, two) = (UInt16(all[index]), UInt16(all[index + 1]))
            units.append(isBigEndian ? one << 8 | two : two << 8 | one)
        }
        var used = units.count * 2
        if !isLast, let last = units.last, UTF16.isLeadSurrogate(last) {
            units.removeLast()
            used -= 2
        }
        left = Array(all[used...])
        if isAtStart, units.first == 0xFEFF { units.removeFirst() }
        isAtStart = isAtStart && used == 0
        return Array(String(decoding: units, as: UTF16.self).utf8)
    }
}
