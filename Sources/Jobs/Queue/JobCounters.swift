internal import Core
internal import GRDB

/// The result of recounting the items of jobs.
public struct MendedJob: Hashable, Sendable {
    public let job: JobID
    /// One sentence that names the wrong counters.
    public let finding: String
}

extension JobControl {
    /// Open jobs with more items than this are recounted only on request.
    private static let recountLimit = 200_000

    /// Recounts the items of open jobs, and corrects wrong counters: other programs may have repaired the file, or
    /// changed it with triggers switched off.
    ///
    /// - Parameter always: also recounts jobs of millions of items, which takes a second per few millions.
    /// - Returns: the jobs whose counters were wrong.
    public func mendCounters(always: Bool = false) async throws(JobsError) -> [MendedJob] {
        let limit = always ? Int.max : Self.recountLimit
        let suspects = try await gate.read { db in
            try db.integers(
                """
                SELECT id FROM jobs WHERE (state = 'queued' OR state = 'running' OR state = 'paused') AND total <= ?
                ORDER BY id
                """, [limit])
        }
        var mended: [MendedJob] = []
        for job in suspects {
            guard try await gate.read({ db in try Self.isMiscounted(job, in: db) }) else { continue }
            let finding = try await gate.write { db in try Self.mend(job, in: db) }
            if let finding { mended.append(MendedJob(job: job, finding: finding)) }
        }
        return mended
    }

    private static let columns = [
        "total", "queued", "active", "delayed", "done", "cached", "failed", "blacklisted", "cancelled",
    ]

    private static let recount = """
        SELECT count(*) AS total, coalesce(sum(state = 'queued'), 0) AS queued, coalesce(sum(state = 'active'), 0) AS active,
            coalesce(sum(state = 'delayed'), 0) AS delayed, coalesce(sum(state = 'done' AND cached = 0), 0) AS done,
            coalesce(sum(state = 'done' AND cached <> 0), 0) AS cached,
            coalesce(sum(state = 'failed' AND blacklisted = 0), 0) AS failed,
            coalesce(sum(state = 'failed' AND blacklisted <> 0), 0) AS blacklisted,
            coalesce(sum(state = 'cancelled'), 0) AS cancelled
        FROM items WHERE job = ?
        """

    /// The job's counters and their recount, in the order of `columns`; nil if there is no such job.
    private static func counts(of job: JobID, in db: Database) throws -> (written: [Int64], counted: [Int64])? {
        let list = columns.joined(separator: ", ")
        guard
            let written = try RowStatement("SELECT \(list) FROM jobs WHERE id = ?", in: db)
                .first(job, read: { row in columns.indices.map { row.integer(CInt($0)) } }),
            let counted = try RowStatement(recount, in: db)
                .first(job, read: { row in columns.indices.map { row.integer(CInt($0)) } })
        else { return nil }
        return (written, counted)
    }

    private static func isMiscounted(_ job: JobID, in db: Database) throws -> Bool {
        guard let counts = try counts(of: job, in: db) else { return false }
        return counts.written != counts.counted || isOver(counts.counted)
    }

    /// Whether a job with these counters has no open items. A job without any items waits for its first.
    private static func isOver(_ counted: [Int64]) -> Bool {
        counted[0] > 0 && counted[1] + counted[2] + counted[3] == 0
    }

    /// - Returns: a sentence if a counter was wrong.
    static func mend(_ job: JobID, in db: Database) throws -> String? {
        guard let counts = try counts(of: job, in: db) else { return nil }
        var findings: [String] = []
        if counts.written != counts.counted {
            let assignments = columns.map { "\($0) = ?" }.joined(separator: ", ")
            try db.run(
                "UPDATE jobs SET \(assignments), revision = revision + 1 WHERE id = ?",
                StatementArguments(counts.counted + [job]))
            findings += columns.indices.filter { counts.written[$0] != counts.counted[$0] }
                .map { "\(columns[$0]) was \(counts.written[$0]) and is \(counts.counted[$0])" }
        }
        if isOver(counts.counted) {
            let isChanged = try db.run(
                """
                UPDATE jobs SET state = 'finished', finished_at = coalesce(finished_at, \(Schema.now))
                WHERE id = ? AND (state = 'queued' OR state = 'running' OR state = 'paused')
                """, [job])
            // A worker may have finished it since it was looked for.
            if isChanged > 0 { findings.append("all of its items have ended, so it is finished") }
        }
        return findings.isEmpty ? nil : "Job \(job): " + findings.joined(separator: "; ") + "."
    }
}

