internal import Glibc

/// Scheme, host and port of a server, as they stand in a URL and in the `Host` header.
struct HTTPAddress: Hashable, Sendable {
    enum Scheme: String, Sendable {
        case http, https

        var port: Int { self == .http ? 80 : 443 }
    }

    let scheme: Scheme
    /// In lowercase; an IPv6 address stands in brackets.
    let host: String
    /// Nil for the scheme's own.
    let port: Int?

    private init(scheme: Scheme, host: String, port: Int?) {
        self.scheme = scheme
        self.host = host
        self.port = port
    }

    /// - Parameter text: `https://HOST`, `http://HOST:PORT` or `http://[ADDRESS]:PORT`, and nothing after it.
    init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let scheme = Scheme(rawValue: parts[0].lowercased()) else { return nil }
        var host = parts[1].lowercased()
        var port: Int?
        if let colon = host.lastIndex(of: ":"), !host.hasSuffix("]") {
            let digits = host[host.index(after: colon)...]
            guard (1...5).contains(digits.utf8.count), digits.utf8.allSatisfy({ (48...57).contains($0) }),
                let number = Int(digits), (1...65_535).contains(number)
            else { return nil }
            port = number == scheme.port ? nil : number
            host = String(host[..<colon])
        }
        guard Self.isName(host) || Self.isBracketed(host) else { return nil }
        self.init(scheme: scheme, host: host, port: port)
    }

    /// - Returns: the address of a URL, and its path with the query.
    static func split(_ url: String) -> (address: HTTPAddress, path: String)? {
        guard let scheme = url.firstRange(of: "://") else { return nil }
        let end = url[scheme.upperBound...].firstIndex { "/?#".contains($0) } ?? url.endIndex
        guard let address = HTTPAddress(url[..<end]), url[end...].utf8.allSatisfy({ $0 > 32 && $0 < 127 }) else {
            return nil
        }
        return (address, url[end...].isEmpty ? "/" : String(url[end...]))
    }

    /// As in the `Host` header.
    var authority: String { port.map { "\(host):\($0)" } ?? host }

    var origin: String { "\(scheme.rawValue)://\(authority)" }

    /// Whether the host is an IP address, which can't have a name before it.
    var isNumeric: Bool {
        var address = in_addr()
        return host.hasPrefix("[") || inet_pton(AF_INET, host, &address) == 1
    }

    /// Whether the host is this machine.
    var isLoopback: Bool { host == "localhost" || host == "[::1]" || (isNumeric && host.hasPrefix("127.")) }

    func adding(label: String) -> HTTPAddress { HTTPAddress(scheme: scheme, host: "\(label).\(host)", port: port) }

    private static func isName(_ host: String) -> Bool {
        (1...253).contains(host.utf8.count) && !host.hasPrefix(".") && !host.contains("..")
            && host.utf8.allSatisfy { ($0 &- 48) < 10 || ($0 &- 97) < 26 || $0 == 45 || $0 == 46 || $0 == 95 }
    }

    private static func isBracketed(_ host: String) -> Bool {
        guard host.hasPrefix("["), host.hasSuffix("]") else { return false }
        var address = in6_addr()
        return inet_pton(AF_INET6, String(host.dropFirst().dropLast()), &address) == 1
    }
}
