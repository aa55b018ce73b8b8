internal import Core

/// Reads CSV (RFC 4180) and tab-separated values, with bounded memory.
final class CSVParser: ListParser {
    /// Maximum bytes of a row: an open quote would take the rest of the file otherwise.
    private static let longestRow = 1 << 20
    private static let quote = UInt8(ascii: "\"")

    private enum Place {
        case cellStart, plain, quoted
        /// After a quote within quotes: the cell ends, or the quote was doubled.
        case afterQuote
    }

    private let separator: UInt8
    private let rows: CSVRows
    private var place = Place.cellStart
    /// The bytes of the row's cells so far, and where each cell ends.
    private var cells: [UInt8] = []
    private var ends: [Int] = []
    private var line = 1
    private var rowLine = 1
    private var endedWithReturn = false

    init(separator: UInt8, request: ListRequest, _ output: ListOutput) {
        self.separator = separator
        rows = CSVRows(request: request, output)
    }

    func feed(_ bytes: UnsafeRawBufferPointer) throws {
        var index = 0
        while index < bytes.count {
            if place == .plain || place == .quoted { index = takeRun(bytes, from: index) }
            guard index < bytes.count else { break }
            try take(bytes[index])
            index += 1
        }
        guard cells.count <= Self.longestRow else {
            throw ListMistake(
                line: rowLine, "The row that begins here has more than 1 MiB: a quote is opened and never closed.")
        }
    }

    /// Takes the bytes that only belong to the current cell.
    private func takeRun(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
        var end = start
        if place == .quoted {
            while end < bytes.count, bytes[end] != Self.quote, bytes[end] != 10 { end += 1 }
        } else {
            while end < bytes.count, bytes[end] != separator, bytes[end] != 10, bytes[end] != 13 { end += 1 }
        }
        cells.append(contentsOf: bytes[start..<end])
        return end
    }

    private func take(_ byte: UInt8) throws {
        if byte == 10 { line += 1 }
        switch (place, byte) {
        case (.quoted, Self.quote): place = .afterQuote
        case (.quoted, _): cells.append(byte)
        case (.afterQuote, Self.quote):
            cells.append(byte)
            place = .quoted
        case (.cellStart, Self.quote): place = .quoted
        case (_, separator):
            ends.append(cells.count)
            place = .cellStart
            endedWithReturn = false
        case (_, 10) where endedWithReturn && ends.isEmpty && cells.isEmpty && place == .cellStart:
            endedWithReturn = false
            rowLine = line
        case (_, 10), (_, 13):
            if byte == 13 { endedWithReturn = true }
            try endRow()
            endedWithReturn = byte == 13
        default:
            cells.append(byte)
            place = .plain
            endedWithReturn = false
        }
    }

    private func endRow() throws {
        ends.append(cells.count)
        try cells.withUnsafeBytes { try rows.take(CSVRow(bytes: $0, ends: ends), line: rowLine) }
        cells.removeAll(keepingCapacity: true)
        ends.removeAll(keepingCapacity: true)
        place = .cellStart
        rowLine = line
    }

    func finish() throws {
        guard place != .quoted else {
            throw ListMistake(line: rowLine, "A quote is opened in the row that begins here, and never closed.")
        }
        if !cells.isEmpty || !ends.isEmpty { try endRow() }
        try rows.finish()
    }
}

/// The cells of one row.
struct CSVRow {
    let bytes: UnsafeRawBufferPointer
    let ends: [Int]

    var count: Int { ends.count }
    var isEmpty: Bool { bytes.allSatisfy { $0 == 32 || $0 == 9 } && ends.count == 1 }

    subscript(index: Int) -> String {
        let start = index == 0 ? 0 : ends[index - 1]
        return String(decoding: UnsafeRawBufferPointer(rebasing: bytes[start..<ends[index]]), as: UTF8.self)
    }

    var cells: [String] { (0..<count).map { self[$0].trimmed } }
}

/// Finds the column of the URLs, and makes an entry of each row.
final class CSVRows {
    private struct Columns {
        let names: [String]
        let url: Int
    }

    private let request: ListRequest
    private let output: ListOutput
    private var header: [String]?
    private var columns: Columns?

    init(request: ListRequest, _ output: ListOutput) {
        self.request = request
        self.output = output
    }

