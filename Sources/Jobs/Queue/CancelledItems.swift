internal import Core

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
            var ended = EndedItems()
            var count = 0
            var end: JobID?
            // Each item moves from an open state, and the batch counts it.
            try TriggerSwitch.withTriggers(TriggerSwitch.hasTriggersOfUsers(db), db) {
                for job in jobs {
                    let id: JobID = job["id"]
                    count += try Self.sweep(id, job["reason"], now: now, atMost: rows - count, &moves, &ended, in: db)
                    // The last job may have more items than the slice allows.
                    end = count < rows ? id : id - 1
                    if count >= rows { break }
                }
            }
            try moves.addUp(in: db)
            try ended.log(at: now, in: db)
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
        _ ended: inout EndedItems, in db: Connection,
    ) throws -> Int {
        try moves.announceAll(of: job, to: ItemState.cancelled.rawValue)
        var count = 0
        for (state, source) in open where count < rows {
            let update = try RowStatement(
                """
                UPDATE items SET state = 'cancelled', lease = NULL, run_at = NULL, class = 'cancelled', message = ?,
                    finished_at = ? WHERE id IN (SELECT id FROM \(source) AND job = ? LIMIT ?) RETURNING id
                """, in: db)
            let moved = try update.all(reason, now.milliseconds, job, rows - count) { $0.integer(0) }
            for item in moved { ended.addCancelled(item, of: job) }
            moves.count(job, from: state, to: .cancelled, items: Int64(moved.count))
            count += moved.count
        }
        return count
    }
}
