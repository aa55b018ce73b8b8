/// A user name and password that a job's `Authorization` header gives in clear text.
struct Authorization: Sendable, Hashable {
    enum Scheme: Sendable { case basic, digest }

    let scheme: Scheme
    let credentials: DownloadURL.Credentials

    /// Nil for a header that is sent as it is: encoded credentials have no colon (Basic, Bearer), or have names and
    /// quotes (Digest).
    init?(_ value: String) {
        let words = value.split(separator: " ", maxSplits: 1)
        guard words.count == 2, let colon = words[1].firstIndex(of: ":") else { return nil }
        switch words[0].lowercased() {
        case "basic": scheme = .basic
        case "digest" where !words[1].contains("=\""): scheme = .digest
        default: return nil
        }
        credentials = DownloadURL.Credentials(
            user: String(words[1][..<colon]), password: String(words[1][words[1].index(after: colon)...]))
    }

    init(basic credentials: DownloadURL.Credentials) {
        scheme = .basic
        self.credentials = credentials
    }
}

extension DownloadRequest {
    var authorization: Authorization? {
        headers.lazy.filter { $0.name.lowercased() == "authorization" }.compactMap { Authorization($0.value) }.first
    }
}
