internal import Glibc

/// Selects URLs of a list.
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
        if !hosts.isEmpty, !hosts.contains(Self.plainHost(of: url) ?? nameOfHost(url)) { return false }
        return patterns.isEmpty || patterns.contains { fnmatch($0, url, 0) == 0 }
    }

    /// The host of a plainly written URL, found without parsing; nil if the URL must be parsed.
    private static func plainHost(of url: String) -> String? {
        guard let start = url.firstRange(of: "://")?.upperBound else { return nil }
        let host = url[start...].utf8.prefix { $0 != UInt8(ascii: "/") }
        let isPlain = host.allSatisfy { (97...122).contains($0) || (45...46).contains($0) || (48...57).contains($0) }
        // Numbers are addresses, of which there are several spellings.
        return isPlain && host.last.map { (97...122).contains($0) } == true ? String(host) : nil
    }
}
