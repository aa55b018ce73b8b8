internal import Core
internal import FoundationEssentials
internal import Jobs
internal import SystemPackage

/// A text file of an export, written line by line.
final class ExportText {
    private let file: FileDescriptor
    private let path: String
    private var buffer: [UInt8] = []
    private var isOpen = true

    init(_ path: String) throws(Failure) {
        self.path = path
        do {
            file = try FileDescriptor.open(
                FilePath(path), .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec],
                permissions: [.ownerReadWrite, .groupRead, .otherRead])
        } catch {
            throw Failure(.diskError, "\(path) can't be made: \(error).")
        }
    }

    func line(_ text: String) throws(Failure) {
        buffer += text.utf8
        buffer.append(10)
        if buffer.count > 1 << 16 { try flush() }
    }

    deinit {
        // An export that was stopped, whose files are removed.
        if isOpen { try? file.close() }
    }

    func close() throws(Failure) {
        try flush()
        isOpen = false
        do { try file.close() } catch { throw Failure(.diskError, "\(path) can't be written: \(error).") }
    }

    private func flush() throws(Failure) {
        do {
            try file.writeAll(buffer)
        } catch {
            throw Failure(
                (error as? Errno)?.isFullDisk == true ? .diskFull : .diskError, "\(path) can't be written: \(error).")
        }
        buffer.removeAll(keepingCapacity: true)
    }
}

/// `index.jsonl` and `index.csv`: for each exported file its name and its row of `worker results`.
final class ExportIndex {
    private let lines: ExportText
    private let table: ExportText

    init(folder: String) throws(Failure) {
        lines = try ExportText("\(folder)/index.jsonl")
        table = try ExportText("\(folder)/index.csv")
        try table.line(Self.csv(["file"] + ResultRow.columns.map(\.name)))
    }

    func add(_ row: ResultRow, file: String) throws(Failure) {
        let json = try Self.json(row)
        try lines.line(JSONText.adding("meta", row.meta, to: "{\"file\":\(try Self.quoted(file)),\(json.dropFirst())"))
        try table.line(Self.csv([file] + ResultRow.columns.map { $0.text(row) }))
    }

    func close() throws(Failure) {
        try lines.close()
        try table.close()
    }

    static func json(_ value: some Encodable) throws(Failure) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do {
            return String(decoding: try encoder.encode(value), as: UTF8.self)
        } catch {
            throw Failure(.diskError, "A result can't be written as JSON: \(error).")
        }
    }

    static func quoted(_ text: String) throws(Failure) -> String { String(try json([text]).dropFirst().dropLast()) }

    /// Cells of RFC 4180.
    private static func csv(_ cells: [String?]) -> String {
        cells.map { cell in
            let text = cell ?? ""
            guard text.contains(where: { ",\"\n\r".contains($0) }) else { return text }
            return "\"" + text.replacing("\"", with: "\"\"") + "\""
        }.joined(separator: ",")
    }
}

/// `index.html`: thumbnails with links, a thousand on a page. All values are text, and the page runs no script.
final class ExportPages {
    private static let onPage = 1_000
    private let folder: String
    private let title: String
    private var page: ExportText?
    private var count = 0

    init(folder: String, title: String) {
        self.folder = folder
        self.title = title
    }

    /// - Parameters:
    ///   - thumbnail: the smallest file of the picture.
    ///   - files: all of its files.
    func add(_ row: ResultRow, thumbnail: String, files: [String]) throws(Failure) {
        if count % Self.onPage == 0 { try begin(count / Self.onPage + 1) }
        count += 1
        let links = files.map { "<a href=\"\(Self.address($0))\">\(Self.escaped($0))</a>" }.joined(separator: "<br>")
        try page?.line(
            """
            <figure><a href="\(Self.address(files.last ?? thumbnail))"><img loading="lazy" src="\(Self.address(thumbnail))" \
            alt=""></a><figcaption>\(links)<br><small>\(Self.escaped(row.url))</small></figcaption></figure>
            """)
    }

    func close() throws(Failure) {
        if count == 0 { try begin(1) }
        try end(next: nil)
    }

    private func begin(_ number: Int) throws(Failure) {
        if page != nil { try end(next: Self.name(number)) }
        let page = try ExportText("\(folder)/\(Self.name(number))")
        self.page = page
        try page.line(
            """
            <!doctype html>
            <html lang="en">
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width">
            <meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src 'self' file:; style-src 'unsafe-inline'">
            <title>\(Self.escaped(title))</title>
            <style>
            :root { color-scheme: light dark; font: 14px system-ui, sans-serif }
            main { display: grid; grid-template-columns: repeat(auto-fill, minmax(200px, 1fr)); gap: 16px }
            figure { margin: 0; overflow-wrap: anywhere } img { width: 100%; height: 160px; object-fit: contain }
            </style>
            <h1>\(Self.escaped(title))</h1>
            <main>
            """)
    }

    private func end(next: String?) throws(Failure) {
        try page?.line("</main>" + (next.map { "<p><a href=\"\($0)\">Next page</a></p>" } ?? ""))
        try page?.close()
        page = nil
    }

    private static func name(_ number: Int) -> String { number == 1 ? "index.html" : "index-\(number).html" }

    private static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
            .replacing("\"", with: "&quot;")
    }

    /// A relative address. Every byte but letters, digits and `-._~/` is encoded; a colon would begin a scheme.
    private static func address(_ path: String) -> String {
        path.utf8.map { byte in
            let isPlain = (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
            if isPlain || "-._~/".utf8.contains(byte) { return String(UnicodeScalar(byte)) }
            return "%" + String(byte >> 4, radix: 16, uppercase: true) + String(byte & 15, radix: 16, uppercase: true)
        }.joined()
    }
}
