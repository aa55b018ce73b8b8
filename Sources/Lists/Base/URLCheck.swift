internal import Core

/// Judges whether a text can be the URL of a picture, before it becomes an item.
public enum URLCheck {
    public enum Verdict: Hashable, Sendable {
        case good
        /// It is used, and the sentence says what may be wrong with it.
        case doubtful(String)
        /// The sentence says what is wrong, and what would be right.
        case bad(String)
    }

    private static let schemes = ["http", "https", "file", "data"]
    /// Known schemes that are not fetched: they are not taken for misspelt ones.
    private static let foreign: Set = [
        "ftp", "ftps", "sftp", "s3", "gs", "ssh", "ws", "wss", "blob", "about", "chrome",
    ]

    /// Maximum bytes of a URL, the same as the worker's own limit: web servers refuse longer ones.
    private static let maxBytes = 8_192

    public static func verdict(_ text: String) -> Verdict {
        var text = text
        if text.utf8.count > maxBytes, !text.hasPrefix("data:") {
            return .bad("'\(shown(text))' has \(text.utf8.count) bytes; a URL has at most \(maxBytes).")
        }
        if text.withUTF8({ isPlain($0) }) { return .good }
        let shown = shown(text)
        if text.unicodeScalars.allSatisfy(\.properties.isWhitespace) { return .bad("The URL is empty.") }
        if text.contains("\u{FFFD}") {
            return .bad("'\(shown)' is not UTF-8. Convert the list: iconv -f WINDOWS-1252 -t UTF-8")
        }
        if text.utf8.contains(where: { $0 < 32 && $0 != 9 || $0 == 127 }) {
            return .bad("'\(shown)' has a control character.")
        }
        let words = text.split(whereSeparator: \.isWhitespace)
        if words.dropFirst().contains(where: { $0.contains("://") }) {
            return .bad("There are two URLs: write each on a line of its own.")
        }
        if let wrong = schemeMistake(text, shown) ?? hostMistake(text, shown) { return .bad(wrong) }
        return words.count > 1 ? .doubtful("'\(shown)' has a space, which is sent as %20.") : .good
    }

    /// Whether it is an http or https URL of the usual bytes, as nearly all are.
    private static func isPlain(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        var rest = bytes[...]
        if rest.starts(with: "https://".utf8) {
            rest = rest.dropFirst(8)
        } else if rest.starts(with: "http://".utf8) {
            rest = rest.dropFirst(7)
        } else {
            return false
        }
        let host = rest.prefix { isHostByte($0) }
        guard !host.isEmpty else { return false }
        rest = rest.dropFirst(host.count)
        if rest.first == 58 {
            let digits = rest.dropFirst().prefix { $0 >= 48 && $0 <= 57 }
            // Five digits can't overflow; a longer number is refused.
            guard digits.count <= 5, (1...65_535).contains(digits.reduce(0) { $0 * 10 + Int($1 - 48) }) else {
                return false
            }
            rest = rest.dropFirst(1 + digits.count)
        }
        guard let next = rest.first else { return true }
        guard next == 47 || next == 63 || next == 35 else { return false }
        return rest.allSatisfy { $0 > 32 && $0 < 127 }
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        byte >= 97 && byte <= 122 || byte >= 48 && byte <= 57 || byte == 46 || byte == 45 || byte >= 65 && byte <= 90
            || byte == 95
    }

    private static func schemeMistake(_ text: String, _ shown: String) -> String? {
        if text.hasPrefix("//") { return "'\(shown)' has no scheme. Did you mean https:\(shown)?" }
        guard let colon = text.firstIndex(of: ":"), isScheme(text[..<colon]) else { return withoutScheme(text, shown) }
        let scheme = text[..<colon].lowercased()
        let rest = text[text.index(after: colon)...]
        if schemes.contains(scheme) {
            guard scheme != "data", !rest.hasPrefix("//") else { return nil }
            return "'\(shown)' lacks a slash. Did you mean \(scheme)://\(self.shown(String(rest.drop { $0 == "/" })))?"
        }
        // A host with a port.
        if !rest.hasPrefix("//") { return withoutScheme(text, shown) }
        if !foreign.contains(scheme), let near = NearestWord.find(scheme, among: schemes) {
            return "'\(shown)' has the unknown scheme '\(scheme)'. Did you mean \(near)?"
        }
        return "'\(shown)' has the scheme '\(scheme)', which is not fetched. A URL begins with http:// or https://."
    }

    private static func isScheme(_ text: Substring) -> Bool {
        guard let first = text.utf8.first, (97...122).contains(first | 32) else { return false }
        return text.utf8.allSatisfy {
            (97...122).contains($0 | 32) || (48...57).contains($0) || "+-.".utf8.contains($0)
        }
    }

    private static func withoutScheme(_ text: String, _ shown: String) -> String {
        let host = text.prefix { !"/?#:".contains($0) }
        let labels = host.split(separator: ".", omittingEmptySubsequences: false)
        let isHost =
            host == "localhost"
            || labels.count > 1 && labels.allSatisfy { !$0.isEmpty && !$0.contains(where: \.isWhitespace) }
                && host.count < text.count
        if isHost { return "'\(shown)' has no scheme. Did you mean https://\(shown)?" }
        return "'\(shown)' is no URL. A URL begins with http:// or https://."
    }

    private static func hostMistake(_ text: String, _ shown: String) -> String? {
        guard let start = text.firstRange(of: "://")?.upperBound, text.lowercased().hasPrefix("http") else {
            return nil
        }
        var authority = text[start...].prefix { !"/?#\\".contains($0) }
        if let at = authority.lastIndex(of: "@") { authority = authority[authority.index(after: at)...] }
        if authority.hasPrefix("[") {
            guard let close = authority.firstIndex(of: "]") else {
                return "'\(shown)' has a bracket that is not closed: an address of IPv6 is written [::1]."
            }
            let port = authority[authority.index(after: close)...]
            return port.isEmpty || isPort(port.dropFirst()) && port.hasPrefix(":")
                ? nil : "'\(shown)' has no valid port: a number from 1 to 65535."
        }
        let host = authority.prefix { $0 != ":" }
        if host.isEmpty { return "'\(shown)' has no host." }
        if host.contains(where: \.isWhitespace) { return "'\(shown)' has a space in its host." }
        guard host.count == authority.count || isPort(authority.dropFirst(host.count + 1)) else {
            return "'\(shown)' has no valid port: a number from 1 to 65535."
        }
        return nil
    }

    private static func isPort(_ text: Substring) -> Bool {
        text.isEmpty || UInt16(text).map { $0 > 0 } == true
    }

    /// For a message: cut, without user name, password and query, which may sign the URL, and without characters that
    /// control a terminal.
    static func shown(_ text: String) -> String {
        var text = text
        if let start = text.firstRange(of: "://")?.upperBound {
            let authority = text[start...].prefix { !"/?#".contains($0) }
            if let at = authority.lastIndex(of: "@") { text.replaceSubrange(start..<at, with: "…") }
        }
        if let mark = text.firstIndex(of: "?"), text[mark...].contains("=") {
            text.replaceSubrange(text.index(after: mark)..., with: "…")
        }
        let safe = text.unicodeScalars.filter { $0.value >= 32 && !(127...159).contains($0.value) }
        let cut = String(String.UnicodeScalarView(safe))
        return cut.count > 100 ? cut.prefix(100) + "…" : cut
    }
}
