public import Core

/// The hosts' state that workers share, and the limits that users set while workers run.
public struct HostBook: Sendable {
    let gate: DatabaseGate

    /// How long a host is kept after its wait is over, in milliseconds.
    static let memoryDuration: Int64 = 3_600_000

    public func memories() async throws(JobsError) -> [HostMemory] {
        let reading = gate.reading
        return try await gate.read { db in
            let now = try reading.time(in: db)
            return try db.rows(
                """
                SELECT * FROM hosts WHERE not_before > ? OR width IS NOT NULL OR circuit_opens > 0 OR failed_at IS NOT NULL
                    OR answered > 0
                """, [now.milliseconds]
            ).map(memory)
        }
    }

    /// Saves a worker's hosts.
    public func save(hosts: [HostMemory]) async throws(JobsError) {
        guard !hosts.isEmpty else { return }
        try await gate.write { db in try Self.save(hosts, in: db) }
    }

    /// Blocks a host whose origin asked for a pause. Saved at once, so that other workers stop their requests, too.
    public func block(host: String, until time: WallTime) async throws(JobsError) {
        let reading = gate.reading
        try await gate.write { db in
            let now = try reading.moment(in: db)
            try Self.block([(host, now.steady(time))], now: now.steady, in: db)
        }
    }

    private static func save(_ hosts: [HostMemory], in db: Connection) throws {
        let insert = try RowStatement(
            """
            INSERT INTO hosts (host, not_before, set_at, reason, width, circuit_opens, failing_since, failed_at, gives_up_at,
                failure_class, failure_message, answered) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (host) DO UPDATE SET width = excluded.width, circuit_opens = excluded.circuit_opens,
                failing_since = excluded.failing_since, failed_at = excluded.failed_at,
                gives_up_at = excluded.gives_up_at, failure_class = excluded.failure_class,
                failure_message = excluded.failure_message, answered = max(hosts.answered, excluded.answered),
                set_at = iif(excluded.not_before > hosts.not_before, excluded.set_at, hosts.set_at),
                reason = iif(excluded.not_before > hosts.not_before, excluded.reason, hosts.reason),
                not_before = max(hosts.not_before, excluded.not_before)
            """, in: db)
        try insert.runEach(hosts.filter { !$0.host.isEmpty }) { host in
            (
                host.host, host.notBefore, host.setAt, host.reason, host.width, host.circuitOpenCount,
                host.silence?.since, host.silence?.last, host.silence?.givesUpAt, host.silence?.failure.rawValue,
                host.silence?.message, host.hasAnswered
            )
        }
    }

    /// Blocks hosts whose origins asked for a pause.
    static func block(_ hosts: [(host: String, until: SteadyTime)], now: SteadyTime, in db: Connection) throws {
        guard !hosts.isEmpty else { return }
        let block = try RowStatement(
            """
            INSERT INTO hosts (host, not_before, set_at, reason) VALUES (?, ?, ?, 'retry-after')
            ON CONFLICT (host) DO UPDATE SET set_at = excluded.set_at, reason = excluded.reason,
                not_before = excluded.not_before WHERE excluded.not_before > hosts.not_before
            """, in: db)
        try block.runEach(hosts.filter { !$0.host.isEmpty }) { ($0.host, $0.until, now) }
    }

    static func count(_ failures: [FailureCount: Int], now: WallTime, in db: Connection) throws {
        guard !failures.isEmpty else { return }
        let statement = try RowStatement(
            """
            INSERT INTO host_failures (host, class, count, last_at) VALUES (?, ?, ?, ?)
            ON CONFLICT (host, class) DO UPDATE SET count = host_failures.count + excluded.count, last_at = excluded.last_at
            """, in: db)
        let sorted = failures.sorted { ($0.key.host, $0.key.failure.rawValue) < ($1.key.host, $1.key.failure.rawValue) }
        try statement.runEach(sorted.filter { !$0.key.host.isEmpty }) {
            ($0.key.host, $0.key.failure.rawValue, $0.value, now)
        }
    }

    struct FailureCount: Hashable {
        let host: String
        let failure: FailureClass
    }

    /// All known hosts, the busiest first.
    public func statuses(limit: Int = 1_000) async throws(JobsError) -> [HostStatus] {
        let reading = gate.reading
        return try await gate.read { [liveness = gate.liveness] db in
            let now = try reading.moment(in: db)
            let workers = try db.integers("SELECT id FROM workers")
            let living = liveness.living(workers)
            var found: [String: HostTally] = [:]
            let all = LimitsRecord.everyHost
            for row in try db.rows(
                "SELECT *, \(WaitPlace.downloaderReason(worker: "host_load.worker")) AS otherwise FROM host_load WHERE host <> ?",
                [all])
            where living.contains(row.number("worker") ?? 0) {
                found[row.text("host") ?? "", default: HostTally()].add(load: row)
            }
            for row in try db.rows(
                """
                SELECT waits_for AS host, count(*) AS count FROM items
                WHERE state = 'delayed' AND waits_for IS NOT NULL GROUP BY waits_for
                """)
            {
                found[row.text("host") ?? "", default: HostTally()].waiting += row.count("count")
            }
            for row in try db.rows("SELECT * FROM hosts") {
                found[row.text("host") ?? "", default: HostTally()].memory = memory(row)
            }
            for row in try db.rows("SELECT host, class, count FROM host_failures") {
                found[row.text("host") ?? "", default: HostTally()].failures[row.text("class") ?? ""] = row.count(
                    "count")
            }
            for wait in try Self.queuedWaits(nil, in: db) {
                found[wait.host] = HostTally(waiting: wait.items, wait: (wait.reason, nil))
            }
            return found.map { $1.status(of: $0, now: now) }
                .sorted(by: Self.isBusier).prefix(limit).map { $0 }
        }
    }

