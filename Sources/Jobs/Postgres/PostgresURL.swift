/// The URL of a PostgreSQL database, as libpq reads it: `postgres://user:password@host:port/database?options`.
public enum PostgresURL {
    public static func isOne(_ path: String) -> Bool {
        path.hasPrefix("postgres://") || path.hasPrefix("postgresql://")
    }

    /// The URL as it may be shown: without passwords.
    public static func shown(_ url: String) -> String {
        var shown = url
        if let scheme = shown.firstRange(of: "://") {
            let rest = shown[scheme.upperBound...]
            let authority = rest.prefix { !"/?#".contains($0) }
            if let at = authority.lastIndex(of: "@"), let colon = authority[..<at].firstIndex(of: ":") {
                shown.removeSubrange(colon..<at)
            }
        }
        guard let query = shown.firstIndex(of: "?") else { return shown }
        let options = shown[shown.index(after: query)...].split(separator: "&")
            .filter { !$0.hasPrefix("password=") && !$0.hasPrefix("sslpassword=") }
        return shown[..<query] + (options.isEmpty ? "" : "?" + options.joined(separator: "&"))
    }

    /// What every connection should have, where the URL does not say otherwise: a server that has vanished is noticed
    /// after some 20 s, and `application_name` tells an administrator whose session it is.
    static func withDefaults(_ url: String) -> String {
        let defaults = [
            ("connect_timeout", "10"), ("keepalives_idle", "10"), ("keepalives_interval", "5"),
            ("keepalives_count", "2"),
            ("tcp_user_timeout", "20000"), ("application_name", "worker"),
        ]
        return defaults.reduce(url) { url, option in
            guard !url.contains(option.0 + "=") else { return url }
            return url + (url.contains("?") ? "&" : "?") + "\(option.0)=\(option.1)"
        }
    }
}
