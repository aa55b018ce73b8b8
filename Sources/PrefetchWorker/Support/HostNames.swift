internal import Download
internal import Jobs

/// Hosts as people name them.
public enum HostNames {
    /// The name that limits, blocks and failures of a URL's host go by: in lower case, in ASCII, without a dot at its end.
    public static func name(ofURL url: String) -> String { Downloader.host(of: url) ?? URLText.host(url) }

    /// The same of a host as a person has typed it.
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
}
