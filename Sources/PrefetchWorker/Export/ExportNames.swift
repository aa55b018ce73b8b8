internal import Core
internal import Foundation
internal import Jobs

/// The names of exported files, from a template such as `{host}/{folder}/{stem}.{variant}.{extension}`.
///
/// Values come from URLs and from users' columns, so each is made safe: no value leads out of the folder, hides a
/// file, or has characters that other systems refuse. A slash in `{path}`, `{folder}` and the template makes a folder.
public struct ExportNames: Sendable, Hashable {
    private enum Part: Hashable {
        case text(String)
        case value(Placeholder)
        case meta(String)
    }

    /// The words between braces. Beside them `{meta.NAME}` is a member of the item's JSON object.
    public enum Placeholder: String, CaseIterable, Sendable {
        /// The picture's place in the export, from 1, with nine digits.
        case number
        case item, host, path, folder, name, stem, variant, hash
        case fileExtension = "extension"
    }

    /// Unique by its number, and readable.
    public static let usual = "{number}-{stem}.{variant}.{extension}"

    private let parts: [Part]
    /// Bytes of one value and of one name, so that a name fits into the 255 bytes of Linux' file systems.
    private static let maxValue = 100
    private static let maxName = 240

    /// - Throws: `usage` for an unknown placeholder.
    public init(_ template: String) throws(WorkerError) {
        var parts: [Part] = []
        var rest = template[...]
        while let open = rest.firstIndex(of: "{") {
            parts.append(.text(String(rest[..<open])))
            guard let close = rest[open...].firstIndex(of: "}") else {
                throw WorkerError(.usage, "The template has a '{' without a '}': '\(rest[open...].prefix(40))'.")
            }
            let word = String(rest[rest.index(after: open)..<close])
            if let placeholder = Placeholder(rawValue: word) {
                parts.append(.value(placeholder))
            } else if word.hasPrefix("meta."), word.utf8.count > 5 {
                parts.append(.meta(String(word.dropFirst(5))))
            } else {
                let names = Placeholder.allCases.map { "{\($0.rawValue)}" } + ["{meta.NAME}"]
                let question = NearestWord.question("{\(word)}", among: names)
                throw WorkerError(
                    .usage, "'{\(word)}' is no placeholder.\(question) They are \(names.joined(separator: ", ")).")
            }
            rest = rest[rest.index(after: close)...]
        }
        parts.append(.text(String(rest)))
        guard parts.contains(where: { if case .text = $0 { false } else { true } }) else {
            throw WorkerError(.usage, "The template '\(template)' needs a placeholder such as {number}.")
        }
        self.parts = parts
    }

    /// A path below the export's folder, without `.` and `..` and with no name that begins with a dot.
    func path(of row: ResultRow, number: Int, meta: [String: String]) -> String {
        let url = URLPieces(row.url)
        let text = parts.map { part in
            switch part {
            case .text(let text): text
            case .meta(let name): Self.value(meta[name] ?? "none")
            case .value(let placeholder): Self.text(placeholder, row, url, number)
            }
        }.joined()
        let names = text.split(separator: "/").map { Self.name(String($0)) }
        return names.isEmpty ? "unnamed" : names.joined(separator: "/")
    }

    private static func text(_ placeholder: Placeholder, _ row: ResultRow, _ url: URLPieces, _ number: Int) -> String {
        switch placeholder {
        case .number: padded(number)
        case .item: "\(row.item)"
        case .host: value(url.host)
        case .path: (url.folders + [url.name]).map(value).joined(separator: "/")
        case .folder: url.folders.map(value).joined(separator: "/")
        case .name: value(url.name)
        case .stem: value(url.stem)
        case .variant: value(row.variant ?? "original")
        case .hash: value(row.blob ?? "")
        case .fileExtension: Self.fileExtension(row.format)
        }
    }

    static func padded(_ number: Int, digits: Int = 9) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
    }

    static func fileExtension(_ format: String?) -> String {
        switch format {
        case "jpeg": "jpg"
        case let format?: value(format)
        case nil: "bin"
        }
    }

    /// A value without slashes and without the characters that Windows refuses.
    static func value(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            let isSafe =
                scalar.value >= 32 && !(127...159).contains(scalar.value)
                && !"/\\:*?\"<>|".unicodeScalars.contains(scalar)
            let added = isSafe ? String(scalar) : "_"
            guard result.utf8.count + added.utf8.count <= maxValue else { break }
            result += added
        }
        return result.isEmpty ? "none" : result
    }

    /// A name that neither leads out of its folder nor is hidden, and fits.
    private static func name(_ text: String) -> String {
        var name = text
        while name.utf8.count > maxName { name.removeFirst() }
        if name.utf8.first == UInt8(ascii: ".") { name = "_" + String(name.unicodeScalars.dropFirst()) }
        while let last = name.last, last == "." || last == " " { name.removeLast() }
        return name.isEmpty ? "_" : name
    }
}

/// The parts of a URL that names are made of, decoded. Not for requests, since it accepts any text as a URL.
private struct URLPieces {
    let host: String
    let folders: [String]
    let name: String

    init(_ url: String) {
        host = HostNames.name(ofURL: url)
        let rest = url.range(of: "://").map { url[$0.upperBound...] } ?? url[...]
        let end = rest.firstIndex { "?#".contains($0) } ?? rest.endIndex
        let parts = rest[..<end].split(separator: "/", omittingEmptySubsequences: false).dropFirst()
            .map { $0.removingPercentEncoding ?? String($0) }
        folders = parts.dropLast().filter { !$0.isEmpty }
        name = parts.last.flatMap { $0.isEmpty ? nil : $0 } ?? "index"
    }

    var stem: String {
        guard let dot = name.dropFirst().lastIndex(of: ".") else { return name }
        return String(name[..<dot])
    }
}
