public import Core

/// A job's progress for users: a row of the view `progress`.
public struct JobProgress: Hashable, Sendable, Codable {
    public let job: JobID
    public let name: String?
    public let state: JobState
    public let priority: Int
    public let total, ended, queued, active, delayed: Int
    public let done, cached, failed, blacklisted, cancelled: Int
    /// Bytes downloaded for the job's finished items.
    public let bytes: Int64
    public let percent: Double
    /// URLs that `only-new` left out.
    public let notNew: Int
    public let createdAt: String?
    public let startedAt: String?
    public let finishedAt: String?
    public let error: String?
}

/// The unfinished items of all jobs that are not paused.
public struct Backlog: Hashable, Sendable {
    public let queued, active, delayed: Int
    /// When the next delayed item is due.
    public let nextDue: SteadyTime?

    public init(queued: Int, active: Int = 0, delayed: Int = 0, nextDue: SteadyTime? = nil) {
        self.queued = queued
        self.active = active
        self.delayed = delayed
        self.nextDue = nextDue
    }

    public var isEmpty: Bool { queued == 0 && active == 0 && delayed == 0 }
}

/// Numbers of the queue at one moment, for monitoring.
public struct QueueGauges: Hashable, Sendable {
    /// Unfinished jobs by their states.
    public let jobs: [JobState: Int]
    /// When the oldest job that has waiting items was added; nil if none has.
    public let oldest: WallTime?
    public let blacklisted: Int
    /// Hosts that are blocked: by Retry-After, or because their circuit is open.
    public let blockedHosts: Int
    public let leases: Int
    /// Whether all jobs are paused.
    public let areJobsSuspended: Bool
}

/// Reports on the queue, for users.
public struct JobReports: Sendable {
    let gate: DatabaseGate

    /// One job, or `nil` if there is none with this id.
    public func progress(job: JobID) async throws(JobsError) -> JobProgress? {
        try await gate.read { db in
            try db.row("SELECT * FROM progress WHERE job = ?", [job]).map(progressRow)
        }
    }

    /// Unfinished jobs and the latest ended jobs, the newest first.
    public func progress(latest limit: Int = 20) async throws(JobsError) -> [JobProgress] {
        try await gate.read { db in
            try db.rows(
                """
                SELECT * FROM progress WHERE job IN (SELECT id FROM jobs WHERE state IN ('queued', 'running', 'paused')
                    UNION ALL SELECT id FROM (SELECT id FROM jobs ORDER BY id DESC LIMIT ?))
                ORDER BY job DESC LIMIT 1000
                """, [limit]
            ).map(progressRow)
        }
    }

    public func backlog() async throws(JobsError) -> Backlog {
        try await gate.readOne { db in
            let row = try db.row(
                """
                SELECT \(Schema.sum("queued")) AS queued, \(Schema.sum("active")) AS active,
                    \(Schema.sum("delayed")) AS delayed,
                    (SELECT min(run_at) FROM items WHERE state = 'delayed') AS next_due
                FROM jobs WHERE state IN ('queued', 'running') AND \(Schema.nothingIsSuspended)
                """)
            return Backlog(
                queued: row?.items("queued") ?? 0, active: row?.items("active") ?? 0,
                delayed: row?.items("delayed") ?? 0,
                nextDue: row?.steady("next_due"),
            )
        }
    }

    public func gauges() async throws(JobsError) -> QueueGauges {
        let reading = gate.reading
        return try await gate.read { db in
            let now = try reading.moment(in: db)
            let open = try db.rows(
                "SELECT state, count(*) AS n FROM jobs WHERE state IN ('queued', 'running', 'paused') GROUP BY state")
            let counts = try db.row(
                """
                SELECT (SELECT min(created_at) FROM jobs
                        WHERE state IN ('queued', 'running', 'paused') AND queued + delayed > 0) AS oldest,
                    (SELECT count(*) FROM blacklist_entries) AS blacklisted, (SELECT count(*) FROM leases) AS leases,
                    (SELECT count(*) FROM hosts WHERE not_before > ?) AS blocked,
                    EXISTS (SELECT 1 FROM suspension) AS suspended
                """, [now.steady.milliseconds])
            return QueueGauges(
                jobs: Dictionary(
                    open.compactMap { row in JobState(rawValue: row["state"]).map { ($0, row["n"] as Int) } },
                    uniquingKeysWith: +),
                oldest: counts?.wall("oldest"), blacklisted: counts?["blacklisted"] ?? 0,
                blockedHosts: counts?["blocked"] ?? 0, leases: counts?["leases"] ?? 0,
                areJobsSuspended: counts?["suspended"] ?? false)
        }
    }

    /// Since when all jobs are paused; nil if they are not.
    public func suspendedSince() async throws(JobsError) -> WallTime? {
        try await gate.read { db in try db.integer("SELECT since FROM suspension").map(WallTime.init(milliseconds:)) }
    }

    /// The progress of these jobs, for the last line and the exit code of a run.
    public func summary(jobs: Set<JobID>) async throws(JobsError) -> [JobProgress] {
        try await gate.read { db in
            try jobs.sorted().compactMap { job in
                try db.row("SELECT * FROM progress WHERE job = ?", [job]).map(progressRow)
            }
        }
    }

