internal import GRDB

/// What is remembered of a host from one worker to the next.
public struct HostMemory: Hashable, Sendable {
    public var host: String
    /// Nothing is asked of it before; milliseconds by `cacheTime`, 0 for a host that may be asked.
    public var notBefore: Int64
    /// When that was written down, by the same clock.
    public var setAt: Int64
    /// A word: `asked` or `parked`.
    public var reason: String?
    /// Transfers that may run at once, where that is fewer than the limit.
    public var width: Double?
    /// How often it was parked without an answer since.
    public var parks: Int
    /// What it fails with, where it can't be reached.
    public var silence: Silence?
    /// Whether it is known to have answered at some time.
    public var hasAnswered = false

    /// A host that fails. Times by `cacheTime`.
    public struct Silence: Hashable, Sendable {
        public var since: Int64
        public var last: Int64
        /// When what waits for it ends; nil for one that has answered before.
        public var givesUpAt: Int64?
        public var failure: FailureClass
        public var message: String

        public init(since: Int64, last: Int64, givesUpAt: Int64?, failure: FailureClass, message: String) {
            self.since = since
            self.last = last
            self.givesUpAt = givesUpAt
            self.failure = failure
            self.message = message
        }
    }

    public init(
        host: String, notBefore: Int64 = 0, setAt: Int64, reason: String? = nil, width: Double? = nil, parks: Int = 0,
    ) {
        self.host = host
        self.notBefore = notBefore
        self.setAt = setAt
        self.reason = reason
        self.width = width
        self.parks = parks
    }

    /// Milliseconds for which it is left alone yet. Never more than was asked for, whatever became of the clock.
    ///
    /// - Parameter now: by `cacheTime`.
    public func remaining(at now: Int64) -> Int64 {
        // Whatever somebody has typed into the table, nothing asks for more than that.
        max(0, min(notBefore - now, notBefore - setAt, JobStore.longestDelay))
    }

    /// A time as it can be reckoned with: within 100,000 years.
    static func clamped(_ time: Int64) -> Int64 { min(max(time, -1 << 52), 1 << 52) }
}

/// What a worker has in hand for a host.
public struct HostLoad: Hashable, Sendable {
    public let host: String
    public let running: Int
    public let waiting: Int
    /// Requests a second, lately.
    public let rate: Double
    /// Why those wait, in a sentence; nil where nothing holds the host back.
    public let reason: String?
    /// Until when, by `cacheTime`; nil where nobody knows.
    public let until: Int64?

    public init(
        host: String, running: Int, waiting: Int, rate: Double, reason: String? = nil, until: Int64? = nil,
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
    /// UTC milliseconds; nil where it may be asked.
    public let notBefore: Int64?
    /// Why not: `asked` by the origin, or `parked` since it can't be reached.
    public let reason: String?
    /// Transfers that may run at once, where back-off has made that fewer than the limit.
    public let width: Double?
    /// Why requests to it wait, in a sentence; nil where nothing holds it back.
    public let why: String?
    /// Until when; UTC milliseconds, nil where nobody knows.
    public let until: Int64?

    enum CodingKeys: String, CodingKey {
        case host, running, waiting, rate, failures, reason, width, why, until
        case notBefore = "not_before"
    }
}

extension JobStore {
    /// How long a host is remembered after its wait is over, in milliseconds.
    static let hostMemory: Int64 = 3_600_000

    public func hostMemories() async throws(JobsError) -> [HostMemory] {
        let reading = reading
        return try await read { db in
            let now = try Self.cacheTime(reading, in: db)
            let statement = try db.cachedStatement(
                sql: """
                    SELECT * FROM hosts WHERE not_before > ? OR width IS NOT NULL OR parks > 0 OR failed_at IS NOT NULL
                        OR answered > 0
                    """)
            return try Row.fetchAll(statement, arguments: [now]).map(memory)
        }
    }

    /// Writes down what a worker has learnt of hosts.
    public func save(hosts: [HostMemory]) async throws(JobsError) {
        guard !hosts.isEmpty else { return }
        try await write { db in
            for host in hosts { try Self.save(host, in: db) }
        }
    }

    /// An origin asked to be left alone: written at once, since whoever works next would ask it again.
    ///
    /// - Parameter time: in UTC milliseconds, by the machine's clock.
    public func block(host: String, until time: Int64) async throws(JobsError) {
        let reading = reading
        try await write { db in
            let steady = try Self.cacheTime(reading, in: db)
            try Self.block(host: host, until: time - (reading.wall - steady), now: steady, in: db)
        }
    }

    static func save(_ host: HostMemory, in db: Database) throws {
        guard !host.host.isEmpty else { return }
        try db.cachedStatement(
            sql: """
                INSERT INTO hosts (host, not_before, set_at, reason, width, parks, failing_since, failed_at, gives_up_at,
                    failure_class, failure_message, answered) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (host) DO UPDATE SET width = excluded.width, parks = excluded.parks,
                    failing_since = excluded.failing_since, failed_at = excluded.failed_at,
                    gives_up_at = excluded.gives_up_at, failure_class = excluded.failure_class,
                    failure_message = excluded.failure_message, answered = max(answered, excluded.answered),
                    set_at = iif(excluded.not_before > not_before, excluded.set_at, set_at),
                    reason = iif(excluded.not_before > not_before, excluded.reason, reason),
                    not_before = max(not_before, excluded.not_before)
                """
        ).execute(arguments: [
            host.host, host.notBefore, host.setAt, host.reason, host.width, host.parks, host.silence?.since,
            host.silence?.last, host.silence?.givesUpAt, host.silence?.failure.rawValue, host.silence?.message,
            host.hasAnswered,
        ])
    }

