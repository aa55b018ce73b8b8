public import Core

/// A host's state, which workers keep from one run to the next.
public struct HostMemory: Hashable, Sendable {
    public var host: String
    /// No request is sent before this time; 0 for a host that accepts requests.
    public var notBefore: SteadyTime
    /// When `notBefore` was set.
    public var setAt: SteadyTime
    /// `retry-after` or `circuit-open`.
    public var reason: String?
    /// Concurrent transfers, if fewer than the limit.
    public var width: Double?
    /// How often its circuit opened since its last response.
    public var circuitOpenCount: Int
    /// Its latest failures, if it is unreachable.
    public var silence: Silence?
    /// Whether it has ever responded.
    public var hasAnswered = false

    /// The failures of an unreachable host.
    public struct Silence: Hashable, Sendable {
        public var since: SteadyTime
        public var last: SteadyTime
        /// When its waiting items end; nil for a host that has responded before.
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

    /// Milliseconds until it accepts requests again. Never more than the origin asked for, even after the clock was
    /// set.
    public func remaining(at now: SteadyTime) -> Int64 {
        // The limit also applies if a user has typed a later time into the table.
        max(0, min(notBefore - now, notBefore - setAt, HostMemory.longestDelay))
    }

    /// The longest delay of an item, in milliseconds: the hour of `Retry-After`, and a margin.
    static let longestDelay: Int64 = 3_900_000
}

/// A worker's requests to a host.
public struct HostLoad: Hashable, Sendable {
    public let host: String
    public let running: Int
    public let waiting: Int
    /// Requests per second over the last seconds.
    public let rate: Double
    /// Why the waiting requests wait, in a sentence; nil if no limit holds the host back.
    public let reason: String?
    /// When the wait ends; nil if unknown.
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

/// A host as `worker hosts` shows it, over all live workers.
public struct HostStatus: Hashable, Sendable, Codable {
    public let host: String
    public let running: Int
    /// Items that workers hold for it, and `delayed` items.
    public let waiting: Int
    public let rate: Double
    /// The number of failures of each class.
    public let failures: [String: Int]
    /// Nil if it accepts requests.
    public let notBefore: WallTime?
    /// Why not: `retry-after` if the origin sent that header, `circuit-open` if the host is unreachable.
    public let reason: String?
    /// Concurrent transfers, if back-off has reduced them below the limit.
    public let width: Double?
    /// Why its requests wait, in a sentence; nil if no limit holds it back.
    public let why: String?
    /// When the wait ends; nil if unknown.
    public let until: WallTime?

    enum CodingKeys: String, CodingKey {
        case host, running, waiting, rate, failures, reason, width, why, until
        case notBefore = "not_before"
    }
}

extension HostStatus {
    /// Why a host gets no requests, in words.
    ///
    /// - Parameter reason: `retry-after` or `circuit-open`.
    public static func sentence(reason: String, host: String) -> String {
        reason == "circuit-open"
            ? "\(host) could not be reached several times in a row, and gets no requests for now."
            : "\(host) asked for a pause (Retry-After)."
    }
}

/// Limits that were set in the database; for all others, workers use those with which they were started.
public struct LimitsRecord: Hashable, Sendable, Codable {
    /// `*` for the whole worker, and for hosts without a row of their own.
    public var host: String
    public var concurrency: Int?
    public var perHost: Int?
    /// Requests per second.
    public var rate: Double?
    public var burst: Int?

    // Of the row `*` only. Times in milliseconds.
    public var silenceTimeout, connectTimeout, totalTimeout: Int64?
    /// Maximum tries of an item, including the first.
    public var maxTries: Int?
    /// The upper bound of the first wait between tries.
    public var retryDelay: Int64?
    /// How long a file stays in the cache after its last use; -1 for ever.
    public var cacheMaxAge: Int64?

    public static let everyHost = "*"

    /// A day: no transfer needs more.
    public static let longestTime: Int64 = 86_400_000
    /// An hour: the largest value of ``retryDelay``.
    public static let longestDelay: Int64 = 3_600_000
    /// A thousand years.
    public static let longestAge: Int64 = 31_557_600_000_000

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
        case perHost = "per_host", silenceTimeout = "silence_timeout", connectTimeout = "connect_timeout"
        case totalTimeout = "total_timeout", maxTries = "max_tries", retryDelay = "retry_delay"
        case cacheMaxAge = "cache_max_age"
    }
}

/// An active item that waits in a worker for its host.
public struct HeldItem: Hashable, Sendable {
    public let item: Int64
    public let host: String

    public init(item: Int64, host: String) {
        self.item = item
        self.host = host
    }
}

/// Names for things other than hosts that items wait for, stored where a host's name would be. Each has a space, which
/// no host's name has.
public enum WaitPlace {
    /// The queue waits for the disk of the cache, since all workers pause.
    public static let disk = "the disk of the cache"
    /// Items that were active when workers died.
    static let suspects = "a turn apart from other items"
    static let suspectsReason = "It runs apart from other items, since workers died while processing it."

    /// SQL: why an item that no host holds back waits in the downloader of the worker with this id.
    static func downloaderReason(worker: String) -> String {
        """
        coalesce((SELECT whole.reason FROM host_load AS whole WHERE whole.worker = \(worker)
            AND whole.host = '\(LimitsRecord.everyHost)'), 'All download slots are in use (--concurrency).')
        """
    }

    /// SQL: whether all workers pause.
    static let isPaused = """
        EXISTS (SELECT 1 FROM workers JOIN host_load ON worker = workers.id AND host_load.host = '\(disk)')
            AND NOT EXISTS (SELECT 1 FROM workers WHERE NOT EXISTS
                (SELECT 1 FROM host_load WHERE worker = workers.id AND host_load.host = '\(disk)'))
        """
    /// SQL: why they pause.
    static let pauseReason = "(SELECT max(reason) FROM host_load WHERE host = '\(disk)')"
}