/// Items of cancelled or failed jobs end in slices, so that even a job of a million items stops at once and no other
/// program waits long.
extension JobControl {
    /// Ends the open items of such jobs, for at most `limit` milliseconds.
    ///
    /// - Returns: the number of cancelled items.
    @discardableResult
    public func sweepCancelled(within limit: Int64 = .max) async throws(JobsError) -> Int {
        let start = SliceLedger.now() / 1_000_000
        var total = 0
        var last: JobID = 0
        while SliceLedger.now() / 1_000_000 - start < limit {
            let begun = SliceLedger.now()
            let (count, end) = try await sweepSlice(after: last)
            total += count
            guard let end else { break }
            last = end
            await gate.breathe(after: SliceLedger.now() - begun)
        }
        return total
    }

    /// Ends as many items as a slice allows, job after job.
    ///
    /// - Returns: the number of items, and the last completed job; nil if there was none.
    private func sweepSlice(after last: JobID) async throws(JobsError) -> (count: Int, end: JobID?) {
        let now = gate.now()
        return try await gate.writeSlice(.sweep) { db, rows in
            let jobs = try db.rows(
                """
                SELECT id, coalesce(error, 'The job was cancelled.') AS reason FROM jobs
                WHERE state IN ('cancelled', 'failed') AND queued + active + delayed > 0 AND id > ? ORDER BY id LIMIT 256
                """, [last])
            var moves = try JobCounterBatch(in: db)
            var count = 0
            var end: JobID?
            // Each item moves from an open state, and the batch counts it.
            try TriggerSwitch.withTriggers(TriggerSwitch.hasTriggersOfUsers(db), db) {
                for job in jobs {
                    let id: JobID = job["id"]
                    count += try Self.sweep(id, job["reason"], now: now, atMost: rows - count, &moves, in: db)
                    // The last job may have more items than the slice allows.
                    end = count < rows ? id : id - 1
                    if count >= rows { break }
                }
            }
            try moves.addUp(in: db)
            return ((count, end), max(count, jobs.count))
        }
    }

    /// The queries for the open items in each state: active items among all active ones, which are few; the others by
    /// their job.
    private static let open: [(state: JobCounterBatch.Counter, source: String)] = [
        (.active, "items INDEXED BY items_leased WHERE state = 'active'"),
        (.delayed, "items INDEXED BY items_delayed_by_job WHERE state = 'delayed'"),
        (.queued, "items INDEXED BY items_queued WHERE state = 'queued' AND priority IS NULL"),
        // One look-up for each priority, since the index begins with it.
        (
            .queued,
            """
            items INDEXED BY items_own_priority WHERE state = 'queued' AND priority IS NOT NULL
                AND priority IN (\((-100...100).map(String.init).joined(separator: ", ")))
            """
        ),
    ]

    private static func sweep(
        _ job: JobID, _ reason: String, now: WallTime, atMost rows: Int, _ moves: inout JobCounterBatch,
        in db: Database,
    ) throws -> Int {
        try moves.announceAll(of: job, to: ItemState.cancelled.rawValue)
        var count = 0
        for (state, source) in open where count < rows {
            try db.run(
                """
                UPDATE items SET state = 'cancelled', lease = NULL, run_at = NULL, class = 'cancelled', message = ?,
                    finished_at = ? WHERE id IN (SELECT id FROM \(source) AND job = ? LIMIT ?)
                """, [reason, now.milliseconds, job, rows - count])
            let moved = db.changesCount
            moves.count(job, from: state, to: .cancelled, items: Int64(moved))
            count += moved
        }
        return count
    }
}
