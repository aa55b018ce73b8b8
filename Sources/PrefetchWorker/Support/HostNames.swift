internal import Download
internal import Glibc
internal import Jobs

/// Normalises the names of hosts.
public enum HostNames {
    /// The host name of a URL as limits, blocks and failures use it: in lower case, in ASCII, without a trailing dot.
    public static func name(ofURL url: String) -> String { Downloader.host(of: url) ?? URLText.host(url) }

    /// The same for a host that a person has typed.
    ///
    /// - Throws: `usage` for a text with a scheme, a port or a path.
    public static func parse(_ host: String) throws(WorkerError) -> String {
        let bare = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
        let isAddress = bare.count(where: { $0 == ":" }) > 1
        guard !bare.isEmpty, !bare.contains(where: { "/@?#[] ".contains($0) }), isAddress || !bare.contains(":"),
            let name = Downloader.host(of: isAddress ? "http://[\(bare)]/" : "http://\(bare)/")
        else {
            throw WorkerError(
                .usage,
                "A host is a name without scheme and port, such as images.example.com, not '\(host.prefix(100))'.")
        }
        return name
    }

    /// The name of the machine that this program runs on.
    static var ofThisMachine: String {
        var buffer = [CChar](repeating: 0, count: 256)
        guard gethostname(&buffer, buffer.count - 1) == 0 else { return "unknown" }
        return buffer.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } } ?? "unknown"
    }
}
