/// Recognises the format of a list by its first bytes.
struct ListDetector {
    /// The format that the first bytes suggest.
    struct Finding {
        let format: ListFormat
        /// Of CSV.
        var separator = UInt8(ascii: ",")
        /// A sentence on why the choice may be wrong; nil if it is certain.
        var doubt: String?
    }

    /// The first bytes, unpacked and in UTF-8; all of a short list.
    let sample: UnsafeRawBufferPointer
    let request: ListRequest
    /// Whether the list is longer than the sample.
    let isCut: Bool

    func find() throws -> Finding {
        try refuseOthers()
        if let format = request.format { return Finding(format: format, separator: separator(for: format)) }
        let text = lines(1).first ?? ""
        switch text.utf8.first {
        case UInt8(ascii: "<"): return Finding(format: try markup())
        case UInt8(ascii: "{"): return Finding(format: .jsonl)
        case UInt8(ascii: "["):
            let command =
                "jq -c '.[]'\(request.name == "standard input" ? "" : " \(request.name)") | worker enqueue -f -"
            throw ListMistake("\(request.name) is one JSON array. Write each of its elements on a line: \(command)")
        default: return table()
        }
    }

    // MARK: - Files that are no lists

    private static let signatures: [(bytes: [UInt8], what: String)] = [
        (
            Array("SQLite format 3\0".utf8),
            "a SQLite database. Name the URLs by a query: --query 'SELECT url FROM …' --from"
        ),
        ([0x89, 0x50, 0x4E, 0x47], "a PNG"), ([0xFF, 0xD8, 0xFF], "a JPEG"), (Array("GIF8".utf8), "a GIF"),
        (Array("RIFF".utf8), "a WebP"), (Array("PK\u{3}\u{4}".utf8), "a ZIP archive, or a spreadsheet. Save it as CSV"),
        (Array("%PDF".utf8), "a PDF"), (Array("BZh".utf8), "bzip2 data. Unpack them: bzcat"),
        ([0xFD, 0x37, 0x7A, 0x58, 0x5A], "xz data. Unpack them: xzcat"),
        (Array("PAR1".utf8), "a Parquet file. Export it as CSV"),
        ([0xD0, 0xCF, 0x11, 0xE0], "a spreadsheet of an old kind. Save it as CSV"),
        ([0x7F, 0x45, 0x4C, 0x46], "a program"),
    ]

    private static let pictures = ["a PNG", "a JPEG", "a GIF", "a WebP"]

    private func refuseOthers() throws {
        for (bytes, what) in Self.signatures where sample.starts(with: bytes) {
            if Self.pictures.contains(what) {
                throw ListMistake(
                    "\(request.name) is \(what), not a list of URLs. To store a picture that you have: worker cache put URL "
                        + request.name)
            }
            let command = what.hasSuffix("from") || what.hasSuffix("cat") ? " \(request.name)" : "."
            throw ListMistake("\(request.name) is \(what)\(command)")
        }
        if sample.contains(0) {
            throw ListMistake(
                "\(request.name) is not text, and no list of URLs. The kinds of lists are: \(Self.kinds).")
        }
        if sample.allSatisfy({ $0 <= 32 }), !isCut { throw ListMistake("\(request.name) has no URLs.") }
    }

    static let kinds = ListFormat.allCases.map(\.rawValue).joined(separator: ", ")

    // MARK: - XML and HTML

