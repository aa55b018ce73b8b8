/// Lists that were not completed: the program that added them was killed, or an error ended it.
extension JobQueue {
    /// Removes the items of such lists, for at most `limit` milliseconds.
    ///
    /// - Returns: the number of removed items.
    @discardableResult
    public func removeBrokenAdditions(within limit: Int64 = .max) async throws(JobsError) -> Int {
        // Usually there are none, and this takes no write lock.
        guard try await gate.exists("SELECT 1 FROM job_additions") else { return 0 }
        let start = SliceLedger.now() / 1_000_000
        var total = 0
        var isLeft = true
        while isLeft, SliceLedger.now() / 1_000_000 - start < limit {
            let begun = SliceLedger.now()
            let slice = try await removeSlice()
            total += slice.count
            isLeft = slice.isLeft
            await gate.breathe(after: SliceLedger.now() - begun)
        }
        return total
    }

    private func removeSlice() async throws(JobsError) -> (count: Int, isLeft: Bool) {
        let liveness = gate.liveness
        return try await gate.writeSlice(.enqueue) { db, rows in
            let all = try db.integers("SELECT job FROM job_additions ORDER BY job LIMIT 1000")
            guard let job = all.first(where: { !liveness.isBeingAdded($0) }) else { return ((0, false), 0) }
            // A row that damage has brought back.
            if try db.exists("SELECT 1 FROM jobs WHERE id = ?", [job]) {
                try db.run("DELETE FROM job_additions WHERE job = ?", [job])
                return ((0, true), 1)
            }
            // The items have no job whose counters change.
            let moves = try JobCounterBatch(in: db)
            try moves.announceAll(of: job, to: "deleted")
            let count = try db.change(
                "DELETE FROM items WHERE id IN (SELECT id FROM items WHERE job = ? LIMIT ?)", [job, rows])
            try moves.addUp(in: db)
            if count < rows { try db.run("DELETE FROM job_additions WHERE job = ?", [job]) }
            return ((count, true), count)
        }
    }
}
