/// One call of ``Downloader/download(_:)``, from its arrival to its answer.
final class Ticket: Sendable {
    let id: UInt64
    let request: DownloadRequest
    let url: DownloadURL
    /// The host whose budget this counts against.
    let host: String
    /// Called exactly once.
    let answer: @Sendable (DownloadOutcome) -> Void
    /// Redirects that led to this URL from the one the request names.
    let redirects: Int
    /// Whom the request's own headers and credentials may be told: where it began.
    let beginning: DownloadURL
    /// Called instead of following a redirect, and then instead of the answer.
    let onRedirect: (@Sendable (DownloadURL) -> Void)?

    init(
        id: UInt64, request: DownloadRequest, url: DownloadURL, beginning: DownloadURL? = nil, redirects: Int = 0,
        onRedirect: (@Sendable (DownloadURL) -> Void)? = nil, answer: @escaping @Sendable (DownloadOutcome) -> Void,
    ) {
        self.beginning = beginning ?? url
        self.redirects = redirects
        self.onRedirect = onRedirect
        self.id = id
        self.request = request
        self.url = url
        self.answer = answer
        host = HostName.normal(url.host)
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
