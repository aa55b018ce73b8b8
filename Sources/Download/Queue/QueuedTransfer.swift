/// Where a request has got to, by redirects.
struct Hop: Sendable {
    let url: DownloadURL
    /// Redirects that led here from the URL that the request names.
    var redirects = 0
    /// The time that the transfers before this one took, without their time in the queue.
    var spent = Duration.zero
}

/// One hop of a ``Downloader/download(_:)``, to one host, from its arrival in the queue to its answer.
final class QueuedTransfer: Sendable {
    let id: UInt64
    let request: DownloadRequest
    let hop: Hop
    /// The host whose budget this counts against.
    let host: String
    /// Called exactly once.
    let answer: @Sendable (DownloadOutcome<BodyFile>) -> Void
    /// Whom the request's own headers and credentials may be told: where it began.
    let beginning: DownloadURL
    /// Called with where a redirect leads that the transfer doesn't follow, and then instead of the answer.
    let onRedirect: @Sendable (Hop) -> Void

    init(
        id: UInt64, request: DownloadRequest, hop: Hop, beginning: DownloadURL,
        onRedirect: @escaping @Sendable (Hop) -> Void, answer: @escaping @Sendable (DownloadOutcome<BodyFile>) -> Void,
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

    /// Whether the transfer goes on by itself to where a redirect leads. Another host has a queue and limits of its
    /// own, and where robots.txt counts, each URL is judged before it is asked for.
    func follows(_ url: DownloadURL) -> Bool {
        !request.respectsRobotsText && HostName.normal(url.host) == host
    }
}
