/// A job's number, `jobs.id`.
public typealias JobID = Int64

/// A batch to be enqueued.
public struct NewJob: Sendable {
    public var name: String?
    public var urls: [String]
    public var variants: String?
    public var options: String?
    /// Sent with every request of the job, to the host of the item's own URL only.
    public var headers: [String: String]
    /// −100…100, higher first.
    public var priority: Int
    /// `nil` leaves it to the worker's `--order`.
    public var order: ExecutionOrder?
    /// While a job with the same key is unfinished, another is not accepted.
    public var dedupeKey: String?

    public init(
        name: String? = nil, urls: [String], variants: String? = nil, options: String? = nil,
        headers: [String: String] = [:], priority: Int = 0, order: ExecutionOrder? = nil, dedupeKey: String? = nil,
    ) {
        self.name = name
        self.urls = urls
        self.variants = variants
        self.options = options
        self.headers = headers
        self.priority = priority
        self.order = order
        self.dedupeKey = dedupeKey
    }
}

/// What a worker needs to know of a job to run its items.
public struct JobDefinition: Hashable, Sendable {
    public let id: JobID
    public let variants: String?
    public let options: String?
    public let headers: [String: String]
    public let priority: Int
    public let order: ExecutionOrder
    /// Why it can't be run, where its row passed the database's checks and can't be read all the same.
    public let problem: String?

    public init(
        id: JobID, variants: String?, options: String?, headers: [String: String], priority: Int, order: ExecutionOrder,
        problem: String? = nil,
    ) {
        self.id = id
        self.problem = problem
        self.variants = variants
        self.options = options
        self.headers = headers
        self.priority = priority
        self.order = order
    }
}

/// An item that a worker holds a lease on.
///
/// A class, since it goes from hand to hand: a copy of all that it holds costs more than most that is done with it.
public final class ClaimedItem: Sendable {
    public let id: Int64
    public let job: JobID
    public let url: String
    /// What the URL is looked up by in the cache and on the blacklist.
    public let key: String
    /// Tries that failed before.
    public let attempts: Int
    /// The fencing token: a finish counts only while the item still carries it.
    public let lease: Int64
    /// Workers that died in a row while they held it.
    public let deaths: Int
    public let source: SourceRecord?
    public let blacklisting: BlacklistEntry?

    /// The request that was just made for it; nil where none was.
    public let lastTry: TryRecord?

    init(
        id: Int64, job: JobID, url: String, key: String, attempts: Int, lease: Int64, deaths: Int = 0,
        source: SourceRecord?, blacklisting: BlacklistEntry?, lastTry: TryRecord? = nil,
    ) {
        self.id = id
        self.job = job
        self.url = url
        self.key = key
        self.attempts = attempts
        self.lease = lease
        self.deaths = deaths
        self.source = source
        self.blacklisting = blacklisting
        self.lastTry = lastTry
    }

    /// The same item, with the request that was just made for it.
    public func tried(_ record: TryRecord) -> ClaimedItem {
        ClaimedItem(
            id: id, job: job, url: url, key: key, attempts: attempts, lease: lease, deaths: deaths,
            source: source, blacklisting: blacklisting, lastTry: record)
    }

    /// The same item, looked up by another key.
    func looked(upBy key: String, _ source: SourceRecord?, _ blacklisting: BlacklistEntry?) -> ClaimedItem {
        ClaimedItem(
            id: id, job: job, url: url, key: key, attempts: attempts, lease: lease, deaths: deaths,
            source: source, blacklisting: blacklisting, lastTry: lastTry)
    }
}

/// A group of items claimed in one transaction.
public struct Claim: Sendable {
    public let items: [ClaimedItem]
    public let jobs: [JobID: JobDefinition]
}

/// What is known of the bytes that an origin sent for a URL.
public struct SourceRecord: Hashable, Sendable, Codable {
    public var key: String
    /// SHA-256 of the bytes, lowercase hexadecimal.
    public var hash: String
    public var size: Int64
    /// Whether the bytes themselves are in the cache.
    public var isKept: Bool
    public var finalURL: String?
    public var format: String?
    public var width: Int?
    public var height: Int?
    public var frames: Int?
    public var hasAlpha: Bool?
    /// Whether it was kept without a look at its pixels, which alone tell whether it is whole.
    public var isUnseen: Bool { format != nil && frames == nil }
    /// Whether it can't be decoded to its end, and something was made of it all the same.
    public var isDamaged: Bool { looks?.damage != nil }
    /// What the pixels told; nil until some were decoded.
    public var looks: SourceLooks?
    public var etag: String?
    public var lastModified: String?
    /// What else HTTP said; nil for what was fetched before that was kept.
    public var http: HTTPFacts?
    /// UTC milliseconds.
    public var fetchedAt: Int64

    public init(
        key: String, hash: String, size: Int64, isKept: Bool, finalURL: String? = nil, format: String? = nil,
        width: Int? = nil, height: Int? = nil, frames: Int? = nil, hasAlpha: Bool? = nil,
        looks: SourceLooks? = nil, etag: String? = nil, lastModified: String? = nil, http: HTTPFacts? = nil,
        fetchedAt: Int64,
    ) {
        self.key = key
        self.hash = hash
        self.size = size
        self.isKept = isKept
        self.finalURL = finalURL
        self.format = format
        self.width = width
        self.height = height
        self.frames = frames
        self.hasAlpha = hasAlpha
        self.looks = looks
        self.etag = etag
        self.lastModified = lastModified
        self.http = http
        self.fetchedAt = fetchedAt
    }
}

/// A rendition as the cache index knows it.
public struct VariantRecord: Hashable, Sendable, Codable {
    /// SHA-256 of the source's hash, the canonical spec and the coder versions.
    public let identity: String
    public let source: String
    public let spec: String
    public let coder: String
    public let blob: String
    public let size: Int64
    public let format: String
    public let width: Int
    public let height: Int

    public init(
        identity: String, source: String, spec: String, coder: String, blob: String, size: Int64, format: String,
        width: Int, height: Int,
    ) {
        self.identity = identity
        self.source = source
        self.spec = spec
        self.coder = coder
        self.blob = blob
        self.size = size
        self.format = format
        self.width = width
        self.height = height
    }
}

/// One file that an item ended with: a variant, or the `original`.
public struct RenditionRecord: Hashable, Sendable, Codable {
    public let name: String
    public let blob: String
    public let size: Int64
    public let format: String
    public let width: Int?
    public let height: Int?

    public init(name: String, blob: String, size: Int64, format: String, width: Int?, height: Int?) {
        self.name = name
        self.blob = blob
        self.size = size
        self.format = format
        self.width = width
        self.height = height
    }
}

/// A URL that will not be asked for.
public struct BlacklistEntry: Hashable, Sendable, Codable {
    public internal(set) var url: String
    public let host: String
    public let failure: FailureClass
    public let httpStatus: Int?
    public let message: String?
    public let count: Int
    public let firstAt: Int64
    public let lastAt: Int64
    public let expiresAt: Int64
    /// The setting that has refused it, as `name=value`: the entry holds as long as that is the same.
    public internal(set) var setting: String?
}
