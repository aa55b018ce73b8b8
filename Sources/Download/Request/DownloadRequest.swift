/// One URL to fetch, and how urgent it is.
public struct DownloadRequest: Sendable {
    /// An absolute http or https URL. A user name and password in it are used for Basic authentication.
    public var url: String
    /// The job's own headers. They go to the scheme, host and port of `url` and never along a redirect elsewhere.
    public var headers: [(name: String, value: String)]
    /// Higher starts first.
    public var priority: Int
    /// The order inside a priority: smaller starts first. The caller encodes FIFO as +age and LIFO as −age.
    public var rank: Int64
    /// Validators of what is cached. With either given, a 304 is ``DownloadOutcome/notModified(_:)``.
    public var etag: String?
    public var lastModified: String?
    /// Accept any certificate from this URL's servers.
    public var allowInvalidCertificates: Bool
    /// Who looks at the body while it arrives.
    public var watch: BodyWatch?
    /// The caller's own name for this download, for ``Downloader/update(priority:rank:for:)``.
    public var id: Int64?

    public init(
        url: String,
        headers: [(name: String, value: String)] = [],
        priority: Int = 0,
        rank: Int64 = 0,
        etag: String? = nil,
        lastModified: String? = nil,
        allowInvalidCertificates: Bool = false,
        id: Int64? = nil,
    ) {
        self.url = url
        self.headers = headers
        self.priority = priority
        self.rank = rank
        self.etag = etag
        self.lastModified = lastModified
        self.allowInvalidCertificates = allowInvalidCertificates
        self.id = id
    }

    var hasValidators: Bool { etag != nil || lastModified != nil }
}