    /// A page of a job's results in the order of its items: all results of at most `limit` items after item `after`.
    public func results(job: JobID, after item: Int64, limit: Int) async throws(JobsError) -> [ResultRow] {
        try await gate.read { db in
            try db.rows(
                """
                SELECT * FROM results WHERE job = ? AND item IN
                    (SELECT id FROM items WHERE job = ? AND id > ? AND state IN ('done', 'failed', 'cancelled')
                        ORDER BY id LIMIT ?)
                ORDER BY item, variant
                """, [job, job, item, limit]
            ).map(ResultRow.init(row:))
        }
    }

    /// Whether the job has a result of this variant; the original is named `original`.
    public func hasVariant(_ name: String, job: JobID) async throws(JobsError) -> Bool {
        try await gate.read { db in
            try db.exists("SELECT 1 FROM results WHERE job = ? AND variant = ?", [job, name])
        }
    }

    /// The names of the variants among a job's results.
    public func variants(job: JobID) async throws(JobsError) -> [String] {
        try await gate.read { db in
            try db.texts("SELECT DISTINCT variant FROM results WHERE job = ? AND variant IS NOT NULL ORDER BY 1", [job])
        }
    }

    /// The classes and URLs of a job's failures, at most `limit`, the first ones.
    public func failures(job: JobID, limit: Int) async throws(JobsError) -> [(failureClass: String, url: String)] {
        try await gate.read { db in
            try db.rows(
                "SELECT class, url FROM items WHERE job = ? AND state = 'failed' ORDER BY id LIMIT ?", [job, limit]
            ).map { row -> (String, String) in (row["class"] ?? "unknown", row["url"] ?? "") }
        }
    }

    /// The items of a URL, the latest first.
    public func history(ofURL url: String, limit: Int = 20) async throws(JobsError) -> [ItemRecord] {
        let reading = gate.reading
        return try await gate.read { db in
            let now = try reading.moment(in: db)
            return try db.rows(
                "SELECT * FROM items WHERE url = ? AND job NOT IN (SELECT job FROM job_additions) ORDER BY id DESC LIMIT ?",
                [url, limit]
            )
            .map { ItemRecord(row: $0, now) }
        }
    }

    /// Every stored request for a URL, the latest first.
    public func tries(ofURL url: String, limit: Int = 100) async throws(JobsError) -> [TryRecord] {
        try await gate.read { db in
            try db.rows(
                """
                SELECT tries.* FROM items CROSS JOIN tries ON tries.item = items.id WHERE items.url = ?
                ORDER BY tries.at DESC LIMIT ?
                """, [url, limit]
            ).map(TryRecord.init(row:))
        }
    }

    /// The bytes that the last stored request of an item received.
    public func lastReceived(item: Int64) async throws(JobsError) -> Int64? {
        try await gate.read { db in
            try RowStatement("SELECT received FROM tries WHERE item = ? ORDER BY at DESC LIMIT 1", in: db)
                .first(item) { $0.integer(0) }
        }
    }

    /// Replaces the worker's previous report.
    public func save(progress: [TransferProgress], worker: Int64) async throws(JobsError) {
        let now = gate.now()
        // Not synced: a power failure ends the worker, and with it its transfers.
        try await gate.write(isDurable: false) { db in
            try db.run("DELETE FROM transfer_progress WHERE worker = ?", [worker])
            guard !progress.isEmpty else { return }
            let insert = try RowStatement(
                """
                INSERT OR REPLACE INTO transfer_progress (worker, item, received, expected, updated_at, bytes_from)
                VALUES (?, ?, ?, ?, ?, ?)
                """, in: db)
            try insert.runEach(progress) { (worker, $0.item, $0.received, $0.expected, now, $0.origin.rawValue) }
        }
    }
}

private func progressRow(_ row: Row) -> JobProgress {
    let state: String = row["state"]
    // Clamped, since SQL may write any number: sums and small multiples of these don't overflow.
    func items(_ column: String) -> Int { min(row.count(column), 1 << 48) }
    return JobProgress(
        job: row["job"], name: row["name"], state: JobState(rawValue: state) ?? .failed, priority: row["priority"],
        total: items("total"), ended: items("ended"), queued: items("queued"), active: items("active"),
        delayed: items("delayed"), done: items("done"), cached: items("cached"), failed: items("failed"),
        blacklisted: items("blacklisted"), cancelled: items("cancelled"),
        bytes: max(0, min(row["bytes"], 1 << 60)), percent: row["percent"], notNew: items("not_new"),
        createdAt: row["created_at"],
        startedAt: row["started_at"], finishedAt: row["finished_at"], error: row["error"],
    )
}

extension TryRecord {
    /// Stores tries for their items.
    static func save(_ tries: [(item: Int64, record: TryRecord)], in statements: RowStatements) throws {
        let insert = try statements(
            """
            INSERT OR REPLACE INTO tries (item, at, class, http_status, message, received, saved, redirects, address,
                http_version, dns, connect, tls, first_byte, total)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """)
        try insert.runEach(tries) { item, one in
            (
                item, one.at, one.failure, one.httpStatus, one.message, one.received, one.saved, one.redirects,
                one.address, one.httpVersion, one.dns, one.connect, one.tls, one.firstByte, one.total
            )
        }
    }
}
