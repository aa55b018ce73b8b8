public import Core

extension Maintenance {
    /// The numbers of removed rows.
    public struct Pruned: Hashable, Sendable, Codable {
        public var jobs = 0
        public var items = 0
        public var sources = 0
    }

    /// The jobs and items that ``prune(endedBefore:)`` would remove.
    public func prunable(endedBefore time: SteadyTime) async throws(JobsError) -> Pruned {
        try await gate.read { db in
            let row = try db.row(
                """
                SELECT count(*) AS jobs, \(Schema.sum("total")) AS items FROM jobs LEFT JOIN job_ends ON job = id
                WHERE state IN ('finished', 'cancelled', 'failed') AND coalesce(ended_at, finished_at) < ?
                """, [time.milliseconds])
            return Pruned(jobs: row?["jobs"] ?? 0, items: row?["items"] ?? 0)
        }
    }

    /// Removes jobs that ended before `time`, with their items, and source rows without bytes that were last used
    /// before `time`.
    ///
    /// Cached files stay, and `worker get` still finds them. It works in slices and pauses between them. A cancelled
    /// task stops after a slice; the next call goes on.
    public func prune(endedBefore time: SteadyTime) async throws(JobsError) -> Pruned {
        // A job that a shell has cancelled is not over until its items are cancelled as well.
        try await JobControl(gate: gate).sweepCancelled()
        try await JobQueue(gate: gate).removeBrokenAdditions()
        var pruned = Pruned()
        var sliceCount = 0
        var last: JobID = 0
        while !Task.isCancelled {
            let jobs = try await oldJobs(endedBefore: time, after: last)
            guard let end = jobs.last else { break }
            last = end.id
            // Most jobs have no cache-key rule, and many of them fit into one slice.
            var plain = jobs.filter { !$0.hasRule }.map(\.id)[...]
            while !plain.isEmpty, !Task.isCancelled {
                let slice = try await pruneJobs(plain)
                pruned.items += slice.items
                pruned.jobs += slice.jobs
                plain = plain.dropFirst(slice.handled)
                try await pause(after: &sliceCount)
            }
            for job in jobs where job.hasRule && !Task.isCancelled { try await prune(job.id, &pruned, &sliceCount) }
        }
        var key = ""
        while !Task.isCancelled, let (count, end) = try await pruneSources(usedBefore: time, after: key) {
            pruned.sources += count
            key = end
            if count > 0 { try await pause(after: &sliceCount) }
        }
        while !Task.isCancelled, try await pruneBlacklist(expiredBefore: time) > 0 { await gate.breathe() }
        try await gate.noteSlices()
        return pruned
    }

    /// Prunes a job whose cache-key rule must be stored, one slice of its items after another.
    private func prune(_ job: JobID, _ pruned: inout Pruned, _ sliceCount: inout Int) async throws(JobsError) {
        var isLeft = true
        while isLeft, !Task.isCancelled {
            let count = try await pruneItems(of: job)
            pruned.items += count
            isLeft = count > 0
            try await pause(after: &sliceCount)
        }
        // A job that was retried meanwhile is kept.
        pruned.jobs += try await gate.write { db in
            return try db.change(Self.deleteEmpty, [job])
        }
    }

    private static let deleteEmpty =
        "DELETE FROM jobs WHERE id = ? AND state IN ('finished', 'cancelled', 'failed') AND total = 0"

    private func oldJobs(
        endedBefore time: SteadyTime, after last: JobID,
    ) async throws(JobsError) -> [(id: JobID, hasRule: Bool)] {
        try await gate.read { db in
            try db.rows(
                """
                SELECT id, coalesce(options, '') LIKE '%cache-key%' AS has_rule FROM jobs LEFT JOIN job_ends ON job = id
                WHERE state IN ('finished', 'cancelled', 'failed') AND coalesce(ended_at, finished_at) < ?
                    AND id > ? AND queued + active + delayed = 0 ORDER BY id LIMIT 1000
                """, [time.milliseconds, last]
            ).map { (id: $0["id"], hasRule: $0["has_rule"]) }
        }
    }

    private struct Slice: Sendable {
        var items = 0
        var jobs = 0
        /// Completed jobs: they were removed, or retried meanwhile.
        var handled = 0
    }

    /// Removes items of these jobs, and jobs without items, until the slice is over.
    private func pruneJobs(_ jobs: ArraySlice<JobID>) async throws(JobsError) -> Slice {
        try await gate.writeSlice(.prune) { db, rows in
            let end = SliceLedger.now() + DatabaseGate.sliceNanoseconds
            var slice = Slice()
            for job in jobs where slice.items < rows {
                if slice.handled > 0, SliceLedger.now() >= end { break }
                guard try Self.prune(job, &slice, upTo: rows - slice.items, in: db) else { break }
                slice.handled += 1
            }
            return (slice, slice.items)
        }
    }

