public import Core
internal import Synchronization

/// Pausing, resuming, cancelling and retrying jobs.
public struct JobControl: Sendable {
    let gate: DatabaseGate

    public func cancel(job: JobID) async throws(JobsError) {
        try await move(job, to: .cancelled)
        try await sweepCancelled()
    }

    public func pause(job: JobID) async throws(JobsError) { try await move(job, to: .paused) }

    public func resume(job: JobID) async throws(JobsError) {
        try await move(job, to: .queued)
    }

    /// Changes the place of an unfinished job's items in the queue. Within a second this also applies to items that
    /// wait for their download.
    ///
    /// - Parameters:
    ///   - priority: −100…100, higher first; nil to keep it. Items with a priority of their own keep it.
    ///   - order: nil to keep it.
    public func reorder(job: JobID, priority: Int? = nil, order: ExecutionOrder? = nil) async throws(JobsError) {
        try await gate.write { db in
            let state = try Self.requireJob(job, in: db)
            guard state.isOpen else { throw JobsError(.refused, "Job \(job) is already \(state.rawValue).") }
            try db.run(
                """
                UPDATE jobs SET priority = coalesce(?, priority), execution_order = coalesce(?, execution_order)
                WHERE id = ?
                """, [priority, order?.rawValue, job])
        }
    }

    /// Selects failures of a job; a failure must match all given fields.
    public struct FailureSelection: Sendable {
        public var failure: FailureClass?
        public var host: String?
        /// The function that turns a URL into its host, as written in ``host``.
        public var nameOfHost: @Sendable (String) -> String = URLText.host
        /// Failures that ended at this time or later.
        public var since: WallTime?

        public init(failure: FailureClass? = nil, host: String? = nil, since: WallTime? = nil) {
            self.failure = failure
            self.host = host
            self.since = since
        }

        fileprivate func matches(_ url: String) -> Bool { host.map { nameOfHost(url) == $0.lowercased() } ?? true }
    }

    /// Queues failed and cancelled items again, as new.
    ///
    /// - Returns: the number of items.
    public func retry(job: JobID, _ selection: FailureSelection = FailureSelection()) async throws(JobsError) -> Int {
        try await retry(job: job, selection, takesOffBlacklist: false).items
    }

    /// The same, and counts the items whose URLs are on the blacklist; on request, it takes these URLs off.
    public func retry(
        job: JobID, _ selection: FailureSelection, takesOffBlacklist: Bool,
    ) async throws(JobsError) -> (items: Int, listed: Int) {
        let listed = Atomic(0)
        let reading = gate.reading
        let items = try await changeItems(of: job) { range, db in
            let failures = try db.rows(
                """
                SELECT id, url, state, blacklisted FROM items
                WHERE job = ? AND id BETWEEN ? AND ? AND state IN ('failed', 'cancelled')
                    AND (?4 IS NULL OR class = ?4) AND (?5 IS NULL OR finished_at >= ?5)
                """,
                [job, range.lowerBound, range.upperBound, selection.failure?.rawValue, selection.since?.milliseconds])
            let update = try RowStatement(
                """
                UPDATE items SET state = 'queued', attempts = 0, class = NULL, http_status = NULL, message = NULL,
                    blacklisted = 0, finished_at = NULL, deaths = 0, fallback = NULL WHERE id = ?
                """, in: db)
            let meant = failures.filter { selection.matches($0["url"]) }
            guard !meant.isEmpty else { return 0 }
            // The batch counts the moves together and opens the job once.
            var moves = try JobCounterBatch(in: db)
            try moves.announceAll(of: job, to: ItemState.queued.rawValue)
            try Self.reopen(job, in: db)
            let list = try ListedKeys(of: job, now: reading.time(in: db), in: db)
            for row in meant {
                if try list.has(row["url"], takesOff: takesOffBlacklist) {
                    listed.wrappingAdd(1, ordering: .relaxed)
                }
                let isListed: Bool = row["blacklisted"]
                let isCancelled = row["state"] as String == ItemState.cancelled.rawValue
                moves.count(job, from: isCancelled ? .cancelled : isListed ? .blacklisted : .failed, to: .queued)
            }
            // Each item moves from an ended state, the job is open again, and the batch counts the moves.
            try TriggerSwitch.withTriggers(TriggerSwitch.hasTriggersOfUsers(db), db) {
                for row in meant { try update.run(row["id"] as Int64) }
            }
            try moves.addUp(in: db)
            return meant.count
        }
        return (items, listed.load(ordering: .relaxed))
    }

    /// Whether URLs of a job's failed items are on the blacklist; looks at the first thousand.
    public func hasListedFailures(job: JobID) async throws(JobsError) -> Bool {
        let reading = gate.reading
        return try await gate.read { db in
            let list = try ListedKeys(of: job, now: reading.time(in: db), in: db)
            let urls = try db.texts("SELECT url FROM items WHERE job = ? AND state = 'failed' LIMIT 1000", [job])
            return try urls.contains { try list.has($0, takesOff: false) }
        }
    }

