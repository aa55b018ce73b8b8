public import SystemPackage

/// Why a download did not succeed. The code decides what happens next; the message is for people.
public struct DownloadFailure: Error, Sendable, CustomStringConvertible {
    public enum Code: Sendable, Hashable {
        case dns, connect, timeout, connectionLost, tlsHandshake, tlsCertificate
        case http(Int)
        case tooManyRedirects, invalidURL, forbiddenAddress, tooLarge, truncated
        /// The inspector's own class name.
        case refusedBody(String)
        /// The file could not be made or written: our disk's fault, never the origin's.
        case disk(Errno)
        case cancelled, internalError
        /// The request has what can't be sent: the caller's fault, before anybody is asked.
        case invalidRequest
        /// It waited for a host that is blocked, or behind many others of a busy one, and was sent away.
        case crowded
        /// The site keeps it from machines like us, and the request says that this counts.
        case optOut
    }

    public let code: Code
    /// A full sentence that names the host, at most 500 characters, without credentials or control characters.
    public let message: String
    /// How long the origin asked to be left alone, 0 s to 1 h.
    public let retryAfter: Duration?
    /// What HTTP said, when it came that far.
    public let response: DownloadResponse?

    /// Whose failure it is, as budgets and blocks spell it: after a redirect another host than the request's. Nil where it was
    /// nobody's turn yet.
    public internal(set) var host: String?

    public init(
        _ code: Code, _ message: String, retryAfter: Duration? = nil, response: DownloadResponse? = nil,
        host: String? = nil,
    ) {
        self.host = host
        self.code = code
        self.message = Self.printable(message)
        self.retryAfter = retryAfter
        self.response = response
    }

    public var description: String { message }

    static func crowded(_ host: String) -> DownloadFailure {
        DownloadFailure(.crowded, "It waited for \(host), which can take no more requests now.", host: host)
    }

    static let cancelled = DownloadFailure(.cancelled, "The download was cancelled.")

    /// Origins choose part of the text, so nothing in it may move a terminal's cursor or fill a log.
    private static func printable(_ text: String) -> String {
        let visible = text.unicodeScalars.filter { $0.properties.generalCategory != .control }
        var result = String.UnicodeScalarView()
        result.append(contentsOf: visible.prefix(500))
        return String(result)
    }
}

extension DownloadFailure.Code {
    /// Whether the host may answer otherwise in a while.
    var isPassing: Bool {
        switch self {
        case .dns, .connect, .timeout, .connectionLost, .tlsHandshake: true
        case .http(let status): [408, 425, 429, 500, 502, 503, 504].contains(status)
        default: false
        }
    }

    /// Whether what is known of the body is as true as it was, if none has come.
    var tellsOfNoBody: Bool {
        switch self {
        case .cancelled, .disk: true
        default: isPassing
        }
    }

    /// Whether it is us who did not want the body.
    var isRefusal: Bool {
        switch self {
        case .refusedBody, .tooLarge: true
        default: false
        }
    }
}
