/// Where a request has got to, by redirects.
struct Hop: Sendable {
    let url: DownloadURL
    /// Redirects that led here from the URL that the request names.
    var redirects = 0
    /// What the transfers before this one took. Time in the queue isn't counted, at this hop as little as at the first.
    var spent = Duration.zero
}

/// What one host is asked on the way of a ``Downloader/download(_:)``, from its arrival to its answer.
final class Ticket: Sendable {
    let id: UInt64
    let request: DownloadRequest
    let hop: Hop
    /// The host whose budget this counts against.
    let host: String
    /// Called exactly once.
    let answer: @Sendable (DownloadOutcome) -> Void
    /// Whom the request's own headers and credentials may be told: where it began.
    let beginning: DownloadURL
    /// Called with where a redirect leads that the transfer doesn't follow, and then instead of the answer.
    let onRedirect: @Sendable (Hop) -> Void

    init(
        id: UInt64, request: DownloadRequest, hop: Hop, beginning: DownloadURL,
        onRedirect: @escaping @Sendable (Hop) -> Void, answer: @escaping @Sendable (DownloadOutcome) -> Void,
    ) {
        self.id = id
        self.request = request
        self.hop = hop
        self.beginning = beginning
        self.onRedirect = onRedirect
        self.answer = answer
        host = HostName.normal(hop.url.host)
    }

    var url: DownloadURL { hop.url }

    /// Whether the transfer goes on by itself to where a redirect leads. Another host has a queue and limits of its own, and
    /// where robots.txt counts, each URL is judged before it is asked for.
    func follows(_ url: DownloadURL) -> Bool {
        !request.respectsRobotsText && HostName.normal(url.host) == host
    }
}

/// The one spelling of a host's name that budgets and blocks go by: lower case, ASCII, no brackets, no trailing dot.
enum HostName {
    static func normal(_ host: String) -> String {
        guard host.utf8.allSatisfy({ $0 < 0x80 }) else {
            // What is no name at all stands for itself, and for nothing that could be asked.
            return (try? DownloadURL("http://\(host)/", maxBytes: 8_192).host) ?? host
        }
        var name = Substring(host.lowercased())
        if name.hasPrefix("["), name.hasSuffix("]") { name = name.dropFirst().dropLast() }
        if name.hasSuffix(".") { name = name.dropLast() }
        return String(name)
    }
}
