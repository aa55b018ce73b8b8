public import Core

/// A job's number, `jobs.id`.
public typealias JobID = Int64

/// A job to be enqueued.
public struct NewJob: Sendable {
    public var name: String?
    public var urls: [String]
    public var variants: String?
    public var options: String?
    /// Sent with every request of the job, but only to the host of the item's own URL.
    public var headers: [String: String]
    /// −100…100, higher first.
    public var priority: Int
    /// `nil` for the worker's `--order`.
    public var order: ExecutionOrder?
    /// Another job with the same key is refused as long as this one is unfinished.
    public var dedupeKey: String?
    /// Where a notice is sent when the job has ended: an http or https URL, or `command` for the worker's own command.
    public var notify: String?
    /// Items with their own columns, which follow ``urls``.
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

/// An item with its own columns.
public struct NewItem: Sendable {
    public var url: String
    /// A JSON object of at most 16 KiB, which is passed on to results and delegates.
    public var meta: String?
    /// Replace the job's priority and variants; each header replaces the job's header of the same name.
    public var priority: Int?
    public var variants: String?
    public var headers: [String: String] = [:]
    /// The SHA-256 of the body, in hexadecimal digits, and its size. Another body fails as `checksum`.
    public var sha256: String?
    public var size: Int64?
    /// At most 16 URLs, requested in order, each after the one before has failed for good.
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
    /// Whether the priority is an item's own, which changes of the job's priority leave alone.
    public let hasOwnPriority: Bool
    public let order: ExecutionOrder
    /// Why the job can't run, if its row passed the database's checks but is unreadable.
    public let problem: String?

    public init(
        id: JobID, variants: String?, options: String?, headers: [String: String], priority: Int, order: ExecutionOrder,
        problem: String? = nil, hasOwnPriority: Bool = false,
    ) {
        self.id = id
        self.hasOwnPriority = hasOwnPriority
        self.problem = problem
        self.variants = variants
        self.options = options
        self.headers = headers
        self.priority = priority
        self.order = order
    }
}

/// An item on which a worker holds a lease.
///
/// A class, since items are passed on often, and copying the fields would cost more than most of the work.
public final class ClaimedItem: Sendable {
    public let id: Int64
    public let job: JobID
    /// The URL to request now: for an item with fallbacks not always its own.
    public let url: String
    /// The URL's cache key, which is also its key on the blacklist.
    public let key: String
    /// Earlier failed tries.
    public let attempts: Int
    /// The fencing token: a finish counts only while the item still carries it.
    public let lease: Int64
    /// The number of workers in a row that died while they held the item.
    public let deaths: Int
    public let source: SourceRecord?
    public let blacklisting: BlacklistEntry?
    /// Nil if the item has no columns of its own.
    public let own: OwnColumns?

    /// The request that was just made for the item; nil if there was none.
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

    /// The item with the request that was just made.
    public func tried(_ record: TryRecord) -> ClaimedItem {
        ClaimedItem(
            id: id, job: job, url: url, key: key, attempts: attempts, lease: lease, deaths: deaths,
            source: source, blacklisting: blacklisting, own: own, lastTry: record)
    }

    /// The item, looked up by another key.
    func looked(upBy key: String, _ source: SourceRecord?, _ blacklisting: BlacklistEntry?) -> ClaimedItem {
        ClaimedItem(
            id: id, job: job, url: url, key: key, attempts: attempts, lease: lease, deaths: deaths,
            source: source, blacklisting: blacklisting, own: own, lastTry: lastTry)
    }

    /// The item without its cached source, if the source's hash or size differs from the required one.
    public func withAcceptableSource() -> ClaimedItem {
        guard let own, let source, !own.accepts(hash: source.hash, size: source.size) else { return self }
        return looked(upBy: key, nil, blacklisting)
    }
}

/// A group of items claimed in one transaction.
public struct Claim: Sendable {
    public let items: [ClaimedItem]
    public let jobs: [JobID: JobDefinition]
    /// Items that failed, since the database refused their claim.
    public var refused: [RefusedItem] = []

    static let nothing = Claim(items: [], jobs: [:])
}

/// An item that failed, since the database refused its claim.
public struct RefusedItem: Sendable {
    public let item: Int64
    public let job: JobID
    public let failure: Failure
}
