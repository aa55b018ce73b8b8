public import Core
public import Jobs

/// Hooks by which a program decides what is fetched and how. Every call has an answer of its own when it isn't implemented: the one that
/// changes nothing. An error that a call throws ends the item with class `delegate`.
///
/// Calls come from any thread, many at once, and hold up one item each.
public protocol WorkerDelegate: Sendable {
    /// Which calls are worth making.
    var hooks: Set<DelegateHook> { get }

    /// How an item is handled; asked first.
    func settings(_ settings: ItemSettings, of url: String, item: DelegatedItem) async throws -> ItemSettings
    /// Whether a URL may be downloaded; asked after the cache and the blacklist. A no ends the item as `denied`.
    func allows(_ url: String, item: DelegatedItem) async throws -> Bool
    /// The cache key of a URL; nil for the URL itself.
    func cacheKey(of url: String, item: DelegatedItem) async throws -> String?
    /// The request that is made.
    func request(_ request: DelegatedRequest, item: DelegatedItem) async throws -> DelegatedRequest
    /// The status that a response counts as; 200 to 299 accepts its body.
    func status(of response: DelegatedResponse, item: DelegatedItem) async throws -> Int
    /// The bytes to store instead of the downloaded ones; nil for those.
    func bytes(_ bytes: [UInt8], of url: String, item: DelegatedItem) async throws -> [UInt8]?
    /// Whether a URL that failed is listed, and whether one that is listed is left alone; nil leaves it to the class.
    func blacklists(_ url: String, for failure: FailureClass) async throws -> Bool?
}

public enum DelegateHook: String, Sendable, Hashable, CaseIterable {
    case allow, options, request, response
    /// With this hook no body is refused by its first bytes: the delegate may turn it into an image.
    case bytes
    case blacklist
    case cacheKey = "cache-key"
}

/// The item that a hook is asked about.
public struct DelegatedItem: Sendable, Hashable {
    public let id: Int64
    public let job: JobID
    /// A JSON object in one line, as the item was given it in `items.meta`.
    public let meta: String?
}

/// How one item is handled: as its job says, and its own columns.
public struct ItemSettings: Sendable, Hashable, Codable {
    /// As in `jobs.variants`; nil for the original only.
    public var variants: String?
    /// As in `jobs.options`.
    public var options: String?
    public var headers: [String: String]
    /// From -100 to 100. It counts among the items that wait for their downloads.
    public var priority: Int

    public init(variants: String?, options: String?, headers: [String: String], priority: Int) {
        (self.variants, self.options, self.headers, self.priority) = (variants, options, headers, priority)
    }
}

public struct DelegatedRequest: Sendable, Hashable, Codable {
    public var url: String
    public var headers: [String: String]
    /// Whether all of ``headers`` go to ``url``, even on another host. If not, an answer with another scheme, host or port than the
    /// question's takes along only those that it adds or changes: the job's own may be secrets of the server it named.
    public var keepsHeaders = false

    public init(url: String, headers: [String: String]) {
        self.url = url
        self.headers = headers
    }
}

public struct DelegatedResponse: Sendable, Hashable, Codable {
    public let url: String
    /// Where redirects ended.
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
