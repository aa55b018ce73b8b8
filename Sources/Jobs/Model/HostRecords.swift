public import Core
internal import GRDB

/// A host as workers remember it from one run to the next.
public struct HostMemory: Hashable, Sendable {
    public var host: String
    /// Nothing is asked of it before; 0 for a host that may be asked.
    public var notBefore: SteadyTime
    /// When that was written down.
    public var setAt: SteadyTime
    /// A word: `asked` or `parked`.
    public var reason: String?
    /// Transfers that may run at once, where that is fewer than the limit.
    public var width: Double?
    /// How often it was parked without an answer since.
    public var circuitOpenCount: Int
    /// Its latest failures, where it can't be reached.
    public var silence: Silence?
    /// Whether it is known to have answered at some time.
    public var hasAnswered = false

    /// A host that fails.
    public struct Silence: Hashable, Sendable {
        public var since: SteadyTime
        public var last: SteadyTime
        /// When what waits for it ends; nil for one that has answered before.
        public var givesUpAt: SteadyTime?
        public var failure: FailureClass
        public var message: String

        public init(
            since: SteadyTime, last: SteadyTime, givesUpAt: SteadyTime?, failure: FailureClass, message: String,
        ) {
            self.since = since
            self.last = last
            self.givesUpAt = givesUpAt
            self.failure = failure
            self.message = message
        }
    }

    public init(
        host: String, notBefore: SteadyTime = SteadyTime(milliseconds: 0), setAt: SteadyTime, reason: String? = nil,
        width: Double? = nil,
        circuitOpenCount: Int = 0,
    ) {
        self.host = host
        self.notBefore = notBefore
        self.setAt = setAt
        self.reason = reason
        self.width = width
        self.circuitOpenCount = circuitOpenCount
    }

    /// Milliseconds until it may be asked again. Never more than the origin asked for, even after the clock was set.
    public func remaining(at now: SteadyTime) -> Int64 {
        // Also where a person has typed a later time into the table.
        max(0, min(notBefore - now, notBefore - setAt, HostMemory.longestDelay))
    }

    /// The longest that an item can have been put off for, in milliseconds: `Retry-After`'s hour, and some.
    static let longestDelay: Int64 = 3_900_000
}

/// A worker's requests to a host.
public struct HostLoad: Hashable, Sendable {
    public let host: String
    public let running: Int
    public let waiting: Int
    /// Requests a second, lately.
    public let rate: Double
    /// Why those wait, in a sentence; nil where nothing holds the host back.
    public let reason: String?
    /// Until when; nil where that is unknown.
    public let until: SteadyTime?

    public init(
        host: String, running: Int, waiting: Int, rate: Double, reason: String? = nil, until: SteadyTime? = nil,
    ) {
        self.reason = reason
        self.until = until
        self.host = host
        self.running = running
        self.waiting = waiting
        self.rate = rate
    }
}

/// A host as `worker hosts` shows it, over all workers that live.
public struct HostStatus: Hashable, Sendable, Codable {
    public let host: String
    public let running: Int
    /// In the workers' hands and as `delayed` items.
    public let waiting: Int
    public let rate: Double
    /// How often each class of failure was met.
    public let failures: [String: Int]
    /// Nil where it may be asked.
    public let notBefore: WallTime?
    /// Why not: `asked` by the origin, or `parked` since it can't be reached.
    public let reason: String?
    /// Transfers that may run at once, where back-off has made that fewer than the limit.
    public let width: Double?
    /// Why requests to it wait, in a sentence; nil where nothing holds it back.
    public let why: String?
    /// Until when; nil where that is unknown.
    public let until: WallTime?

    enum CodingKeys: String, CodingKey {
        case host, running, waiting, rate, failures, reason, width, why, until
        case notBefore = "not_before"
    }
}

extension HostStatus {
    /// Why a host is left alone, in words.
    ///
    /// - Parameter reason: `asked` or `parked`.
    public static func sentence(reason: String, host: String) -> String {
        reason == "parked"
            ? "\(host) could not be reached several times in a row, and is left alone."
            : "\(host) asked to be left alone for a while."
    }
}

/// Limits that were set in the database; for the others workers use those that they were started with.
public struct LimitsRecord: Hashable, Sendable, Codable {
    /// `*` for the worker as a whole, and for hosts without a row of their own.
    public var host: String
    public var concurrency: Int?
    public var perHost: Int?
    /// Requests a second.
    public var rate: Double?
    public var burst: Int?

    public static let everyHost = "*"

    public init(
        host: String, concurrency: Int? = nil, perHost: Int? = nil, rate: Double? = nil, burst: Int? = nil,
    ) {
        self.host = host
        self.concurrency = concurrency
        self.perHost = perHost
        self.rate = rate
        self.burst = burst
    }

    enum CodingKeys: String, CodingKey {
        case host, concurrency, rate, burst
        case perHost = "per_host"
    }
}

/// An item that waits in a worker's hands, for that host.
public struct HeldItem: Hashable, Sendable {
    public let item: Int64
    public let host: String

    public init(item: Int64, host: String) {
        self.item = item
        self.host = host
    }
}
