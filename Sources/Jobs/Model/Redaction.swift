/// Hides what gives access in URLs that are shown to people: user names and passwords, and the values of queries that sign
/// or open them.
public struct Redaction: Sendable, Hashable {
    /// Names of query parameters, in lower case.
    private let names: Set<String>

    /// What clouds, content networks and image services call them.
    private static let usual: Set<String> = [
        "x-amz-signature", "x-amz-credential", "x-amz-security-token", "x-goog-signature", "x-goog-credential",
        "x-oss-signature", "x-oss-security-token", "q-signature", "signature", "sig", "sign", "hmac", "hdnts", "hdnea",
        "token", "access_token", "auth_token", "id_token", "refresh_token", "auth", "authorization", "jwt", "key",
        "api_key", "api-key", "apikey", "access_key", "accesskeyid", "awsaccesskeyid", "googleaccessid", "key-pair-id",
        "policy", "secret", "client_secret", "password", "passwd", "pwd", "session", "sessionid", "sid",
    ]

    /// - Parameter others: names besides the usual ones, in any case.
    public init(also others: [String] = []) { names = Self.usual.union(others.map { $0.lowercased() }) }

    /// A URL as it may be shown.
    public func shown(_ url: String) -> String {
        let url = URLText.withoutCredentials(url)
        guard let mark = url.utf8.firstIndex(of: UInt8(ascii: "?")) else { return url }
        let query = url[url.utf8.index(after: mark)...]
        let end = query.utf8.firstIndex(of: UInt8(ascii: "#")) ?? query.endIndex
        var shown = String(url[...mark])
        var part = ""
        for character in query[..<end] {
            if character == "&" || character == ";" {
                shown += hidden(part) + String(character)
                part = ""
            } else {
                part.append(character)
            }
        }
        return shown + hidden(part) + query[end...]
    }

    private func hidden(_ part: String) -> String {
        guard let equals = part.utf8.firstIndex(of: UInt8(ascii: "=")), names.contains(Self.name(part[..<equals])) else {
            return part
        }
        return "\(part[...equals])***"
    }

    /// Decoded, since a name may be written with percent signs, and in lower case.
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
