internal import Core

/// Pauses, resumes and cancels all jobs.
extension JobControl {
    /// Stops claims from all jobs, including new ones, until ``resumeAll()``. Jobs keep their states.
    ///
    /// - Returns: whether this changed anything.
    @discardableResult
    public func pauseAll() async throws(JobsError) -> Bool {
        let now = gate.now()
        return try await gate.write { db in
            try db.change("INSERT OR IGNORE INTO suspension (id, since) VALUES (1, ?)", [now.milliseconds]) > 0
        }
    }

    /// Allows claims again. Jobs that were paused individually stay paused.
    ///
    /// - Returns: whether all jobs were paused.
    @discardableResult
    public func resumeAll() async throws(JobsError) -> Bool {
        try await gate.write { db in try db.change("DELETE FROM suspension") > 0 }
    }

    /// Cancels all unfinished jobs, including paused ones.
    ///
    /// - Returns: the number of cancelled jobs.
    @discardableResult
    public func cancelAll() async throws(JobsError) -> Int {
        let now = gate.now()
        var total = 0
        while true {
            let begun = SliceLedger.now()
            let count = try await gate.writeSlice(.sweep) { db, rows in
                let count = try db.change(
                    """
                    UPDATE jobs SET state = 'cancelled', finished_at = ? WHERE id IN
                        (SELECT id FROM jobs WHERE state IN ('queued', 'running', 'paused') LIMIT ?)
                    """, [now.milliseconds, rows])
                return (result: count, handled: count)
            }
            total += count
            guard count > 0 else { break }
            await gate.breathe(after: SliceLedger.now() - begun)
        }
        try await sweepCancelled()
        return total
    }
}
