internal import Core

/// The kinds of lists that hold URLs.
public enum ListFormat: String, CaseIterable, Sendable {
    /// A URL on each line; lines that begin with `#` are left out.
    case text
    case csv, tsv
    /// A JSON object or string on each line.
    case jsonl
    /// A sitemap, or an index of sitemaps (https://www.sitemaps.org/protocol.html).
    case sitemap
    /// RSS 2.0, RSS 1.0 or Atom.
    case feed
    case html

    /// The names of all formats, for help and messages.
    public static let names = allCases.map(\.rawValue).joined(separator: ", ")

    /// - Throws: the sentence that names the nearest format.
    public init(named text: String) throws(ListMistake) {
        guard let format = ListFormat(rawValue: text.lowercased()) else {
            let words = ListFormat.allCases.map(\.rawValue) + ["json", "rss", "atom", "xml", "txt"]
            let meant = ["json": "jsonl", "rss": "feed", "atom": "feed", "xml": "sitemap' or 'feed", "txt": "text"]
            let near = NearestWord.find(text, among: words).map { " Did you mean '\(meant[$0] ?? $0)'?" } ?? ""
            throw ListMistake("There is no format '\(text.prefix(40))'.\(near) The formats are: \(Self.names).")
        }
        self = format
    }

    /// How messages name the format.
    public var description: String {
        switch self {
        case .text: "a list of URLs, one on a line"
        case .csv: "CSV"
        case .tsv: "tab-separated values"
        case .jsonl: "JSON Lines"
        case .sitemap: "an XML sitemap"
        case .feed: "an RSS or Atom feed"
        case .html: "an HTML page"
        }
    }
}

/// How to read a list: its format, and where its URLs are.
public struct ListRequest: Sendable {
    /// Nil to recognise it.
    public var format: ListFormat?
    /// The column of CSV and TSV that has the URLs: its name, or its number from 1. Nil to find it.
    public var column: String?
    /// The way to the URL in an object of JSON Lines: `image.url`, `images[0].src`, `images[].src`. Nil to find it.
    public var path: String?
    /// The address that relative URLs of a page refer to.
    public var base: String?
    /// The list's name in messages: `urls.txt`, `standard input`.
    public var name: String

    public init(name: String) { self.name = name }
}

/// A URL of a list, with the rest of its row.
public struct ListEntry: Sendable, Hashable {
    public var url: String
    public var meta: [ListMember]
    /// Counted from 1; 0 if the list has no lines.
    public let line: Int

    public init(url: String, meta: [ListMember] = [], line: Int = 0) {
        self.url = url
        self.meta = meta
        self.line = line
    }
}

/// A member of a JSON object: the name of a column and its value.
public struct ListMember: Sendable, Hashable {
    public let name: String
    /// The value as JSON in one line.
    public let json: String

    public init(name: String, json: String) {
        self.name = name
        self.json = json
    }

    public init(name: String, text: String) { self.init(name: name, json: JSONWriter.quoted(text)) }

    /// The members as one object; nil if there are none.
    public static func object(_ members: [ListMember]) -> String? {
        guard !members.isEmpty else { return nil }
        return "{" + members.map { JSONWriter.quoted($0.name) + ":" + $0.json }.joined(separator: ",") + "}"
    }

    /// The members of an object in JSON text; nil if the text is no JSON object.
    public static func members(of json: String) -> [ListMember]? {
        var json = json
        return json.withUTF8 { bytes in
            // Best effort: the caller reports the mistake in any other text.
            try? JSONScanner.whole(UnsafeRawBufferPointer(bytes)) { scanner in
                var members: [ListMember] = []
                try scanner.object { name, scanner in
                    members.append(ListMember(name: name, json: scanner.text(of: try scanner.value())))
                }
                return members
            }
        }
    }
}

/// A mistake in a list or one of its lines, with its correction.
public struct ListMistake: Error, Sendable, Hashable, CustomStringConvertible {
    /// Nil if it is about the list as a whole.
    public let line: Int?
    public let message: String

    public init(line: Int? = nil, _ message: String) {
        self.line = line
        self.message = message
    }

    public var description: String { line.map { "line \($0): \(message)" } ?? message }
}

/// The events of reading a list, in its order.
public enum ListEvent: Sendable {
    case entry(ListEntry)
    /// Another list, which an index of sitemaps names.
    case nested(String, line: Int)
    /// A line without a usable URL.
    case mistake(ListMistake)
    /// A URL that is used although it may be wrong.
    case warning(ListMistake)
}
