/// Hides credentials in URLs that are shown to users: user names, passwords, and the values of query parameters that
/// sign a URL or grant access.
public struct Redaction: Sendable, Hashable {
    /// Names of query parameters, in lower case.
    private let names: Set<String>

    /// The parameter names that clouds, content networks and image services use.
    private static let usual: Set<String> = [
        "x-amz-signature", "x-amz-credential", "x-amz-security-token", "x-goog-signature", "x-goog-credential",
        "x-oss-signature", "x-oss-security-token", "q-signature", "signature", "sig", "sign", "hmac", "hdnts", "hdnea",
        "token", "access_token", "auth_token", "id_token", "refresh_token", "auth", "authorization", "jwt", "key",
        "api_key", "api-key", "apikey", "access_key", "accesskeyid", "awsaccesskeyid", "googleaccessid", "key-pair-id",
        "policy", "secret", "client_secret", "password", "passwd", "pwd", "session", "sessionid", "sid",
    ]

    /// - Parameter others: further names, in any case.
    public init(also others: [String] = []) { names = Self.usual.union(others.map { $0.lowercased() }) }

    /// The URL without its credentials. Parameters may also stand behind a semicolon of the path, or in the fragment.
    public func shown(_ url: String) -> String {
        let url = URLText.withoutCredentials(url)
        guard url.utf8.contains(where: Self.isSeparator) else { return url }
        let parts = url.split(omittingEmptySubsequences: false) { $0.utf8.first.map(Self.isSeparator) ?? false }
        var shown = String(parts[0])
        for part in parts.dropFirst() {
            shown.append(url[url.index(before: part.startIndex)])
            shown += hidden(part)
        }
        return shown
    }

    private static func isSeparator(_ byte: UInt8) -> Bool { "?&;#".utf8.contains(byte) }

    private func hidden(_ part: Substring) -> Substring {
        guard let equals = part.utf8.firstIndex(of: UInt8(ascii: "=")) else { return part }
        let value = part[part.utf8.index(after: equals)...]
        guard names.contains(Self.name(part[..<equals])) || isSecretWithin(value) else { return part }
        return "\(part[...equals])***"
    }

    /// Whether the value is another URL that has such a parameter.
    private func isSecretWithin(_ value: Substring) -> Bool {
        guard value.utf8.contains(UInt8(ascii: "%")) else { return false }
        return Self.name(value).split { $0.utf8.first.map(Self.isSeparator) ?? false }.dropFirst().contains { part in
            part.firstIndex(of: "=").map { names.contains(String(part[..<$0])) } ?? false
        }
    }

    /// Percent-decoded and in lower case.
    private static func name(_ text: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            let digits = rest.prefix(2)
            if byte == UInt8(ascii: "%"), digits.count == 2,
                let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
            {
                bytes.append(value)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self).lowercased()
    }
}

/// Parts of a URL's text. Only the downloader checks whether the URL can be fetched.
public enum URLText {
    /// The cache key of a URL: the URL without its fragment, which is never sent to an origin.
    public static func cacheKey(_ url: String) -> String {
        guard let hash = url.utf8.firstIndex(of: UInt8(ascii: "#")) else { return url }
        return String(url[..<hash])
    }

    /// The URL without the user's name and password.
    public static func withoutCredentials(_ url: String) -> String {
        guard let scheme = url.utf8.firstRange(of: "://".utf8) else { return url }
        let authority = url[scheme.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        guard let at = authority.utf8.lastIndex(of: UInt8(ascii: "@")) else { return url }
        return String(url[..<scheme.upperBound] + url[url.utf8.index(after: at)...])
    }

    /// The host of a URL in lower case, without credentials, port and trailing dot; empty if there is none.
    public static func host(_ url: String) -> String {
        guard let scheme = url.utf8.firstRange(of: "://".utf8) else { return "" }
        let authority = url[scheme.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        let server = authority.lastIndex(of: "@").map { authority[authority.index(after: $0)...] } ?? authority
        if server.hasPrefix("["), let end = server.firstIndex(of: "]") {
            return server[server.index(after: server.startIndex)..<end].lowercased()
        }
        let name = (server.firstIndex(of: ":").map { server[..<$0] } ?? server).lowercased()
        return name.hasSuffix(".") ? String(name.dropLast()) : name
    }
}

// For output and files, which must not contain the user name and password of a URL.

extension SourceRecord {
    public var withoutCredentials: SourceRecord {
        var record = self
        record.key = URLText.withoutCredentials(key)
        record.finalURL = finalURL.map(URLText.withoutCredentials)
        return record
    }
}

extension BlacklistEntry {
    public var withoutCredentials: BlacklistEntry {
        var entry = self
        entry.url = URLText.withoutCredentials(url)
        return entry
    }
}

extension ResultRow {
    public var withoutCredentials: ResultRow {
        var row = self
        row.url = URLText.withoutCredentials(url)
        row.servedURL = servedURL.map(URLText.withoutCredentials)
        return row
    }
}

extension JobEvent {
    public var withoutCredentials: JobEvent {
        var event = self
        event.url = url.map(URLText.withoutCredentials)
        return event
    }
}

// For a terminal, where signatures and tokens are hidden as well.

extension SourceRecord {
    public func hidden(by redaction: Redaction) -> SourceRecord {
        var record = self
        record.key = redaction.shown(key)
        record.finalURL = finalURL.map(redaction.shown)
        return record
    }
}

extension BlacklistEntry {
    public func hidden(by redaction: Redaction) -> BlacklistEntry {
        var entry = self
        entry.url = redaction.shown(url)
        return entry
    }
}

extension ResultRow {
    public func hidden(by redaction: Redaction) -> ResultRow {
        var row = self
        row.url = redaction.shown(url)
        row.servedURL = servedURL.map(redaction.shown)
        return row
    }
}

extension JobEvent {
    public func hidden(by redaction: Redaction) -> JobEvent {
        var event = self
        event.url = url.map(redaction.shown)
        return event
    }
}