    /// - Returns: whether the job is completed.
    private static func prune(_ job: JobID, _ slice: inout Slice, upTo limit: Int, in db: Connection) throws -> Bool {
        let select = try RowStatement(
            """
            SELECT items.id FROM items JOIN jobs ON jobs.id = items.job WHERE items.job = ?
                AND items.state IN ('done', 'failed', 'cancelled')
                AND jobs.state IN ('finished', 'cancelled', 'failed') LIMIT ?
            """, in: db)
        let items = try select.all(job, limit) { $0.integer(0) }
        let total = try RowStatement("SELECT total FROM jobs WHERE id = ?", in: db).first(job) { $0.integer(0) }
        let goesWhole = total == Int64(items.count)
        let deleteItem = try RowStatement("DELETE FROM items WHERE id = ?", in: db)
        if goesWhole {
            // The job is removed with its counters, so they need no update.
            let moves = try JobCounterBatch(in: db)
            try moves.announceAll(of: job, to: "deleted")
            for item in items { try deleteItem.run(item) }
            try moves.addUp(in: db)
            try RowStatement(
                "DELETE FROM jobs WHERE id = ? AND state IN ('finished', 'cancelled', 'failed') AND total = ?", in: db
            ).run(job, items.count)
        } else {
            for item in items { try deleteItem.run(item) }
            try RowStatement(deleteEmpty, in: db).run(job)
        }
        slice.items += items.count
        let isGone = try db.changesCount() > 0
        if isGone { slice.jobs += 1 }
        return isGone || items.isEmpty
    }

    private func pruneItems(of job: JobID) async throws(JobsError) -> Int {
        let keys = try await keysByRule(of: job)
        return try await gate.writeSlice(.prune) { db, rows in
            let isEnded = try db.flag(
                "SELECT state IN ('finished', 'cancelled', 'failed') FROM jobs WHERE id = ?", [job])
            guard isEnded == true else { return (0, 0) }
            let ended = try db.integers(
                "SELECT id FROM items WHERE job = ? AND state IN ('done', 'failed', 'cancelled') LIMIT ?",
                [job, keys.map { min(rows, $0.limit) } ?? rows])
            let count = try DatabaseGate.untilTimeIsUp(ended) { item in
                if let keys, let key = keys.made[item] { try CacheIndex.remember(keys.rule, of: key, in: db) }
                try db.run("DELETE FROM items WHERE id = ?", [item])
            }
            return (count, count)
        }
    }

    /// The keys that a job's rule made of the next items. They are computed outside the write lock, since a pattern may
    /// be slow.
    ///
    /// - Returns: nil for a job without a rule.
    private func keysByRule(
        of job: JobID,
    ) async throws(JobsError) -> (rule: CacheKeyRule, made: [Int64: String], limit: Int)? {
        let limit = 200
        let options = try await gate.read { db in
            try db.text("SELECT options FROM jobs WHERE id = ?", [job])
        }
        // Best effort: unreadable options, and patterns that take too long, make no key.
        guard let rule = (try? JobSettings(parsing: options))?.cacheKey else { return nil }
        let items = try await gate.read { db in
            let rows = try db.rows(
                """
                SELECT id, CASE state WHEN 'done' THEN url END AS url FROM items
                WHERE job = ? AND state IN ('done', 'failed', 'cancelled') LIMIT ?
                """, [job, limit])
            return rows.map { row in (id: row["id"] as Int64, url: row["url"] as String?) }
        }
        var made: [Int64: String] = [:]
        for item in items {
            // Best effort: a pattern that takes too long makes no key.
            guard let url = item.url, let key = try? rule.key(of: url), key != URLText.cacheKey(url) else { continue }
            made[item.id] = key
        }
        return (rule, made, limit)
    }

    /// - Returns: the number of removed rows among the next slice of keys, and the last key; nil after the last slice.
    private func pruneSources(
        usedBefore time: SteadyTime, after last: String,
    ) async throws(JobsError) -> (count: Int, end: String)? {
        let rows = gate.slices.rows(.prune)
        let keys = try await gate.read { db in
            try db.texts("SELECT key FROM sources WHERE key > ? ORDER BY key LIMIT ?", [last, rows])
        }
        guard let end = keys.last, PageOrder.isBeyond([last], [end]) else { return nil }
        let idle = """
            key > ? AND key <= ? AND kept = 0 AND used_at < ?
            AND NOT EXISTS (SELECT 1 FROM variants WHERE variants.source = sources.hash)
            AND NOT EXISTS (SELECT 1 FROM pins WHERE pins.key = sources.key)
            """
        guard try await gate.exists("SELECT 1 FROM sources WHERE \(idle)", [last, end, time.milliseconds]) else {
            return (0, end)
        }
        return try await gate.writeSlice(.prune) { db, _ in
            let sources = try db.rows(
                "SELECT key, hash FROM sources WHERE \(idle) ORDER BY key", [last, end, time.milliseconds])
            let count = try DatabaseGate.untilTimeIsUp(sources) { source in
                try db.run("DELETE FROM sources WHERE key = ?", [source["key"] as String])
                try CacheIndex.forgetRules(of: source["key"], in: db)
                try CacheIndex.forgetFacts(ofUnused: source["hash"], in: db)
            }
            return ((count, count < sources.count ? sources[count - 1]["key"] : end), count)
        }
    }

    /// Removes entries that expired before the retention time.
    private func pruneBlacklist(expiredBefore time: SteadyTime) async throws(JobsError) -> Int {
        guard try await gate.exists("SELECT 1 FROM blacklist_entries WHERE expires_at < ?", [time.milliseconds]) else {
            return 0
        }
        return try await gate.writeSlice(.prune) { db, rows in
            try db.run(
                """
                DELETE FROM blacklist_entries WHERE url IN
                    (SELECT url FROM blacklist_entries WHERE expires_at < ? LIMIT ?)
                """, [time.milliseconds, rows])
            return (try db.changesCount(), try db.changesCount())
        }
    }

    /// Lets other programs write, and after every 32 slices moves the log into the database. Moving the log syncs, and
    /// after each slice it would take longer than the slices.
    private func pause(after sliceCount: inout Int) async throws(JobsError) {
        sliceCount += 1
        if sliceCount.isMultiple(of: 32) { try await checkpoint() }
        await gate.breathe()
    }
}
