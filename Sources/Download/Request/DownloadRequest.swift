/// One URL to fetch, and how urgent it is.
public struct DownloadRequest: Sendable {
    /// An absolute http or https URL. A user name and password in it are used for Basic authentication.
    public var url: String
    /// The job's own headers. They go to the scheme, host and port of `url` and never along a redirect elsewhere.
    ///
    /// An `Authorization` of `Basic USER:PASSWORD` or `Digest USER:PASSWORD`, in clear text, is not sent as it is: the
    /// first is encoded, the second answers the host's challenge.
    public var headers: [(name: String, value: String)]
    /// Higher starts first.
    public var priority: Int
    /// The order inside a priority: smaller starts first. The caller encodes FIFO as +age and LIFO as −age.
    public var rank: Int64
    /// Validators of the cached source. With either given, a 304 is ``DownloadOutcome/notModified(_:)``.
    public var etag: String?
    public var lastModified: String?
    /// Accept any certificate from this URL's servers.
    public var allowInvalidCertificates = false
    /// Shown the body while it arrives.
    public var watch: BodyWatch?
    /// Whose cookies are sent and kept, by a number of the caller's; nil for none. A jar lives while it is used, and
    /// some time longer.
    public var cookieJar: Int64?
    /// Do not take what `X-Robots-Tag` keeps from machines (`noai`, `noimageai`).
    public var respectsRobotsTag = false
    /// Ask each host's robots.txt first, that of hosts which a redirect leads to as well (RFC 9309).
    public var respectsRobotsText = false
    /// Whether the same URL has failed before, so that its failure says less of its host.
    public var isRepeated = false
    /// Bytes of this body, instead of ``DownloadConfiguration/maxBodyBytes``.
    var maxBodyBytes: Int64?
    /// Whether of a longer body so much is taken, instead of nothing.
    var takesBeginning = false
    /// Whether the body is shown to the inspector.
    public var isInspected = true
    /// These instead of the configuration's.
    public var timeouts = Timeouts()
    /// Nil takes any body.
    public var filter: BodyFilter?
    /// The media types that are taken, in lower case, `image/*` for all of a kind; nil takes any.
    public var contentTypes: [String]?

    public struct Timeouts: Hashable, Sendable {
        public var silence, connect, total: Duration?

        public init() {}
    }

    /// Whether a response may say that it is this.
    public func accepts(contentType: String?) -> Bool {
        guard let contentTypes else { return true }
        guard let named = contentType?.split(separator: ";").first else { return false }
        let name = named.filter { !$0.isWhitespace }.lowercased()
        return contentTypes.contains { $0 == name || ($0.hasSuffix("/*") && name.hasPrefix($0.dropLast())) }
    }
    /// The caller's own name for this download, for ``Downloader/update(priority:rank:for:)``.
    public var id: Int64?
    /// Asked when the request takes its place in the line, since the item may have been re-ranked meanwhile. Must
    /// not call the downloader.
    public var currentPlace: (@Sendable () -> (priority: Int, rank: Int64)?)?

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
