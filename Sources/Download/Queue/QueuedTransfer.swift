/// The position of a request in its chain of redirects.
struct Hop: Sendable {
    let url: DownloadURL
    /// Redirects so far, from the request's own URL.
    var redirects = 0
    /// The time of the earlier transfers of the chain, without their time in queues.
    var spent = Duration.zero
}

/// One hop of ``Downloader/download(_:)`` to one host, from its arrival in the queue to its answer.
final class QueuedTransfer: Sendable {
    let id: UInt64
    let request: DownloadRequest
    let hop: Hop
    /// The host whose limits apply.
    let host: String
    /// Called exactly once.
    let answer: @Sendable (DownloadOutcome<BodyFile>) -> Void
    /// The first URL. The request's own headers and credentials may be sent only to its origin.
    let beginning: DownloadURL
    /// Of the request's headers, or else of the first URL; for that URL's origin only.
    let authorization: Authorization?
    /// Called instead of `answer` if the transfer ends with a redirect that it does not follow itself.
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
        authorization = request.authorization ?? beginning.credentials.map(Authorization.init(basic:))
        host = HostName.normal(hop.url.host)
    }

    var url: DownloadURL { hop.url }

    /// Whether the transfer follows a redirect to this URL itself. Another host has its own queue and limits, and with
    /// `respectsRobotsText` each URL is checked before it is requested.
    func follows(_ url: DownloadURL) -> Bool {
        !request.respectsRobotsText && HostName.normal(url.host) == host
    }
}