    /// Cancels a job's unfinished items with these URLs (all URLs if none is given), at the selection's host or at any
    /// host. The job continues with its other items.
    ///
    /// - Returns: the number of cancelled items.
    public func cancel(
        job: JobID, urls: Set<String>, _ selection: FailureSelection = FailureSelection(),
    ) async throws(JobsError) -> Int {
        let now = gate.now()
        return try await changeItems(of: job) { range, db in
            let open = try db.rows(
                """
                SELECT id, url FROM items
                WHERE job = ? AND id BETWEEN ? AND ? AND state IN ('queued', 'active', 'delayed')
                """, [job, range.lowerBound, range.upperBound])
            let update = try RowStatement(
                """
                UPDATE items SET state = 'cancelled', lease = NULL, run_at = NULL, class = 'cancelled',
                    message = 'The item was cancelled.', finished_at = ? WHERE id = ?
                """, in: db)
            let meant = open.filter { (urls.isEmpty || urls.contains($0["url"])) && selection.matches($0["url"]) }
            for row in meant { try update.run(now, row["id"] as Int64) }
            return meant.count
        }
    }

    private static func reopen(_ job: JobID, in db: Connection) throws {
        try db.run(
            """
            UPDATE jobs SET state = 'queued', finished_at = NULL, error = NULL, revision = revision + 1
            WHERE id = ? AND state IN ('finished', 'cancelled', 'failed')
            """, [job])
    }

    /// Processes a job's items once, in the order of their ids, in slices: an item that is queued again meanwhile is
    /// not changed twice.
    ///
    /// - Parameter change: changes the items with ids in a range, and returns their number.
    /// - Returns: the number of all changed items.
    private func changeItems(
        of job: JobID, _ change: @escaping @Sendable (ClosedRange<Int64>, Connection) throws -> Int,
    ) async throws(JobsError) -> Int {
        var total = 0
        var last: Int64 = 0
        while true {
            let begun = SliceLedger.now()
            let (count, end) = try await gate.writeSlice(.sweep) { [last] db, rows in
                try Self.requireJob(job, in: db)
                let page = try db.row(
                    """
                    SELECT count(*) AS n, max(id) AS last FROM
                        (SELECT id FROM items WHERE job = ? AND id > ? ORDER BY id LIMIT ?)
                    """, [job, last, rows])
                guard let end = page?["last"] as Int64? else { return (result: (0, nil as Int64?), handled: 0) }
                return (result: (try change(last + 1...end, db), end), handled: page?["n"] ?? 0)
            }
            total += count
            guard let end else { return total }
            last = end
            await gate.breathe(after: SliceLedger.now() - begun)
        }
    }

    /// Fails a job that can't run, such as one with unparsable variants.
    public func fail(job: JobID, error: String) async throws(JobsError) {
        let now = gate.now()
        try await gate.write { db in
            try db.run(
                """
                UPDATE jobs SET state = 'failed', error = ?, finished_at = ?
                WHERE id = ? AND state IN ('queued', 'running', 'paused')
                """, [error, now.milliseconds, job])
        }
        // A job may have millions of items; housekeeping cancels the rest.
        try await sweepCancelled(within: Self.sweepTime)
    }

    /// In milliseconds.
    private static let sweepTime: Int64 = 500

    private func move(_ job: JobID, to next: JobState) async throws(JobsError) {
        let now = gate.now()
        try await gate.write { db in
            let state = try Self.requireJob(job, in: db)
            guard state != next else { return }
            guard state.isOpen, state.canMove(to: next) else {
                guard state.isOpen else { throw JobsError(.refused, "Job \(job) is already \(state.rawValue).") }
                throw JobsError(.refused, "Job \(job) is \(state.rawValue) and can't be made \(next.rawValue).")
            }
            try db.run(
                "UPDATE jobs SET state = ?, finished_at = ? WHERE id = ?",
                [next.rawValue, next.isOpen ? nil : now.milliseconds, job])
            // All items may have ended while the job was paused.
            try db.run(
                """
                UPDATE jobs SET state = 'finished', finished_at = ?
                WHERE id = ? AND state = 'queued' AND total > 0 AND queued + active + delayed = 0
                """, [now.milliseconds, job])
        }
    }

    @discardableResult
    private static func requireJob(_ job: JobID, in db: Connection) throws -> JobState {
        let text = try db.text("SELECT state FROM jobs WHERE id = ?", [job])
        guard let state = text.flatMap(JobState.init(rawValue:)) else {
            throw JobsError(.notFound, "There is no job \(job). List the jobs with: worker status")
        }
        return state
    }
}
