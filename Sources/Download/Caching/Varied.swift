extension DownloadConfiguration {
    /// Whether the request is sent with credentials: its own, or those of the configuration.
    public func isAuthorized(_ request: DownloadRequest) -> Bool {
        request.isAuthorized || headers.contains { $0.name.lowercased() == "authorization" }
    }

    /// The request's values of the headers that a response's `Vary` names, and its credentials, whether `Vary` names
    /// them or not. Nil if no other request can match: `*`, and `Cookie` if a cookie jar sets it. Values are hashed,
    /// since each may be a secret.
    public func varied(_ request: DownloadRequest, by vary: String?) -> String? {
        guard vary != nil || isAuthorized(request) else { return "" }
        var names = Set((vary ?? "").lowercased().split(separator: ",").map { $0.filter { $0 != " " && $0 != "\t" } })
        if names.contains("*") || (names.contains("cookie") && request.cookieJar != nil) { return nil }
        if isAuthorized(request) { names.insert("authorization") }
        return names.map { name in
            let sent = sent(name, with: request)
            return switch name {
            case "user-agent" where sent.isEmpty: "\(name): \(digest(of: userAgent))"
            case "accept" where sent.isEmpty, "accept-encoding" where sent.isEmpty: "\(name): ours"
            default: "\(name): \(sent.isEmpty ? "" : digest(of: sent))"
            }
        }.sorted().joined(separator: "\n")
    }

    /// The value with which a header is sent; empty if it is not sent.
    public func value(of name: String, in request: DownloadRequest) -> String { sent(name, with: request) }

    /// The header's value in the request or the configuration; empty if neither sets it.
    private func sent(_ name: String, with request: DownloadRequest) -> String {
        let own = request.headers.filter { $0.name.lowercased() == name }
        if own.isEmpty, name == "authorization", request.isAuthorized { return request.url }
        let values = own.isEmpty ? headers.filter { $0.name.lowercased() == name } : own
        return values.map(\.value).joined(separator: ", ")
    }
}

extension DownloadRequest {
    fileprivate var isAuthorized: Bool {
        headers.contains { $0.name.lowercased() == "authorization" } || hasCredentialsInURL
    }

    private var hasCredentialsInURL: Bool {
        guard url.utf8.contains(UInt8(ascii: "@")), let scheme = url.firstRange(of: "://") else { return false }
        return url[scheme.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }.contains("@")
    }
}
