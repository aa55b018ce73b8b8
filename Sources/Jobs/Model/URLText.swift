/// What the queue reads off a URL without judging it; whether it can be fetched is the downloader's business.
public enum URLText {
    /// The cache key of a URL: the URL without its fragment, which is never sent to an origin.
    public static func cacheKey(_ url: String) -> String {
        guard let hash = url.utf8.firstIndex(of: UInt8(ascii: "#")) else { return url }
        return String(url[..<hash])
    }

    /// A URL as it may be shown: without the user's name and password.
    public static func withoutCredentials(_ url: String) -> String {
        guard let scheme = url.utf8.firstRange(of: "://".utf8) else { return url }
        let authority = url[scheme.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        guard let at = authority.utf8.lastIndex(of: UInt8(ascii: "@")) else { return url }
        return String(url[..<scheme.upperBound] + url[url.utf8.index(after: at)...])
    }

    /// The host of a URL in lower case, without credentials, port and a dot at its end; empty where there is none.
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
