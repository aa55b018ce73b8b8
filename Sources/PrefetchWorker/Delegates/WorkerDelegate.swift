public import Core
public import Jobs

/// Hooks by which a program decides which URLs are fetched, and how. Each call has a default implementation that
/// changes nothing. An error that a call throws ends the item with class `delegate`.
///
/// Calls come from any thread, many at once; each delays one item.
public protocol WorkerDelegate: Sendable {
    /// The implemented hooks; the worker calls no others.
    var hooks: Set<DelegateHook> { get }

    /// The settings of an item; called first.
    func settings(_ settings: ItemSettings, of url: String, item: DelegatedItem) async throws -> ItemSettings
    /// Whether a URL may be downloaded; called after the cache and the blacklist were checked. False ends the item as
    /// `denied`.
    func allows(_ url: String, item: DelegatedItem) async throws -> Bool
    /// The cache key of a URL; nil for the URL itself.
    func cacheKey(of url: String, item: DelegatedItem) async throws -> String?
    /// The request to send.
    func request(_ request: DelegatedRequest, item: DelegatedItem) async throws -> DelegatedRequest
    /// The status to use for a response; 200 to 299 accepts its body.
    func status(of response: DelegatedResponse, item: DelegatedItem) async throws -> Int
    /// The bytes to store instead of the downloaded bytes; nil stores the downloaded bytes.
    func bytes(_ bytes: [UInt8], of url: String, item: DelegatedItem) async throws -> [UInt8]?
    /// Whether a failed URL goes on the blacklist, and whether a listed URL is skipped; nil leaves it to the class.
    func blacklists(_ url: String, for failure: FailureClass) async throws -> Bool?
}

public enum DelegateHook: String, Sendable, Hashable, CaseIterable {
    case allow, options, request, response
    /// With this hook the worker refuses no body by its first bytes: the delegate may turn it into an image.
    case bytes
    case blacklist
    case cacheKey = "cache-key"
}

/// The item that a hook is called for.
public struct DelegatedItem: Sendable, Hashable {
    public let id: Int64
    public let job: JobID
    /// A JSON object in one line, from `items.meta`.
    public let meta: String?
}

/// The settings of one item: its job's, and those of its own columns.
public struct ItemSettings: Sendable, Hashable, Codable {
    /// As in `jobs.variants`; nil for the original only.
    public var variants: String?
    /// As in `jobs.options`.
    public var options: String?
    public var headers: [String: String]
    /// From -100 to 100. It applies to the order of waiting downloads.
    public var priority: Int

    public init(variants: String?, options: String?, headers: [String: String], priority: Int) {
        (self.variants, self.options, self.headers, self.priority) = (variants, options, headers, priority)
    }
}

public struct DelegatedRequest: Sendable, Hashable, Codable {
    public var url: String
    public var headers: [String: String]
    /// Whether all of ``headers`` are sent to ``url``, even on another host. If not, and if the delegate has
    /// changed the scheme, host or port, only headers that the delegate adds or changes are sent: the job's own may be
    /// secrets for the original server.
    public var keepsHeaders = false

    public init(url: String, headers: [String: String]) {
        self.url = url
        self.headers = headers
    }
}

public struct DelegatedResponse: Sendable, Hashable, Codable {
    public let url: String
    /// The URL at the end of all redirects.
    public let finalURL: String
    public let status: Int
    public let contentType: String?
    public let etag: String?
    public let lastModified: String?

    enum CodingKeys: String, CodingKey {
        case url, status, etag
        case finalURL = "final_url", contentType = "content_type", lastModified = "last_modified"
    }
}

extension WorkerDelegate {
    public var hooks: Set<DelegateHook> { Set(DelegateHook.allCases) }
    public func settings(
        _ settings: ItemSettings, of url: String, item: DelegatedItem,
    ) async throws -> ItemSettings { settings }
    public func allows(_ url: String, item: DelegatedItem) async throws -> Bool { true }
    public func cacheKey(of url: String, item: DelegatedItem) async throws -> String? { nil }
    public func request(_ request: DelegatedRequest, item: DelegatedItem) async throws -> DelegatedRequest { request }
    public func status(of response: DelegatedResponse, item: DelegatedItem) async throws -> Int { response.status }
    public func bytes(_ bytes: [UInt8], of url: String, item: DelegatedItem) async throws -> [UInt8]? { nil }
    public func blacklists(_ url: String, for failure: FailureClass) async throws -> Bool? { nil }
}