    /// An origin asked to be left alone.
    static func block(host: String, until time: Int64, now: Int64, in db: Database) throws {
        guard !host.isEmpty else { return }
        try db.cachedStatement(
            sql: """
                INSERT INTO hosts (host, not_before, set_at, reason) VALUES (?, ?, ?, 'asked')
                ON CONFLICT (host) DO UPDATE SET set_at = excluded.set_at, reason = excluded.reason,
                    not_before = excluded.not_before WHERE excluded.not_before > not_before
                """
        ).execute(arguments: [host, time, now])
    }

    static func count(_ failures: [FailureCount: Int], now: Int64, in db: Database) throws {
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO host_failures (host, class, count, last_at) VALUES (?, ?, ?, ?)
                ON CONFLICT (host, class) DO UPDATE SET count = count + excluded.count, last_at = excluded.last_at
                """)
        for (failure, count) in failures where !failure.host.isEmpty {
            try statement.execute(arguments: [failure.host, failure.failure.rawValue, count, now])
        }
    }

    struct FailureCount: Hashable {
        let host: String
        let failure: FailureClass
    }

    /// The hosts that anything is known of, the busiest first.
    public func hostStatuses(limit: Int = 1_000) async throws(JobsError) -> [HostStatus] {
        let reading = reading
        let living = Set(try await workers().map(\.id))
        return try await read { db in
            let steady = try Self.cacheTime(reading, in: db)
            var found: [String: HostTally] = [:]
            let all = LimitsRecord.everyHost
            for row in try Row.fetchAll(db, sql: "SELECT * FROM host_load WHERE host <> ?", arguments: [all])
            where living.contains(row.number("worker") ?? 0) {
                found[row.text("host") ?? "", default: HostTally()].add(load: row)
            }
            for row in try Row.fetchAll(
                db,
                sql: """
                    SELECT waits_for AS host, count(*) AS count FROM items
                    WHERE state = 'delayed' AND waits_for IS NOT NULL GROUP BY waits_for
                    """)
            {
                found[row.text("host") ?? "", default: HostTally()].waiting += row.count("count")
            }
            for row in try Row.fetchAll(db, sql: "SELECT * FROM hosts") {
                found[row.text("host") ?? "", default: HostTally()].memory = memory(row)
            }
            for row in try Row.fetchAll(db, sql: "SELECT host, class, count FROM host_failures") {
                found[row.text("host") ?? "", default: HostTally()].failures[row.text("class") ?? ""] = row.count(
                    "count")
            }
            return found.map { $1.status(of: $0, steady: steady, now: reading.wall) }
                .sorted(by: Self.isBusier).prefix(limit).map { $0 }
        }
    }

    private static func isBusier(_ a: HostStatus, _ b: HostStatus) -> Bool {
        (b.running, b.waiting, a.host) < (a.running, a.waiting, b.host)
    }
}

private struct HostTally {
    var running = 0
    var waiting = 0
    var rate = 0.0
    var failures: [String: Int] = [:]
    var memory: HostMemory?
    var wait: (reason: String, until: Int64?)?

    mutating func add(load row: Row) {
        running += min(row.count("running"), 1_000_000)
        waiting += min(row.count("waiting"), 1_000_000)
        rate += row.real("rate") ?? 0
        if let reason = row.text("reason") { wait = (reason, row.number("until").map(HostMemory.clamped)) }
    }

    /// - Parameters:
    ///   - steady: by `cacheTime`.
    ///   - now: by the machine's clock, which people go by.
    func status(of host: String, steady: Int64, now: Int64) -> HostStatus {
        let left = memory?.remaining(at: steady) ?? 0
        let reason = left > 0 ? memory?.reason : nil
        let why = wait?.reason ?? reason.map { HostStatus.sentence(reason: $0, host: host) }
        let until = wait?.until.map { $0 - steady + now } ?? (wait == nil && left > 0 ? now + left : nil)
        return HostStatus(
            host: host, running: running, waiting: waiting, rate: rate, failures: failures,
            notBefore: left > 0 ? now + left : nil, reason: reason, width: memory?.width, why: why, until: until)
    }
}

private func memory(_ row: Row) -> HostMemory {
    let notBefore = HostMemory.clamped(row.number("not_before") ?? 0)
    var memory = HostMemory(
        host: row.text("host") ?? "", notBefore: notBefore,
        setAt: HostMemory.clamped(row.number("set_at") ?? notBefore - 3_600_000), reason: row.text("reason"),
        width: row.real("width"), parks: min(row.count("parks"), 20))
    memory.hasAnswered = row.count("answered") > 0
    let failure = row.text("failure_class").flatMap(FailureClass.init(rawValue:))
    if let since = row.number("failing_since"), let last = row.number("failed_at"), let failure {
        memory.silence = HostMemory.Silence(
            since: HostMemory.clamped(since), last: HostMemory.clamped(last),
            givesUpAt: row.number("gives_up_at").map(HostMemory.clamped), failure: failure,
            message: row.text("failure_message") ?? "")
    }
    return memory
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
