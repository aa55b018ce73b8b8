/// The URL of a PostgreSQL database, as libpq reads it: `postgres://user:password@host:port/database?options`.
public enum PostgresURL {
    public static func isPostgres(_ path: String) -> Bool {
        path.hasPrefix("postgres://") || path.hasPrefix("postgresql://")
    }

    /// The URL as it may be shown: without passwords.
    public static func shown(_ url: String) -> String {
        guard isPostgres(url) else { return url }
        var shown = url
        if let scheme = shown.firstRange(of: "://") {
            // The last @: a password with a slash that should have been encoded is hidden, too.
            let rest = shown[scheme.upperBound...]
            if let at = rest.lastIndex(of: "@"), let colon = rest[..<at].firstIndex(of: ":") {
                shown.removeSubrange(colon..<at)
            }
        }
        guard let query = shown.firstIndex(of: "?") else { return shown }
        let options = shown[shown.index(after: query)...].split(separator: "&")
            .filter { !$0.hasPrefix("password=") && !$0.hasPrefix("sslpassword=") }
        return shown[..<query] + (options.isEmpty ? "" : "?" + options.joined(separator: "&"))
    }

    /// libpq's message, with the URL's password replaced by `…`: libpq quotes the part of a URL that it can't read.
    static func hidingPassword(of url: String, in message: String) -> String {
        guard let scheme = url.firstRange(of: "://"), let at = url[scheme.upperBound...].lastIndex(of: "@"),
            let colon = url[scheme.upperBound..<at].firstIndex(of: ":"), url.index(after: colon) < at
        else { return message }
        return message.replacing(url[url.index(after: colon)..<at], with: "…")
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