    func take(_ row: CSVRow, line: Int) throws {
        if row.isEmpty { return }
        guard let columns else { return try begin(row, line: line) }
        guard row.count == columns.names.count else {
            let wanted = columns.names.count
            return try output.refuse(
                line,
                "The row has \(row.count == 1 ? "1 cell" : "\(row.count) cells") and not \(wanted): a cell with a "
                    + "separator in it needs quotes.")
        }
        let url = row[columns.url].trimmed
        guard !url.isEmpty else {
            return try output.refuse(line, "The column '\(columns.names[columns.url])' is empty.")
        }
        var meta: [ListMember] = []
        for index in 0..<row.count where index != columns.url {
            let text = row[index]
            if text.contains("\u{FFFD}") {
                return try output.refuse(
                    line,
                    "The column '\(columns.names[index])' is not UTF-8. Convert the list: iconv -f WINDOWS-1252 -t UTF-8"
                )
            }
            meta.append(ListMember(name: columns.names[index], text: text))
        }
        try output.put(url, meta: meta, line: line)
    }

    /// The first row is a header, unless it has a URL.
    private func begin(_ row: CSVRow, line: Int) throws {
        let cells = row.cells
        guard let header else {
            if cells.contains(where: Self.isURL) {
                columns = try choose(cells.indices.map { "column_\($0 + 1)" }, first: cells, line)
                return try take(row, line: line)
            }
            self.header = Self.unique(cells)
            return
        }
        columns = try choose(header, first: cells, line)
        try take(row, line: line)
    }

    func finish() throws {
        guard columns == nil else { return }
        if header != nil { throw ListMistake("\(request.name) has a header and no rows, so no URLs.") }
        throw ListMistake("\(request.name) has no URLs.")
    }

    /// A column without a name, or with the name of an earlier column, is named by its number.
    private static func unique(_ names: [String]) -> [String] {
        var (known, taken): (Set<String>, Set<String>) = ([], Set(names))
        return names.enumerated().map { index, name in
            if !name.isEmpty, known.insert(name).inserted { return name }
            // A header may have that name, too.
            var own = "column_\(index + 1)"
            while !taken.insert(own).inserted { own += "_" }
            return own
        }
    }

    private static func isURL(_ cell: String) -> Bool { cell.contains("://") || cell.hasPrefix("data:") }

    // MARK: - The column of the URLs

    private static let usual = [
        "url", "image_url", "image", "image_link", "src", "link", "href", "picture", "photo", "loc",
    ]

    private func choose(_ names: [String], first: [String], _ line: Int) throws -> Columns {
        if let column = request.column { return Columns(names: names, url: try index(of: column, in: names)) }
        let withURL = names.indices.filter { $0 < first.count && Self.isURL(first[$0]) }
        if withURL.count == 1 { return Columns(names: names, url: withURL[0]) }
        let candidates = withURL.isEmpty ? Array(names.indices) : withURL
        for word in Self.usual {
            if let index = candidates.first(where: { names[$0].lowercased() == word }) {
                return Columns(names: names, url: index)
            }
        }
        let list = candidates.map { "'\(URLCheck.shown(names[$0]))'" }.joined(separator: ", ")
        if withURL.isEmpty {
            throw ListMistake(
                line: line,
                "No column of \(request.name) has a URL, which begins with http:// or https://. Its columns are: \(list)."
            )
        }
        throw ListMistake(
            line: line,
            "Several columns have URLs: \(list). Name the one to fetch with --column, such as --column \(names[candidates[0]])"
        )
    }

    private func index(of column: String, in names: [String]) throws -> Int {
        if let index = names.firstIndex(of: column) { return index }
        if let index = names.firstIndex(where: { $0.lowercased() == column.lowercased() }) { return index }
        let list = names.map { "'\(URLCheck.shown($0))'" }.joined(separator: ", ")
        if let number = Int(column) {
            guard number >= 1, number <= names.count else {
                throw ListMistake("\(request.name) has the columns 1 to \(names.count), not \(number).")
            }
            return number - 1
        }
        throw ListMistake(
            "\(request.name) has no column '\(URLCheck.shown(column))'.\(NearestWord.question(column, among: names)) "
                + "Its columns are: \(list).")
    }
}

extension String {
    /// Without blanks at its ends.
    var trimmed: String {
        let isBlank: (UInt8) -> Bool = { $0 == 32 || $0 == 9 || $0 == 10 || $0 == 13 }
        guard let first = utf8.first, let last = utf8.last, isBlank(first) || isBlank(last) else { return self }
        var text = Substring(self)
        while let byte = text.utf8.first, isBlank(byte) { text = text.dropFirst() }
        while let byte = text.utf8.last, isBlank(byte) { text = text.dropLast() }
        return String(text)
    }
}
