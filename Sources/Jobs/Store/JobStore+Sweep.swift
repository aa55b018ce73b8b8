internal import GRDB

/// Items of jobs that were cancelled or failed: they end in slices, so that even a job of a million items stops at once and
/// no other program waits for long.
extension JobStore {
    /// Ends what is left of such jobs, until there is nothing left or `limit` milliseconds are over.
    ///
    /// - Returns: how many items were cancelled.
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
            await breathe(after: SliceLedger.now() - begun)
        }
        return total
    }

    /// Ends as many items as a slice has, of one such job after the other.
    ///
    /// - Returns: how many, and the last job that is done with; nil where there was none.
    private func sweepSlice(after last: JobID) async throws(JobsError) -> (count: Int, end: JobID?) {
        let now = now()
        return try await writeSlice(.sweep) { db, rows in
            let jobs = try Row.fetchAll(
                db,
                sql: """
                    SELECT id, ifnull(error, 'The job was cancelled.') AS reason FROM jobs
                    WHERE state IN ('cancelled', 'failed') AND queued + active + delayed > 0 AND id > ? ORDER BY id LIMIT 256
                    """, arguments: [last])
            var moves = try GroupMoves(in: db)
            var count = 0
            var end: JobID?
            for job in jobs {
                let id: JobID = job["id"]
                count += try Self.sweep(id, job["reason"], now: now, atMost: rows - count, &moves, in: db)
                // The last may have more than the slice has room for.
                end = count < rows ? id : id - 1
                if count >= rows { break }
            }
            try moves.addUp(in: db)
            return ((count, end), max(count, jobs.count))
        }
    }

    /// Where the items of each state are found: those at work among all that are, which are few, the others by their job.
    private static let open: [(state: GroupMoves.Counter, source: String)] = [
        (.active, "items INDEXED BY items_leased WHERE state = 'active'"),
        (.delayed, "items INDEXED BY items_delayed_by_job WHERE state = 'delayed'"),
        (.queued, "items INDEXED BY items_queued WHERE state = 'queued'"),
    ]

    private static func sweep(
        _ job: JobID, _ reason: String, now: Int64, atMost rows: Int, _ moves: inout GroupMoves, in db: Database,
    ) throws -> Int {
        try moves.announceAll(of: job, to: ItemState.cancelled.rawValue)
        var count = 0
        for (state, source) in open where count < rows {
            let update = try db.cachedStatement(
                sql: """
                    UPDATE items SET state = 'cancelled', lease = NULL, run_at = NULL, class = 'cancelled', message = ?,
                        finished_at = ? WHERE id IN (SELECT id FROM \(source) AND job = ? LIMIT ?)
                    """)
            try update.execute(arguments: [reason, now, job, rows - count])
            let moved = db.changesCount
            moves.count(job, from: state, to: .cancelled, items: Int64(moved))
            count += moved
        }
        return count
    }

    /// Between two slices: a third of the time that the last one took, so that a program which looks for the lock every 100 ms,
    /// as SQLite's own busy handler does, finds it free within a second or two.
    ///
    /// - Parameter nanoseconds: how long the slice took.
    func breathe(after nanoseconds: Int64 = 0) async {
        // Cancellation only cuts the nap short.
        try? await Task.sleep(for: .nanoseconds(min(max(nanoseconds / 3, 4_000_000), 50_000_000)))
    }
}
