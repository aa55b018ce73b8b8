internal import GRDB

/// What people do to jobs from outside.
extension JobStore {
    public func cancel(job: JobID) async throws(JobsError) {
        try await move(job, to: .cancelled)
        while try await sweepCancelled() > 0 {}
    }

    public func pause(job: JobID) async throws(JobsError) { try await move(job, to: .paused) }

    public func resume(job: JobID) async throws(JobsError) {
        try await move(job, to: .queued)
    }

    /// Which of a job's failures are meant; all that is given must hold.
    public struct FailureSelection: Sendable, Hashable {
        public var failure: FailureClass?
        public var host: String?
        /// Ended at this time or later, in UTC milliseconds.
        public var since: Int64?

        public init(failure: FailureClass? = nil, host: String? = nil, since: Int64? = nil) {
            self.failure = failure
            self.host = host
            self.since = since
        }

        fileprivate func matches(_ url: String) -> Bool { host.map { URLText.host(url) == $0.lowercased() } ?? true }
    }

    /// Puts what failed or was cancelled back into the queue, as new.
    ///
    /// - Returns: how many items.
    public func retry(job: JobID, _ selection: FailureSelection = FailureSelection()) async throws(JobsError) -> Int {
        var total = 0
        var last: Int64 = 0
        // From the first item to the last, once: what fails again meanwhile is not taken a second time.
        while true {
            let (count, end) = try await write { [last] db in
                try Self.requireJob(job, in: db)
                let end = try Int64.fetchOne(
                    db,
                    sql: "SELECT max(id) FROM (SELECT id FROM items WHERE job = ? AND id > ? ORDER BY id LIMIT 10000)",
                    arguments: [job, last],
                )
                guard let end else { return (0, nil as Int64?) }
                let failures = try Row.fetchAll(
                    db,
                    sql: """
                        SELECT id, url FROM items
                        WHERE job = ?1 AND id > ?2 AND id <= ?3 AND state IN ('failed', 'cancelled')
                            AND (?4 IS NULL OR class = ?4) AND (?5 IS NULL OR finished_at >= ?5)
                        """,
                    arguments: [job, last, end, selection.failure?.rawValue, selection.since])
                let update = try db.cachedStatement(
                    sql: """
                        UPDATE items SET state = 'queued', attempts = 0, class = NULL, http_status = NULL, message = NULL,
                            blacklisted = 0, finished_at = NULL WHERE id = ?
                        """)
                var count = 0
                for row in failures where selection.matches(row["url"]) {
                    try update.execute(arguments: [row["id"] as Int64])
                    count += 1
                }
                return (count, end)
            }
            total += count
            guard let end else { return total }
            last = end
        }
    }

    /// Ends a job that can't be run at all, such as one whose variants can't be parsed.
    public func fail(job: JobID, error: String) async throws(JobsError) {
        let now = now()
        try await write { db in
            try db.execute(
                sql: """
                    UPDATE jobs SET state = 'failed', error = ?, finished_at = ?
                    WHERE id = ? AND state IN ('queued', 'running', 'paused')
                    """,
                arguments: [error, now, job],
            )
        }
        while try await sweepCancelled() > 0 {}
    }

    private func move(_ job: JobID, to next: JobState) async throws(JobsError) {
        let now = now()
        try await write { db in
            let state = try Self.requireJob(job, in: db)
            guard state != next else { return }
            guard state.isOpen, state.canMove(to: next) else {
                throw JobsError(.refused, "Job \(job) is \(state.rawValue) and can't be made \(next.rawValue).")
            }
            try db.execute(
                sql: "UPDATE jobs SET state = ?, finished_at = ? WHERE id = ?",
                arguments: [next.rawValue, next.isOpen ? nil : now, job],
            )
            // Everything may have ended while it was paused.
            try db.execute(
                sql: """
                    UPDATE jobs SET state = 'finished', finished_at = ?
                    WHERE id = ? AND state = 'queued' AND total > 0 AND queued + active + delayed = 0
                    """,
                arguments: [now, job],
            )
        }
    }

    @discardableResult
    private static func requireJob(_ job: JobID, in db: Database) throws -> JobState {
        let text = try String.fetchOne(db, sql: "SELECT state FROM jobs WHERE id = ?", arguments: [job])
        guard let state = text.flatMap(JobState.init(rawValue:)) else {
            throw JobsError(.notFound, "There is no job \(job). List the jobs with: worker status")
        }
        return state
    }
}
