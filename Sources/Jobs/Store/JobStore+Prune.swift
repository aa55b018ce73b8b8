internal import GRDB

extension JobStore {
    /// What pruning removed.
    public struct Pruned: Hashable, Sendable, Codable {
        public var jobs = 0
        public var items = 0
        public var sources = 0
    }

    /// Removes jobs that ended before `time` with their items, and what is known of sources whose bytes are long gone.
    ///
    /// What is cached stays, and `worker get` finds it as before. A slice at a time, with a breath between two.
    ///
    /// - Parameter time: UTC milliseconds.
    public func prune(endedBefore time: Int64) async throws(JobsError) -> Pruned {
        var pruned = Pruned()
        var last: JobID = 0
        while let job = try await oldJob(endedBefore: time, after: last) {
            last = job
            var isLeft = true
            while isLeft {
                let count = try await pruneItems(of: job)
                pruned.items += count
                isLeft = count > 0
                try await checkpoint()
                await breathe()
            }
            // Nothing is removed from a job that somebody has retried meanwhile.
            pruned.jobs += try await write { db in
                try db.execute(
                    sql: "DELETE FROM jobs WHERE id = ? AND state IN ('finished', 'cancelled', 'failed') AND total = 0",
                    arguments: [job])
                return db.changesCount
            }
        }
        var key = ""
        while let (count, end) = try await pruneSources(fetchedBefore: time, after: key) {
            pruned.sources += count
            key = end
            if count > 0 {
                try await checkpoint()
                await breathe()
            }
        }
        while try await pruneBlacklist(expiredBefore: time) > 0 { await breathe() }
        try await noteSlices()
        return pruned
    }

    private func oldJob(endedBefore time: Int64, after last: JobID) async throws(JobsError) -> JobID? {
        try await read { db in
            try Int64.fetchOne(
                db,
                sql: """
                    SELECT id FROM jobs WHERE state IN ('finished', 'cancelled', 'failed') AND finished_at < ?
                        AND id > ? AND queued + active + delayed = 0 ORDER BY id LIMIT 1
                    """,
                arguments: [time, last])
        }
    }

    private func pruneItems(of job: JobID) async throws(JobsError) -> Int {
        try await writeSlice(.prune) { db, rows in
            let isEnded = try Bool.fetchOne(
                db, sql: "SELECT state IN ('finished', 'cancelled', 'failed') FROM jobs WHERE id = ?", arguments: [job])
            guard isEnded == true else { return (0, 0) }
            try db.execute(
                sql: """
                    DELETE FROM items WHERE id IN (SELECT id FROM items
                        WHERE job = ? AND state IN ('done', 'failed', 'cancelled') LIMIT ?)
                    """,
                arguments: [job, rows])
            return (db.changesCount, db.changesCount)
        }
    }

    /// - Returns: how many went of the next slice of keys, and where it ended; nil behind the last.
    private func pruneSources(
        fetchedBefore time: Int64, after last: String,
    ) async throws(JobsError) -> (count: Int, end: String)? {
        let rows = slices.rows(.prune)
        let keys = try await read { db in
            try String.fetchAll(
                db, sql: "SELECT key FROM sources WHERE key > ? ORDER BY key LIMIT ?", arguments: [last, rows])
        }
        guard let end = keys.last else { return nil }
        let idle = """
            key > ? AND key <= ? AND kept = 0 AND fetched_at < ?
            AND NOT EXISTS (SELECT 1 FROM variants WHERE variants.source = sources.hash)
            AND NOT EXISTS (SELECT 1 FROM pins WHERE pins.key = sources.key)
            """
        let isSome = try await read { db in
            try Bool.fetchOne(
                db, sql: "SELECT EXISTS (SELECT 1 FROM sources WHERE \(idle))", arguments: [last, end, time])
        }
        guard isSome == true else { return (0, end) }
        let count = try await writeSlice(.prune) { db, _ in
            let hashes = try String.fetchAll(
                db, sql: "SELECT hash FROM sources WHERE \(idle)", arguments: [last, end, time])
            try db.execute(sql: "DELETE FROM sources WHERE \(idle)", arguments: [last, end, time])
            let count = db.changesCount
            for hash in Set(hashes) {
                try Self.forgetFacts(ofUnused: hash, in: db)
            }
            return (count, count)
        }
        return (count, end)
    }

    /// Entries that are no longer in force, and were not for as long as jobs are kept.
    private func pruneBlacklist(expiredBefore time: Int64) async throws(JobsError) -> Int {
        let isSome = try await read { db in
            try Bool.fetchOne(
                db, sql: "SELECT EXISTS (SELECT 1 FROM blacklist_entries WHERE expires_at < ?)", arguments: [time])
        }
        guard isSome == true else { return 0 }
        return try await writeSlice(.prune) { db, rows in
            try db.execute(
                sql: """
                    DELETE FROM blacklist_entries WHERE url IN
                        (SELECT url FROM blacklist_entries WHERE expires_at < ? LIMIT ?)
                    """,
                arguments: [time, rows])
            return (db.changesCount, db.changesCount)
        }
    }

    private func breathe() async {
        // Cancellation only cuts the nap short.
        try? await Task.sleep(for: .milliseconds(2))
    }
}
