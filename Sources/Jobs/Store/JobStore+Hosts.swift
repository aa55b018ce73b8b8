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
        max(0, min(notBefore - now, notBefore - setAt))
    }
}

/// What a worker has in hand for a host.
public struct HostLoad: Hashable, Sendable {
    public let host: String
    public let running: Int
    public let waiting: Int
    /// Requests a second, lately.
    public let rate: Double

    public init(host: String, running: Int, waiting: Int, rate: Double) {
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

    enum CodingKeys: String, CodingKey {
        case host, running, waiting, rate, failures, reason, width
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
                sql: "SELECT * FROM hosts WHERE not_before > ? OR width IS NOT NULL OR parks > 0")
            return try Row.fetchAll(statement, arguments: [now]).map(memory)
        }
    }

    /// Writes down what a worker has learnt of hosts, and what it has in hand for them.
    public func save(hosts: [HostMemory], load: [HostLoad]?, worker: Int64) async throws(JobsError) {
        try await write { db in
            for host in hosts { try Self.save(host, in: db) }
            guard let load else { return }
            try db.execute(sql: "DELETE FROM host_load WHERE worker = ?", arguments: [worker])
            let insert = try db.cachedStatement(
                sql: "INSERT INTO host_load (worker, host, running, waiting, rate) VALUES (?, ?, ?, ?, ?)")
            for host in load {
                try insert.execute(arguments: [worker, host.host, host.running, host.waiting, host.rate])
            }
        }
    }

    static func save(_ host: HostMemory, in db: Database) throws {
        guard !host.host.isEmpty else { return }
        try db.cachedStatement(
            sql: """
                INSERT INTO hosts (host, not_before, set_at, reason, width, parks) VALUES (?, ?, ?, ?, ?, ?)
                ON CONFLICT (host) DO UPDATE SET width = excluded.width, parks = excluded.parks,
                    set_at = iif(excluded.not_before > not_before, excluded.set_at, set_at),
                    reason = iif(excluded.not_before > not_before, excluded.reason, reason),
                    not_before = max(not_before, excluded.not_before)
                """
        ).execute(arguments: [host.host, host.notBefore, host.setAt, host.reason, host.width, host.parks])
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
            for row in try Row.fetchAll(db, sql: "SELECT * FROM host_load") where living.contains(row["worker"]) {
                found[row["host"], default: HostTally()].add(load: row)
            }
            for row in try Row.fetchAll(
                db,
                sql: """
                    SELECT waits_for AS host, count(*) AS count FROM items
                    WHERE state = 'delayed' AND waits_for IS NOT NULL GROUP BY waits_for
                    """)
            {
                found[row["host"], default: HostTally()].waiting += row["count"] as Int
            }
            for row in try Row.fetchAll(db, sql: "SELECT * FROM hosts") {
                found[row["host"], default: HostTally()].memory = memory(row)
            }
            for row in try Row.fetchAll(db, sql: "SELECT host, class, count FROM host_failures") {
                found[row["host"], default: HostTally()].failures[row["class"]] = row["count"]
            }
            return found.map { $1.status(of: $0, left: $1.memory?.remaining(at: steady) ?? 0, now: reading.wall) }
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

    mutating func add(load row: Row) {
        running += row["running"] as Int
        waiting += row["waiting"] as Int
        rate += row["rate"] as Double
    }

    /// - Parameters:
    ///   - left: for how long it is left alone yet.
    ///   - now: by the machine's clock, which people go by.
    func status(of host: String, left: Int64, now: Int64) -> HostStatus {
        HostStatus(
            host: host, running: running, waiting: waiting, rate: rate, failures: failures,
            notBefore: left > 0 ? now + left : nil, reason: left > 0 ? memory?.reason : nil, width: memory?.width)
    }
}

private func memory(_ row: Row) -> HostMemory {
    let notBefore: Int64 = row["not_before"]
    let setAt: Int64? = row["set_at"]
    return HostMemory(
        host: row["host"], notBefore: notBefore, setAt: setAt ?? notBefore - 3_600_000, reason: row["reason"],
        width: row["width"], parks: row["parks"])
}
