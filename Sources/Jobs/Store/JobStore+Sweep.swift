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
            guard let job = try await jobToSweep(after: last) else { break }
            let begun = SliceLedger.now()
            let count = try await sweep(job)
            total += count
            // Where its counters say that something is left and nothing is, the others have their turn.
            if count == 0 { last = job.id }
            await breathe(after: SliceLedger.now() - begun)
        }
        return total
    }

    private func jobToSweep(after last: JobID) async throws(JobsError) -> (id: JobID, reason: String)? {
        try await read { db in
            try Row.fetchOne(
                db,
                sql: """
                    SELECT id, ifnull(error, 'The job was cancelled.') AS reason FROM jobs
                    WHERE state IN ('cancelled', 'failed') AND queued + active + delayed > 0 AND id > ? ORDER BY id LIMIT 1
                    """, arguments: [last]
            ).map { (id: $0["id"], reason: $0["reason"]) }
        }
    }

    /// Where the items of each state are found: those at work among all that are, which are few, the others by their job.
    private static let open: [(state: GroupMoves.Counter, source: String)] = [
        (.active, "items INDEXED BY items_leased WHERE state = 'active'"),
        (.delayed, "items INDEXED BY items_delayed_by_job WHERE state = 'delayed'"),
        (.queued, "items INDEXED BY items_queued WHERE state = 'queued'"),
    ]

    private func sweep(_ job: (id: JobID, reason: String)) async throws(JobsError) -> Int {
        let now = now()
        return try await writeSlice(.sweep) { db, rows in
            let isOver = try Bool.fetchOne(
                db, sql: "SELECT state IN ('cancelled', 'failed') FROM jobs WHERE id = ?", arguments: [job.id])
            guard isOver == true else { return (0, 0) }
            var moves = try GroupMoves(in: db)
            try moves.announceAll(of: job.id, to: ItemState.cancelled.rawValue)
            var count = 0
            for (state, source) in Self.open where count < rows {
                let update = try db.cachedStatement(
                    sql: """
                        UPDATE items SET state = 'cancelled', lease = NULL, run_at = NULL, class = 'cancelled', message = ?,
                            finished_at = ? WHERE id IN (SELECT id FROM \(source) AND job = ? LIMIT ?)
                        """)
                try update.execute(arguments: [job.reason, now, job.id, rows - count])
                let moved = db.changesCount
                moves.count(job.id, from: state, to: .cancelled, items: Int64(moved))
                count += moved
            }
            try moves.addUp(in: db)
            return (count, count)
        }
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
