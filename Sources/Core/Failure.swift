/// Why an item cannot go on. Every stage throws this one error, from the download to the publisher.
public struct Failure: Error, Sendable, Equatable, CustomStringConvertible {
    public let failureClass: FailureClass
    /// A sentence for people, at most 500 characters on one line, without credentials or control characters. It may
    /// quote a library or an origin; code decides by the class only.
    public let message: String
    /// The host that failed, in the spelling of limits and blocks. After a redirect it differs from the URL's host.
    public var host: String?
    /// The origin's `Retry-After`, 0 s to 1 h.
    public var retryAfter: Duration?
    /// The HTTP response; nil if the request failed before it came.
    public var response: DownloadResponse? {
        get { answer?.response }
        set { answer = newValue.map(Answer.init) }
    }
    /// Behind a reference, since a typed error is returned in place: each function that may throw it reserves space for
    /// the whole value.
    private var answer: Answer?
    /// False if no request was made, as for a host whose circuit is open. Only requests count among the host's
    /// failures.
    public var hasAsked = true
    /// Whether another request would bring the same bytes.
    public var isFinal = false
    /// Whether its URL goes on the blacklist, if a delegate, a setting or the job decides that; nil leaves it to the
    /// class.
    public var isListed: Bool?
    /// The setting of this worker that refused the URL. The URL stays listed only while the setting is the same.
    public var setting: String?
    /// Whether the limit of the cache leaves no space now, although its disk may still have space: ``cacheIsFull(_:)``.
    public private(set) var isAtCacheLimit = false
    /// When the host's block ends; nil if the host announced no time.
    public var blocksHostUntil: WallTime?

    public init(
        _ failureClass: FailureClass, _ message: String, host: String? = nil, retryAfter: Duration? = nil,
        response: DownloadResponse? = nil,
    ) {
        self.failureClass = failureClass
        self.message = MessageText.tidied(message)
        self.host = host
        self.retryAfter = retryAfter
        answer = response.map(Answer.init)
    }

    private final class Answer: Sendable, Equatable {
        let response: DownloadResponse

        init(_ response: DownloadResponse) { self.response = response }

        static func == (one: Answer, other: Answer) -> Bool { one.response == other.response }
    }

    /// The worker is stopping, or the item was cancelled. The item goes back to the queue if it is still active under
    /// this worker's lease; a cancelled item is not, and stays cancelled.
    public static func stopped(_ message: String = "The worker is stopping.") -> Failure {
        Failure(.cancelled, message)
    }

    /// The cache's limit leaves no space for a file at this moment.
    public static func cacheIsFull(_ reason: String) -> Failure {
        var failure = Failure(.diskFull, reason)
        failure.isAtCacheLimit = true
        return failure
    }

    public var description: String { message }

    public var httpStatus: Int? {
        if case .http(let status) = failureClass { status } else { nil }
    }
}

/// A helper sends its worker the class and the message only.
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
