internal import Glibc

/// Which URLs of a list are taken.
public struct ListSelection: Sendable {
    /// Names of hosts, in lower case; empty for all.
    public var hosts: Set<String> = []
    /// Patterns of fnmatch(3), where `*` also stands for slashes; one has to match the whole URL. Empty for all.
    public var patterns: [String] = []
    /// Percentage of the URLs, at random; nil for all.
    public var sample: Double?
    /// The name of a URL's host, in lower case.
    public var nameOfHost: @Sendable (String) -> String

    public init(nameOfHost: @escaping @Sendable (String) -> String) { self.nameOfHost = nameOfHost }

    public func takes(_ url: String) -> Bool {
        if let sample, Double.random(in: 0..<100) >= sample { return false }
        if !hosts.isEmpty, !hosts.contains(nameOfHost(url)) { return false }
        return patterns.isEmpty || patterns.contains { fnmatch($0, url, 0) == 0 }
    }
}
