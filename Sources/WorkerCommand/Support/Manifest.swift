import Jobs
import Yams

/// A job in a file: YAML, or JSON, which is YAML too.
struct Manifest: Decodable {
    /// One text or a list of texts.
    struct Texts: Decodable {
        let values: [String]

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let one = try? container.decode(String.self) {  // Best effort: a list is read below.
                values = [one]
            } else {
                values = try container.decode([String].self)
            }
        }
    }

    var name: String?
    var urls: [String]?
    var file: String?
    var variants: Texts?
    var options: Texts?
    var headers: [String: String]?
    var priority: Int?
    var order: String?
    var dedupeKey: String?

    enum CodingKeys: String, CodingKey, CaseIterable {
        case name, urls, file, variants, options, headers, priority, order
        case dedupeKey = "dedupe-key"
    }

    static func read(_ path: String) throws -> NewJob {
        try Manifest(parsing: InputFile.text(path, as: "manifest"), path).job(relativeTo: path)
    }

    /// - Parameter path: the file's name, for error messages.
    init(parsing text: String, _ path: String) throws(SettingsError) {
        do {
            try Self.checkKeys(text, path)
            self = try YAMLDecoder().decode(Manifest.self, from: text)
        } catch let error as SettingsError {
            throw error
        } catch {
            throw SettingsError("The manifest \(path) can't be used: \(error).")
        }
    }

    static func order(_ text: String) throws -> ExecutionOrder {
        guard let order = ExecutionOrder(rawValue: text) else {
            throw SettingsError("order must be fifo or lifo, not '\(text)'.")
        }
        return order
    }

    /// Refuses misspelt keys; otherwise they would have no effect, without a message.
    private static func checkKeys(_ text: String, _ path: String) throws {
        let known = CodingKeys.allCases.map(\.rawValue)
        for (key, _) in try Yams.compose(yaml: text)?.mapping ?? [:] where !known.contains(key.string ?? "") {
            throw SettingsError(
                "\(path): unknown key '\(key.string ?? "?")'. The keys are: \(known.joined(separator: ", ")).")
        }
    }

    private func job(relativeTo path: String) throws -> NewJob {
        var urls = urls ?? []
        if let file {
            let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
            urls += try URLList.read(file.hasPrefix("/") ? file : folder + file)
        }
        return NewJob(
            name: name, urls: urls, variants: variants?.values.joined(separator: "\n"),
            options: options?.values.joined(separator: " "), headers: headers ?? [:], priority: priority ?? 0,
            order: try order.map(Self.order), dedupeKey: dedupeKey,
        )
    }
}

/// A file with a URL on each line.
enum URLList {
    static func read(_ path: String) throws -> [String] {
        parse(try InputFile.read(path, as: "list of URLs"))
    }

    /// Splits bytes and not characters: a million lines take a moment instead of seconds.
    static func parse(_ bytes: [UInt8]) -> [String] {
        bytes.split(whereSeparator: { $0 == 10 || $0 == 13 }).compactMap { line in
            let space: (UInt8) -> Bool = { $0 == 32 || $0 == 9 }
            let text = line.drop(while: space)
            guard let first = text.first, first != UInt8(ascii: "#") else { return nil }
            var end = text.endIndex
            while end > text.startIndex, space(text[end - 1]) { end -= 1 }
            return String(decoding: text[..<end], as: UTF8.self)
        }
    }
}
