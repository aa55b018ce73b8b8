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
    /// Items with columns of their own, after those of ``urls``.
    public var items: [NewItem] = []

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

/// An item with columns of its own.
public struct NewItem: Sendable {
    public var url: String
    /// A JSON object of at most 16 KiB, which results and delegates are given.
    public var meta: String?
    /// These three in place of the job's; headers in place of those of the same name.
    public var priority: Int?
    public var variants: String?
    public var headers: [String: String] = [:]
    /// The body has to have this SHA-256, in hexadecimal digits, and this size, or the item fails as `checksum`.
    public var sha256: String?
    public var size: Int64?
    /// At most 16 URLs to ask for, in order, when the one before has failed for good.
    public var fallbacks: [String] = []

    public init(url: String) { self.url = url }
}

/// A job as workers read it to run its items.
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
    /// The one that is asked for now: of an item with fallbacks not always its own.
    public let url: String
    /// The cache key of the URL, also its name on the blacklist.
    public let key: String
    /// Tries that failed before.
    public let attempts: Int
    /// The fencing token: a finish counts only while the item still carries it.
    public let lease: Int64
    /// Workers that died in a row while they held it.
    public let deaths: Int
    public let source: SourceRecord?
    public let blacklisting: BlacklistEntry?
    /// Nil for an item that is like all others of its job.
    public let own: OwnColumns?

    /// The request that was just made for it; nil where none was.
    public let lastTry: TryRecord?

    init(
        id: Int64, job: JobID, url: String, key: String, attempts: Int, lease: Int64, deaths: Int = 0,
        source: SourceRecord?, blacklisting: BlacklistEntry?, own: OwnColumns? = nil, lastTry: TryRecord? = nil,
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
        self.own = own
        self.lastTry = lastTry
    }

    /// The same item, with the request that was just made for it.
    public func tried(_ record: TryRecord) -> ClaimedItem {
        ClaimedItem(
            id: id, job: job, url: url, key: key, attempts: attempts, lease: lease, deaths: deaths,
            source: source, blacklisting: blacklisting, own: own, lastTry: record)
    }

    /// The same item, looked up by another key.
    func looked(upBy key: String, _ source: SourceRecord?, _ blacklisting: BlacklistEntry?) -> ClaimedItem {
        ClaimedItem(
            id: id, job: job, url: url, key: key, attempts: attempts, lease: lease, deaths: deaths,
            source: source, blacklisting: blacklisting, own: own, lastTry: lastTry)
    }

    /// The same item without its cached source, where that isn't what the item is to have.
    public func withAcceptableSource() -> ClaimedItem {
        guard let own, let source, !own.accepts(hash: source.hash, size: source.size) else { return self }
        return looked(upBy: key, nil, blacklisting)
    }
}

/// A group of items claimed in one transaction.
public struct Claim: Sendable {
    public let items: [ClaimedItem]
    public let jobs: [JobID: JobDefinition]
}
