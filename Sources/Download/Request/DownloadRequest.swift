/// One URL to download, and its priority.
public struct DownloadRequest: Sendable {
    /// An absolute http or https URL. A user name and password in it are used for Basic authentication.
    public var url: String
    /// The job's own headers. They are sent to the scheme, host and port of `url` only, never along a redirect
    /// elsewhere.
    ///
    /// `Basic USER:PASSWORD` and `Digest USER:PASSWORD` in clear text are not sent as they are: the downloader encodes
    /// the first, and answers the host's challenge with the second.
    public var headers: [(name: String, value: String)]
    /// Requests of a higher priority start first.
    public var priority: Int
    /// The order within a priority: smaller starts first. The caller passes the item's id for FIFO, and its bitwise
    /// complement for LIFO.
    public var rank: Int64
    /// Sent with POST; nil for a GET.
    public var body: [UInt8]?
    /// Validators of the cached source. If either is given, a 304 is ``DownloadOutcome/notModified(_:)``.
    public var etag: String?
    public var lastModified: String?
    /// Accepts any certificate from this URL's servers.
    public var allowInvalidCertificates = false
    /// Observes the body while it arrives.
    public var watch: BodyWatch?
    public var progress: BodyProgress?
    /// The cookie jar to use, by a number of the caller's; nil for none. A jar is kept while it is used, and for some
    /// time after.
    public var cookieJar: Int64?
    /// Refuses responses whose `X-Robots-Tag` has `noai` or `noimageai`.
    public var respectsRobotsTag = false
    /// Checks each host's robots.txt first, at every redirect too (RFC 9309).
    public var respectsRobotsText = false
    /// Whether the same URL has failed before. Then a 503 does not count against its host.
    public var isRepeated = false
    /// Maximum bytes of this body, instead of ``DownloadConfiguration/maxBodyBytes``.
    var maxBodyBytes: Int64?
    /// Whether a longer body is accepted up to the limit, instead of failing.
    var takesBeginning = false
    /// Whether the inspector gets the body.
    public var isInspected = true
    /// Timeouts that replace the configuration's.
    public var timeouts = Timeouts()
    /// Nil accepts any body.
    public var filter: BodyFilter?
    /// The accepted media types in lower case, `image/*` for all of a kind; nil accepts any.
    public var contentTypes: [String]?

    public struct Timeouts: Hashable, Sendable {
        public var silence, connect, total: Duration?

        public init() {}
    }

    /// Whether a response with this content type is accepted.
    public func accepts(contentType: String?) -> Bool {
        guard let contentTypes else { return true }
        guard let named = contentType?.split(separator: ";").first else { return false }
        let name = named.filter { !$0.isWhitespace }.lowercased()
        return contentTypes.contains { $0 == name || ($0.hasSuffix("/*") && name.hasPrefix($0.dropLast())) }
    }
    /// The caller's id for this download, for ``Downloader/update(priority:rank:for:)``.
    public var id: Int64?
    /// The item's present priority and rank, read when the request is queued, since they may have changed. Must not
    /// call the downloader.
    public var currentPosition: (@Sendable () -> (priority: Int, rank: Int64)?)?

    public init(
        url: String,
        headers: [(name: String, value: String)] = [],
        priority: Int = 0,
        rank: Int64 = 0,
        etag: String? = nil,
        lastModified: String? = nil,
        id: Int64? = nil,
    ) {
        self.url = url
        self.headers = headers
        self.priority = priority
        self.rank = rank
        self.etag = etag
        self.lastModified = lastModified
        self.id = id
    }

    var hasValidators: Bool { etag != nil || lastModified != nil }
}