    private static func isBusier(_ a: HostStatus, _ b: HostStatus) -> Bool {
        (b.running, b.waiting, a.host) < (a.running, a.waiting, b.host)
    }

    /// Blocked hosts, with the times at which they accept requests again.
    public func blocked() async throws(JobsError) -> [String: WallTime] {
        let (now, steady) = (gate.now(), try await gate.cacheTime())
        let left = try await memories().map { (host: $0.host, time: $0.remaining(at: steady)) }
        return Dictionary(left.filter { $0.time > 0 }.map { ($0.host, now + $0.time) }, uniquingKeysWith: max)
    }

    // MARK: - Limits

    public func limits() async throws(JobsError) -> [LimitsRecord] {
        try await gate.readOne { db in
            try db.rows("SELECT * FROM limits ORDER BY host").map { row in
                var limits = LimitsRecord(
                    host: row.text("host") ?? "", concurrency: row.number("concurrency").map { Int(clamping: $0) },
                    perHost: row.number("per_host").map { Int(clamping: $0) }, rate: row.real("rate"),
                    burst: row.number("burst").map { Int(clamping: $0) })
                limits.silenceTimeout = row.number("silence_timeout")
                limits.connectTimeout = row.number("connect_timeout")
                limits.totalTimeout = row.number("total_timeout")
                limits.maxTries = row.number("max_tries").map { Int(clamping: $0) }
                limits.retryDelay = row.number("retry_delay")
                limits.cacheMaxAge = row.number("cache_max_age")
                return limits
            }
        }
    }

    /// How long a file stays in the cache, if that is set while workers run; in milliseconds, negative for ever.
    public func cacheMaxAge() async throws(JobsError) -> Int64? {
        try await gate.read { db in
            try db.integer("SELECT cache_max_age FROM limits WHERE host = ?", [LimitsRecord.everyHost])
        }
    }

    /// Sets the given limits, and keeps the others.
    public func setLimits(_ limits: LimitsRecord) async throws(JobsError) {
        try await gate.write { db in
            let columns = limits.columns
            let kept = columns.map { "\($0.name) = coalesce(excluded.\($0.name), limits.\($0.name))" }
            try db.run(
                """
                INSERT INTO limits (host, \(columns.map(\.name).joined(separator: ", ")))
                VALUES (?\(String(repeating: ", ?", count: columns.count)))
                ON CONFLICT (host) DO UPDATE SET \(kept.joined(separator: ", "))
                """, [limits.host.lowercased()] + SQLValues(columns.map(\.value)))
        }
    }

    /// Resets a host's limits to those with which workers were started.
    ///
    /// - Returns: whether any were set.
    public func resetLimits(host: String) async throws(JobsError) -> Bool {
        try await gate.write { db in
            return try db.change("DELETE FROM limits WHERE host = ?", [host.lowercased()]) > 0
        }
    }
}

extension LimitsRecord {
    /// The columns beside the host.
    fileprivate var columns: [(name: String, value: (any RowValue)?)] {
        [
            ("concurrency", concurrency), ("per_host", perHost), ("rate", rate), ("burst", burst),
            ("silence_timeout", silenceTimeout), ("connect_timeout", connectTimeout), ("total_timeout", totalTimeout),
            ("max_tries", maxTries), ("retry_delay", retryDelay), ("cache_max_age", cacheMaxAge),
        ]
    }
}

private struct HostTally {
    var running = 0
    var waiting = 0
    /// Those of `waiting` that workers hold.
    var held = 0
    var rate = 0.0
    var failures: [String: Int] = [:]
    var memory: HostMemory?
    var wait: (reason: String, until: SteadyTime?)?
    /// Why requests inside workers wait, if no limit of the host holds them back.
    var otherwise: String?

    mutating func add(load row: Row) {
        running += min(row.count("running"), 1_000_000)
        waiting += min(row.count("waiting"), 1_000_000)
        held += min(row.count("waiting"), 1_000_000)
        rate += row.real("rate") ?? 0
        otherwise = otherwise ?? row.text("otherwise")
        if let reason = row.text("reason") { wait = (reason, row.steady("until")) }
    }

    /// - Returns: the status, with times of the machine's clock.
    func status(of host: String, now: Moment) -> HostStatus {
        let left = memory?.remaining(at: now.steady) ?? 0
        let reason = left > 0 ? memory?.reason : nil
        let why =
            wait?.reason ?? reason.map { HostStatus.sentence(reason: $0, host: host) }
            ?? (held > 0 ? otherwise : nil)
        let until = wait?.until.map(now.wall) ?? (wait == nil && left > 0 ? now.wall + left : nil)
        return HostStatus(
            host: host, running: running, waiting: waiting, rate: rate, failures: failures,
            notBefore: left > 0 ? now.wall + left : nil, reason: reason, width: memory?.width, why: why, until: until)
    }
}

private func memory(_ row: Row) -> HostMemory {
    let notBefore = row.steady("not_before") ?? SteadyTime(milliseconds: 0)
    var memory = HostMemory(
        host: row.text("host") ?? "", notBefore: notBefore,
        setAt: row.steady("set_at") ?? notBefore - 3_600_000, reason: row.text("reason"),
        width: row.real("width"), circuitOpenCount: min(row.count("circuit_opens"), 20))
    memory.hasAnswered = row.count("answered") > 0
    let failure = row.text("failure_class").flatMap(FailureClass.init(rawValue:))
    if let since = row.steady("failing_since"), let last = row.steady("failed_at"), let failure {
        memory.silence = HostMemory.Silence(
            since: since, last: last, givesUpAt: row.steady("gives_up_at"), failure: failure,
            message: row.text("failure_message") ?? "")
    }
    return memory
}
