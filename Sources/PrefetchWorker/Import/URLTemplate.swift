internal import Core

/// Makes a file's URL from its path in a folder, as in `https://shop.example/img/{path}`.
///
/// `{path}` is the path in the folder, `{folder}` the path without the name, `{name}` the name, `{stem}` the name
/// without its extension, and `{extension}` the extension without its dot. Bytes that may not stand in a URL are
/// percent-encoded: in the path of the URL all but letters, digits and `-._~!$&'()*+,;=:@/`; in the query all but
/// letters, digits and `-._~/`.
public struct URLTemplate: Sendable, Hashable {
    private enum Part: Hashable {
        case text(String)
        case value(Placeholder, isQuery: Bool)
    }

    /// The words between braces.
    public enum Placeholder: String, CaseIterable, Sendable {
        case path, folder, name, stem
        case fileExtension = "extension"
    }

    private let parts: [Part]

    /// - Throws: `usage` for an unknown placeholder, and for a template that makes one URL of all files.
    public init(_ text: String) throws(WorkerError) {
        let names = Placeholder.allCases.map { "{\($0.rawValue)}" }.joined(separator: ", ")
        var parts: [Part] = []
        var isQuery = false
        var rest = text[...]
        while let open = rest.firstIndex(of: "{") {
            let before = rest[..<open]
            isQuery = isQuery || before.contains("?")
            parts.append(.text(String(before)))
            guard let close = rest[open...].firstIndex(of: "}"),
                let placeholder = Placeholder(rawValue: String(rest[rest.index(after: open)..<close]))
            else {
                let word = rest[open...].prefix { $0 != "}" } + "}"
                let known = Placeholder.allCases.map { "{\($0.rawValue)}" }
                let question = NearestWord.question(String(word), among: known)
                throw WorkerError(.usage, "'\(word.prefix(40))' is no placeholder.\(question) They are \(names).")
            }
            parts.append(.value(placeholder, isQuery: isQuery))
            rest = rest[rest.index(after: close)...]
        }
        parts.append(.text(String(rest)))
        let differs = parts.contains { part in
            if case .value(let value, _) = part { return [.path, .name, .stem].contains(value) }
            return false
        }
        guard differs else {
            throw WorkerError(.usage, "A template needs {path}, {name} or {stem}: otherwise all files have one URL.")
        }
        self.parts = parts
    }

    /// - Parameter path: the bytes of a path in the folder, which need not be UTF-8.
    public func url(path: [UInt8]) -> String {
        let slash = path.lastIndex(of: UInt8(ascii: "/"))
        let name = slash.map { path[($0 + 1)...] } ?? path[...]
        // A dot at the beginning hides a file, and begins no extension.
        let dot = name.dropFirst().lastIndex(of: UInt8(ascii: "."))
        return parts.map { part in
            switch part {
            case .text(let text): return text
            case .value(let placeholder, let isQuery):
                let bytes: ArraySlice<UInt8> =
                    switch placeholder {
                    case .path: path[...]
                    case .folder: slash.map { path[..<$0] } ?? []
                    case .name: name
                    case .stem: dot.map { name[..<$0] } ?? name
                    case .fileExtension: dot.map { name[($0 + 1)...] } ?? []
                    }
                return Self.encoded(bytes, isQuery: isQuery)
            }
        }.joined()
    }

    /// RFC 3986: keeps unreserved characters, and the others that a path or a query may contain.
    private static func encoded(_ bytes: ArraySlice<UInt8>, isQuery: Bool) -> String {
        let plain = isQuery ? plainInQuery : plainInPath
        var text: [UInt8] = []
        for byte in bytes {
            if plain.contains(byte) {
                text.append(byte)
            } else {
                text += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    private static let digits = Array("0123456789ABCDEF".utf8)
    private static let plainInQuery = Set(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/".utf8)
    private static let plainInPath = plainInQuery.union("!$&'()*+,;=:@".utf8)
}
