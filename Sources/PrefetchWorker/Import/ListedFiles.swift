internal import Core
internal import FoundationEssentials
public import SystemPackage

/// In an iterator, the name `Failure` means the sequence's own error type.
private typealias Refusal = Failure

/// The files of a folder that a list names, each with its URL.
///
/// A line has a file's path in the folder and its URL: as a JSON object `{"path":…,"url":…}` if it begins with `{`,
/// otherwise with a tab between the two if it has one, and otherwise as CSV (RFC 4180). Empty lines, and those that
/// begin with `#`, are left out. A path may also begin with the folder's own path.
public struct ListedFiles: AsyncSequence, Sendable {
    private let folder: OpenFolder
    private let prefix: [UInt8]
    private let lines: LineReader

    /// - Parameter list: the list, read to its end. The caller closes it.
    /// - Throws: `usage` if the folder can't be opened.
    public init(_ folder: String, list: FileDescriptor) throws(WorkerError) {
        self.folder = try OpenFolder(folder)
        prefix = Array((folder.hasSuffix("/") ? folder : folder + "/").utf8)
        lines = LineReader(list)
    }

    public func makeAsyncIterator() -> Iterator { Iterator(folder, prefix, lines) }

    public struct Iterator: AsyncIteratorProtocol {
        private let folder: OpenFolder
        private let prefix: [UInt8]
        private let lines: LineReader
        private let queue = BlockingQueue("list")
        private var found: ArraySlice<NewPicture> = []

        init(_ folder: OpenFolder, _ prefix: [UInt8], _ lines: LineReader) {
            (self.folder, self.prefix, self.lines) = (folder, prefix, lines)
        }

        /// - Throws: `usage` if the list can't be read.
        public mutating func next() async throws -> NewPicture? {
            if found.isEmpty {
                found = try await queue.run { [folder, prefix, lines] in
                    Result { () throws(WorkerError) in
                        try lines.next(32).map { Self.picture($0, in: folder, prefix) }[...]
                    }
                }.get()
            }
            return found.popFirst()
        }

        private static func picture(
            _ line: LineReader.Line, in folder: OpenFolder, _ prefix: [UInt8],
        ) -> NewPicture {
            guard let pair = pair(line.bytes) else {
                let failure = Refusal(.invalidItem, "The line is not a path and a URL.")
                return NewPicture(.refused(failure), url: "", name: "line \(line.number)")
            }
            let path = pair.path.starts(with: prefix) ? Array(pair.path.dropFirst(prefix.count)) : pair.path
            let name = String(decoding: path, as: UTF8.self)
            do throws(Refusal) {
                return NewPicture(.opened(try folder.open(path: path)), url: pair.url, name: name)
            } catch {
                return NewPicture(.refused(error), url: pair.url, name: name)
            }
        }

        private static func pair(_ line: [UInt8]) -> (path: [UInt8], url: String)? {
            struct Named: Decodable {
                let path: String
                let url: String
            }
            if line.first == UInt8(ascii: "{") {
                // Best effort: a line that is no such object is reported as one that can't be read.
                let named = try? JSONDecoder().decode(Named.self, from: Data(line))
                return named.map { (Array($0.path.utf8), $0.url) }
            }
            let cells = line.contains(9) ? line.split(separator: 9, maxSplits: 1).map(Array.init) : csv(line)
            guard let cells, cells.count == 2, !cells[0].isEmpty, !cells[1].isEmpty else { return nil }
            return (cells[0], String(decoding: cells[1], as: UTF8.self))
        }

        /// The cells of one line; nil if a quote is not closed.
        private static func csv(_ line: [UInt8]) -> [[UInt8]]? {
            let quote = UInt8(ascii: "\"")
            var cells: [[UInt8]] = [[]]
            var rest = line[...]
            while true {
                if rest.first == quote {
                    rest = rest.dropFirst()
                    while let byte = rest.popFirst() {
                        if byte != quote {
                            cells[cells.count - 1].append(byte)
                        } else if rest.first == quote {
                            cells[cells.count - 1].append(quote)
                            rest = rest.dropFirst()
                        } else {
                            break
                        }
                        if rest.isEmpty { return nil }
                    }
                } else {
                    let cell = rest.prefix { $0 != UInt8(ascii: ",") }
                    cells[cells.count - 1] += cell
                    rest = rest.dropFirst(cell.count)
                }
                guard let next = rest.popFirst() else { return cells }
                guard next == UInt8(ascii: ",") else { return nil }
                cells.append([])
            }
        }
    }
}

/// Reads lines as they are asked for. `@unchecked`, since its iterator makes one call at a time, and waits for it.
final class LineReader: @unchecked Sendable {
    struct Line: Sendable {
        /// Counted from 1.
        let number: Int
        let bytes: [UInt8]
    }

    /// Maximum bytes of a line. A longer one is cut, and then is no path and URL.
    private static let longest = 1 << 16

    private let file: FileDescriptor
    private var buffer: ArraySlice<UInt8> = []
    private var isAtEnd = false
    private var number = 0

    init(_ file: FileDescriptor) { self.file = file }

    /// The next lines that are neither empty nor comments; none at the end. Blocks.
    func next(_ most: Int) throws(WorkerError) -> [Line] {
        var lines: [Line] = []
        while lines.count < most, let bytes = try line() {
            number += 1
            guard let first = bytes.first, first != UInt8(ascii: "#") else { continue }
            lines.append(Line(number: number, bytes: bytes))
        }
        return lines
    }

    private func line() throws(WorkerError) -> [UInt8]? {
        var line: [UInt8] = []
        while true {
            if let end = buffer.firstIndex(of: 10) {
                line += buffer[..<end].prefix(Self.longest - line.count)
                buffer = buffer[(end + 1)...]
                return Self.withoutReturn(line)
            }
            line += buffer.prefix(Self.longest - line.count)
            buffer = []
            if isAtEnd { return line.isEmpty ? nil : Self.withoutReturn(line) }
            try fill()
        }
    }

    private func fill() throws(WorkerError) {
        do {
            let bytes = try [UInt8](unsafeUninitializedCapacity: 1 << 16) { space, count in
                count = try file.read(into: UnsafeMutableRawBufferPointer(space))
            }
            isAtEnd = bytes.isEmpty
            buffer = bytes[...]
        } catch {
            throw WorkerError(.usage, "The list can't be read: \(error)")
        }
    }

    private static func withoutReturn(_ line: [UInt8]) -> [UInt8] { line.last == 13 ? line.dropLast() : line }
}