    private func markup() throws -> ListFormat {
        let text = String(decoding: UnsafeRawBufferPointer(rebasing: sample.prefix(8_192)), as: UTF8.self)
        if text.lowercased().contains("<!doctype html") { return .html }
        // The first element: neither a declaration, nor a comment, nor <!DOCTYPE.
        var rest = text[...]
        while let open = rest.firstIndex(of: "<") {
            rest = rest[open...].dropFirst()
            if rest.hasPrefix("!--") {
                rest = rest.firstRange(of: "-->").map { rest[$0.upperBound...] } ?? ""
            } else if let first = rest.first, first.isLetter {
                break
            }
        }
        let element = rest.prefix { $0.isLetter || $0.isNumber || $0 == ":" || $0 == "-" || $0 == "_" }
        let name = element.split(separator: ":").last.map(String.init) ?? ""
        switch name.lowercased() {
        case "urlset", "sitemapindex": return .sitemap
        case "rss", "feed", "rdf": return .feed
        case "html", "head", "body", "meta", "title", "div", "img", "p", "a", "link", "script", "picture": return .html
        case "": throw ListMistake("\(request.name) begins like XML, and has no element in its first 8 KiB.")
        default:
            throw ListMistake(
                line: 1,
                "\(request.name) begins with <\(URLCheck.shown(name))>, which is neither a sitemap (<urlset>, <sitemapindex>), nor "
                    + "a feed (<rss>, <feed>), nor an HTML page. Name the kind with --format, if it is one.")
        }
    }

    // MARK: - Text and tables

    /// The first lines of content, without comments.
    private func lines(_ count: Int) -> [String] {
        var lines: [String] = []
        var rest = sample[...]
        while lines.count < count, !rest.isEmpty {
            let line = rest.prefix { $0 != 10 && $0 != 13 }
            let end = rest.dropFirst(line.count)
            // The last line of a part may not be whole.
            if end.isEmpty, isCut, !lines.isEmpty { break }
            rest = end.dropFirst()
            let trimmed = line.drop { $0 == 32 || $0 == 9 }
            guard let first = trimmed.first, first != UInt8(ascii: "#") else { continue }
            lines.append(String(decoding: UnsafeRawBufferPointer(rebasing: trimmed.prefix(65_536)), as: UTF8.self))
        }
        return lines
    }

    private func table() -> Finding {
        let lines = lines(20)
        guard let first = lines.first else { return Finding(format: .text) }
        let name = request.name.lowercased()
        let isNamed: (String) -> Bool = { end in [end, end + ".gz", end + ".zst"].contains { name.hasSuffix($0) } }
        if isNamed(".csv") || request.column != nil {
            let separator = separator(for: .csv)
            return separator == 9 ? Finding(format: .tsv, separator: 9) : Finding(format: .csv, separator: separator)
        }
        if isNamed(".tsv") || isNamed(".tab") || first.contains("\t") { return Finding(format: .tsv, separator: 9) }
        let separator = separator(for: .csv)
        let counts = Set(lines.map { cells(in: $0, separator) })
        guard counts.count == 1, let count = counts.first, count > 1 else {
            // A header and a column of URLs.
            let isColumn =
                !first.contains("://") && !first.contains(where: { ".:/ ".contains($0) })
                && lines.dropFirst().first?.contains("://") == true
            return Finding(format: isColumn || first.hasPrefix("\"") ? .csv : .text, separator: separator)
        }
        // Commas are parts of some URLs, such as those of image services: https://cdn.example.com/w_100,h_80/a.jpg
        let isOneURL = lines.allSatisfy { line in
            line.contains("://") && !line.contains(where: { $0 == "\"" || $0.isWhitespace })
                && line.prefix { $0 != ":" }.allSatisfy { $0.isLetter }
        }
        guard isOneURL else { return Finding(format: .csv, separator: separator) }
        return Finding(
            format: .text,
            doubt: "each line has a '\(Character(UnicodeScalar(separator)))', as CSV has: add --format csv if it is")
    }

    /// The separator that the first line has most of.
    private func separator(for format: ListFormat) -> UInt8 {
        if format == .tsv { return 9 }
        let first = lines(1).first ?? ""
        let counts = [",", ";", "\t", "|"].map { sign in (sign, cells(in: first, sign.utf8.first ?? 44)) }
        let most = counts.max { $0.1 < $1.1 || $0.1 == $1.1 && $0.0 != "," }
        return most.flatMap { $0.1 > 1 ? $0.0.utf8.first : nil } ?? UInt8(ascii: ",")
    }

    private func cells(in line: String, _ separator: UInt8) -> Int {
        var isQuoted = false
        return line.utf8.reduce(1) { count, byte in
            if byte == UInt8(ascii: "\"") { isQuoted.toggle() }
            return byte == separator && !isQuoted ? count + 1 : count
        }
    }
}
