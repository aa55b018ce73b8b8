/// Reads one kind of list from its decoded bytes, which come piece by piece.
protocol ListParser: AnyObject {
    func feed(_ bytes: UnsafeRawBufferPointer) throws
    func finish() throws
}

/// Gets the entries that parsers find, checks their URLs, and passes them on.
final class ListOutput {
    /// The database's own limit for `items.meta`.
    private static let longestMeta = 16_384

    private let sink: (ListEvent) throws -> Void

    init(_ sink: @escaping (ListEvent) throws -> Void) { self.sink = sink }

    func put(_ url: String, meta: [ListMember] = [], line: Int) throws {
        switch URLCheck.verdict(url) {
        case .bad(let message): return try refuse(line, message)
        case .doubtful(let message): try sink(.warning(ListMistake(line: line, message)))
        case .good: break
        }
        let size = meta.reduce(2) { $0 + $1.name.utf8.count + $1.json.utf8.count + 4 }
        guard size <= Self.longestMeta else {
            return try refuse(line, "The other columns have more than 16 KiB together.")
        }
        try sink(.entry(ListEntry(url: url, meta: meta, line: line)))
    }

    func nest(_ url: String, line: Int) throws {
        if case .bad(let message) = URLCheck.verdict(url) { return try refuse(line, message) }
        try sink(.nested(url, line: line))
    }

    func refuse(_ line: Int, _ message: String) throws { try sink(.mistake(ListMistake(line: line, message))) }
}

/// Cuts bytes into lines. A line ends with LF, CR LF or CR.
struct LineCutter {
    /// Maximum bytes of a line: a `data:` URL contains a whole picture.
    static let longest = 16 << 20

    private var rest: [UInt8] = []
    private var number = 0
    private var endedWithReturn = false

    /// Calls `body` with each line that ends in these bytes, without its end.
    mutating func feed(
        _ bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer, Int) throws -> Void,
    ) throws {
        var start = 0
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            guard byte == 10 || byte == 13 else {
                index += 1
                endedWithReturn = false
                continue
            }
            if byte == 10, endedWithReturn, index == start, rest.isEmpty {
                endedWithReturn = false
            } else {
                endedWithReturn = byte == 13
                try end(UnsafeRawBufferPointer(rebasing: bytes[start..<index]), body)
            }
            index += 1
            start = index
        }
        guard start < bytes.count else { return }
        rest.append(contentsOf: bytes[start...])
        guard rest.count <= Self.longest else {
            throw ListMistake(line: number + 1, "The line is longer than 16 MiB, the maximum for a line of a list.")
        }
    }

    /// Calls `body` with a last line that has no end.
    mutating func finish(_ body: (UnsafeRawBufferPointer, Int) throws -> Void) throws {
        if !rest.isEmpty { try end(UnsafeRawBufferPointer(start: nil, count: 0), body) }
    }

    private mutating func end(
        _ bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer, Int) throws -> Void,
    ) throws {
        number += 1
        guard !rest.isEmpty else { return try body(bytes, number) }
        rest.append(contentsOf: bytes)
        defer { rest.removeAll(keepingCapacity: rest.count < 1 << 20) }
        try rest.withUnsafeBytes { try body($0, number) }
    }
}

/// A URL on each line.
final class TextListParser: ListParser {
    private let output: ListOutput
    private var cutter = LineCutter()

    init(_ output: ListOutput) { self.output = output }

    func feed(_ bytes: UnsafeRawBufferPointer) throws { try cutter.feed(bytes, read) }

    func finish() throws { try cutter.finish(read) }

    private func read(_ line: UnsafeRawBufferPointer, _ number: Int) throws {
        let space: (UInt8) -> Bool = { $0 == 32 || $0 == 9 }
        var text = line[...].drop(while: space)
        guard let first = text.first, first != UInt8(ascii: "#") else { return }
        while let last = text.last, space(last) { text = text.dropLast() }
        try output.put(String(decoding: UnsafeRawBufferPointer(rebasing: text), as: UTF8.self), line: number)
    }
}
