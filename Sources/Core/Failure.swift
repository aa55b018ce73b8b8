/// Why an item can't go on: the one error that every stage throws, from the download to the publisher.
public struct Failure: Error, Sendable, Equatable, CustomStringConvertible {
    public let failureClass: FailureClass
    /// A sentence for people, at most 500 characters on one line, without credentials or control characters. Decisions go by
    /// the class: a library's or an origin's words are only quoted here.
    public let message: String
    /// The host that failed, as budgets and blocks spell it: after a redirect another host than the URL's.
    public var host: String?
    /// How long the origin asked to be left alone, 0 s to 1 h.
    public var retryAfter: Duration?
    /// The HTTP response, where the request got that far.
    public var response: DownloadResponse?
    /// False where no request was made, as for a host whose circuit is open: only a request counts among the host's failures.
    public var hasAsked = true
    /// Whether another request would bring the same bytes.
    public var isFinal = false
    /// Whether its URL goes on the blacklist, where a delegate, a setting or the job says so; nil leaves it to the class.
    public var isListed: Bool?
    /// The setting of this worker that refused it; its URL is listed as long as the setting is the same.
    public var setting: String?
    /// When its host may be asked again, where the host has said so.
    public var blocksHostUntil: WallTime?

    public init(
        _ failureClass: FailureClass, _ message: String, host: String? = nil, retryAfter: Duration? = nil,
        response: DownloadResponse? = nil,
    ) {
        self.failureClass = failureClass
        self.message = MessageText.tidied(message)
        self.host = host
        self.retryAfter = retryAfter
        self.response = response
    }

    /// The worker is stopping, or the item was cancelled: it goes back to the queue, and the lease's fence decides.
    public static func stopped(_ message: String = "The worker is stopping.") -> Failure {
        Failure(.cancelled, message)
    }

    public var description: String { message }

    public var httpStatus: Int? {
        if case .http(let status) = failureClass { status } else { nil }
    }
}

/// What goes from a helper to its worker: the class and the message.
extension Failure: Codable {
    private enum CodingKeys: String, CodingKey { case failureClass, message }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            try container.decode(FailureClass.self, forKey: .failureClass),
            try container.decode(String.self, forKey: .message))
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(failureClass, forKey: .failureClass)
        try container.encode(message, forKey: .message)
    }
}
