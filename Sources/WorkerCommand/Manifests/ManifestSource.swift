import Lists
import Yams

/// A list of URLs that a manifest names, and how it is read.
struct ManifestSource {
    enum Key: String, CaseIterable {
        case file, url, query, from, format, column, path, base, limit, sample, match, host
    }

    /// Where the URLs come from.
    enum Place {
        /// A file, or an address.
        case list(String)
        case query(String, from: String)
    }

    let place: Place
    /// The manifest and the line that name it.
    let origin: String
    private(set) var format: ListFormat?
    private(set) var column: String?
    private(set) var path: String?
    private(set) var base: String?
    private(set) var limit: Int?
    /// Percent.
    private(set) var sample: Double?
    private(set) var match: [String] = []
    private(set) var host: [String] = []

    init(file: String, beside path: String) {
        place = .list(Self.beside(path, file))
        origin = path
    }

    private init(_ node: Node, _ field: ManifestField) throws(SettingsError) {
        let place = node.mark.map { "\(field.path), line \($0.line)" } ?? field.place
        origin = place
        if let text = node.scalar?.string {
            self.place = .list(Self.beside(field.path, text))
            return
        }
        var file: String?
        var query: String?
        var from: String?
        for (key, field) in try ManifestFields<Key>(node, field.path, at: place).all {
            switch key {
            case .file, .url:
                guard file == nil else { throw SettingsError("\(place): name a file or a url, not both.") }
                file = Self.beside(field.path, try field.text())
            case .query: query = try field.text()
            case .from: from = Self.beside(field.path, try field.text())
            case .format: format = try field.parsed(ListFormat.init(named:))
            case .column: column = try field.text()
            case .path: self.path = try field.text()
            case .base: base = try field.text()
            case .limit: limit = try field.whole(in: 1...1_000_000_000)
            case .sample: sample = try field.parsed(Self.percentage)
            case .match: match = try field.texts()
            case .host: host = try field.texts()
            }
        }
        switch (file, query, from) {
        case (let file?, nil, nil): self.place = .list(file)
        case (nil, let query?, let from?): self.place = .query(query, from: from)
        default:
            throw SettingsError(
                "\(place): a source is a file, a url, or a query with the database that it is from, such as "
                    + "'file: products.csv' or 'query: SELECT url FROM pictures' with 'from: shop.db'.")
        }
    }

    static func all(_ field: ManifestField) throws(SettingsError) -> [ManifestSource] {
        var sources: [ManifestSource] = []
        for node in try field.nodes("must be a list of files and addresses, each behind a dash") {
            sources.append(try ManifestSource(node, field))
        }
        return sources
    }

    static func percentage(_ text: String) throws(SettingsError) -> Double {
        guard let value = Double(text), value > 0, value <= 100 else {
            throw SettingsError("sample must be a number above 0 and up to 100, not '\(text.prefix(40))'.")
        }
        return value
    }

    /// The path of the file that is read, if it is one.
    var file: String? {
        switch place {
        case .list(let path): path.contains("://") ? nil : path
        case .query(_, let path): path
        }
    }

    private static func beside(_ path: String, _ file: String) -> String {
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
        return file.hasPrefix("/") || file.contains("://") ? file : folder + file
    }
}
