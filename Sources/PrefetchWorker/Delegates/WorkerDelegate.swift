public import Jobs

/// A program's say in what is fetched and how. Every call has an answer of its own when it isn't implemented: the one that
/// changes nothing. What a call throws ends the item with class `delegate`.
///
/// Calls come from any thread, many at once, and hold up one item each.
public protocol WorkerDelegate: Sendable {
    /// Which calls are worth making.
    var hooks: Set<DelegateHook> { get }

    /// Whether a URL may be downloaded; asked after the cache and the blacklist. A no ends the item as `denied`.
    func allows(_ url: String, job: JobID) async throws -> Bool
    /// What a URL is looked up by, instead of itself; nil for the URL.
    func cacheKey(of url: String, job: JobID) async throws -> String?
    /// The request that is made.
    func request(_ request: DelegatedRequest, job: JobID) async throws -> DelegatedRequest
    /// The status that a response counts as; 200 to 299 accepts its body.
    func status(of response: DelegatedResponse, job: JobID) async throws -> Int
    /// What is stored instead of the bytes that came; nil for those.
    func bytes(_ bytes: [UInt8], of url: String, job: JobID) async throws -> [UInt8]?
    /// Whether a URL that failed is listed, and whether one that is listed is left alone; nil leaves it to the class.
    func blacklists(_ url: String, for failure: FailureClass) async throws -> Bool?
}

public enum DelegateHook: String, Sendable, Hashable, CaseIterable {
    case allow, request, response
    /// Whoever wants it gets bodies that nothing is known of yet: none is refused by its first bytes.
    case bytes
    case blacklist
    case cacheKey = "cache-key"
}

public struct DelegatedRequest: Sendable, Hashable, Codable {
    public var url: String
    public var headers: [String: String]
    /// Whether all of ``headers`` go to ``url``, whoever that is. If not, an answer with another scheme, host or port than the
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
    public func allows(_ url: String, job: JobID) async throws -> Bool { true }
    public func cacheKey(of url: String, job: JobID) async throws -> String? { nil }
    public func request(_ request: DelegatedRequest, job: JobID) async throws -> DelegatedRequest { request }
    public func status(of response: DelegatedResponse, job: JobID) async throws -> Int { response.status }
    public func bytes(_ bytes: [UInt8], of url: String, job: JobID) async throws -> [UInt8]? { nil }
    public func blacklists(_ url: String, for failure: FailureClass) async throws -> Bool? { nil }
}
