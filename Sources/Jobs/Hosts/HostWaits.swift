public import Core

/// Items that wait for a host.
public struct HostWaits: Hashable, Sendable, Codable {
    public let host: String
    public let items: Int
    /// A sentence.
    public let reason: String
    /// When the last of them is tried again, or the host is given up; nil if unknown.
    public let until: WallTime?
    /// Whether there are more items or hosts than were counted.
    public var isMore = false

    init(_ row: Row, now: Moment) {
        host = row.text("host") ?? ""
        items = row.count("items")
        reason = row.text("reason") ?? ""
        until = row.steady("until").map(now.wall)
    }

    init(host: String, items: Int, reason: String, until: WallTime?, isMore: Bool) {
        (self.host, self.items, self.reason) = (host, items, reason)
        (self.until, self.isMore) = (until, isMore)
    }

    /// Adds delayed items and items that workers hold.
    fileprivate func joined(with other: HostWaits) -> HostWaits {
        HostWaits(
            host: host, items: items + other.items, reason: max(reason, other.reason),
            until: until.flatMap { until in other.until.map { max(until, $0) } } ?? until ?? other.until,
            isMore: isMore || other.isMore)
    }
}

extension HostBook {
    /// The hosts for which items wait, those with the most items first. The time does not grow with the number of
    /// waiting items; if they are too many to count, ``HostWaits/isMore`` is set.
    ///
    /// - Parameter job: counts only this job's items.
    public func waits(job: JobID? = nil, limit: Int = 1_000) async throws(JobsError) -> [HostWaits] {
        let reading = gate.reading
        return try await gate.read { db in
            let now = try reading.moment(in: db)
            var found: [String: HostWaits] = [:]
            for wait in try DelayedWaits(db, now).hosts(job: job, limit: limit)
                + Self.heldWaits(job, limit, now: now, in: db) + Self.queuedWaits(job, in: db)
            {
                found[wait.host] = found[wait.host]?.joined(with: wait) ?? wait
            }
            return found.values.sorted { ($1.items, $0.host) < ($0.items, $1.host) }.prefix(limit).map { $0 }
        }
    }

    /// Items that wait inside workers.
    private static func heldWaits(_ job: JobID?, _ limit: Int, now: Moment, in db: Connection) throws -> [HostWaits] {
        try db.rows(
            """
            SELECT held_items.host AS host, count(*) AS items, max(host_load.reason) AS reason,
                coalesce(min(max(host_load.until), max(hosts.gives_up_at)), max(hosts.gives_up_at), max(host_load.until)) AS until
            FROM held_items JOIN items ON items.id = held_items.item AND items.state = 'active'
            JOIN host_load ON host_load.worker = held_items.worker AND host_load.host = held_items.host
            LEFT JOIN hosts ON hosts.host = held_items.host
            WHERE host_load.reason IS NOT NULL AND (?1 IS NULL OR items.job = ?1) GROUP BY held_items.host LIMIT ?2
            """, [job, limit]
        ).map { HostWaits($0, now: now) }
    }

    /// Queued items that no worker may claim now: they must run alone, or all workers are paused.
    static func queuedWaits(_ job: JobID?, in db: Connection) throws -> [HostWaits] {
        try db.rows(
            """
            SELECT * FROM (SELECT '\(WaitPlace.suspects)' AS host, count(*) AS items,
                    '\(WaitPlace.suspectsReason)' AS reason
                FROM items JOIN jobs ON jobs.id = items.job AND (jobs.state = 'queued' OR jobs.state = 'running')
                WHERE items.state = 'queued' AND items.deaths > 1 AND (?1 IS NULL OR items.job = ?1)
            UNION ALL SELECT '\(WaitPlace.disk)', \(Schema.sum("queued")), \(WaitPlace.pauseReason) FROM jobs
                WHERE (state = 'queued' OR state = 'running') AND (?1 IS NULL OR id = ?1) AND \(WaitPlace.isPaused))
            WHERE items > 0
            """, [job]
        ).map {
            HostWaits(
                host: $0.text("host") ?? "", items: $0.count("items"), reason: $0.text("reason") ?? "", until: nil,
                isMore: false)
        }
    }

    /// Why an active item waits in its worker, or a queued one although a worker is free; nil if it does not wait.
    public func waitReason(of item: Int64) async throws(JobsError) -> (reason: String, until: WallTime?)? {
        let reading = gate.reading
        return try await gate.read { db in
            let now = try reading.moment(in: db)
            let row = try db.row(
                """
                SELECT coalesce(host_load.reason, \(WaitPlace.downloaderReason(worker: "held_items.worker"))) AS reason,
                    host_load.until AS until FROM held_items
                LEFT JOIN host_load ON host_load.worker = held_items.worker AND host_load.host = held_items.host
                JOIN items ON items.id = held_items.item AND items.state = 'active' WHERE held_items.item = ?
                """, [item])
            guard let row else { return try Self.queuedReason(of: item, in: db).map { ($0, nil) } }
            return (row.text("reason") ?? "", row.steady("until").map(now.wall))
        }
    }

    private static func queuedReason(of item: Int64, in db: Connection) throws -> String? {
        try db.row(
            """
            SELECT CASE WHEN items.deaths > 1 THEN '\(WaitPlace.suspectsReason)'
                WHEN \(WaitPlace.isPaused) THEN \(WaitPlace.pauseReason) END AS reason
            FROM items JOIN jobs ON jobs.id = items.job AND (jobs.state = 'queued' OR jobs.state = 'running')
            WHERE items.id = ? AND items.state = 'queued'
            """, [item])?.text("reason")
    }

    /// Records which active items began to wait, and which stopped waiting.
    public func saveHeld(
        added: [HeldItem], removed: Set<Int64>, worker: Int64,
    ) async throws(JobsError) {
        // Not synced: a power failure ends the worker, and with it its waiting items.
        try await gate.write(isDurable: false) { db in
            if !removed.isEmpty {
                try RowStatement("DELETE FROM held_items WHERE worker = ? AND item = ?", in: db)
                    .runEach(Array(removed)) { (worker, $0) }
            }
            if !added.isEmpty {
                try RowStatement("INSERT OR REPLACE INTO held_items (worker, item, host) VALUES (?, ?, ?)", in: db)
                    .runEach(added) { (worker, $0.item, $0.host) }
            }
        }
    }
}
