internal import Glibc

/// Where the dashboard listens: an address and a port.
public struct ListenAddress: Hashable, Sendable, CustomStringConvertible {
    /// An IP address, without brackets.
    public let host: String
    /// 0 for any free port.
    public let port: Int

    /// Parses `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080`, or only a port, for the address 127.0.0.1.
    ///
    /// - Throws: ``DashboardError`` with a sentence for the user.
    public init(parsing text: String) throws(DashboardError) {
        let (host, port) = Self.split(text)
        guard let number = Int(port), (0...65_535).contains(number), port.allSatisfy(\.isNumber) else {
            throw DashboardError(
                "'\(text)' is no address to listen at. Write an address and a port from 0 to 65535, such as 127.0.0.1:8080."
            )
        }
        let address = host == "localhost" ? "127.0.0.1" : host
        guard Self.isAddress(address) else {
            throw DashboardError(
                "'\(host)' is no IP address. Write one that this machine has, 127.0.0.1 for this machine only, or 0.0.0.0 for "
                    + "all.")
        }
        self.host = address
        self.port = number
    }

    /// Whether only programs of this machine can connect.
    public var isLoopback: Bool { host.hasPrefix("127.") || host == "::1" }

    public var description: String { "\(host.contains(":") ? "[\(host)]" : host):\(port)" }

    private static func split(_ text: String) -> (host: String, port: String) {
        guard let colon = text.lastIndex(of: ":") else { return ("127.0.0.1", text) }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        return (String(host), String(text[text.index(after: colon)...]))
    }

    private static func isAddress(_ text: String) -> Bool {
        var (four, six) = (in_addr(), in6_addr())
        return inet_pton(AF_INET, text, &four) == 1 || inet_pton(AF_INET6, text, &six) == 1
    }
}

/// Why the dashboard can't be started.
public struct DashboardError: Error, Hashable, CustomStringConvertible {
    /// A sentence for the user.
    public let description: String

    init(_ description: String) { self.description = description }
}
