internal import Core

/// The result of recounting the items of jobs.
public struct MendedJob: Hashable, Sendable {
    public let job: JobID
    /// One sentence that names the wrong counters.
    public let finding: String
}

extension JobControl {
    /// Open jobs with more items than this are recounted only on request. A recount of ended jobs stops after this many
    /// items, and the next recount continues there.
    private static let recountLimit: Int64 = 200_000

    /// Recounts the items of jobs, and corrects wrong counters: other programs may have repaired the file, changed it
    /// with triggers switched off, or written to columns that only triggers change. An ended job is recounted again
    /// only when its counters have changed.
    ///
    /// - Parameter always: also recounts open jobs of millions of items, at some million items a second.
    /// - Returns: the jobs whose counters were wrong.
    public func mendCounters(always: Bool = false) async throws(JobsError) -> [MendedJob] {
        var mended = try await mendStrays()
        for job in try await suspects(upTo: always ? .max : Self.recountLimit + 1) {
            if let one = try await recount(job).mended { mended.append(one) }
        }
        var left = Self.recountLimit
        var last: JobID = .min
        while left > 0 {
            let jobs = try await changedEndedJobs(after: last)
            if jobs.isEmpty { break }
            var counted: [JobID] = []
            for job in jobs where left > 0 {
                let result = try await recount(job)
                if let one = result.mended { mended.append(one) }
                left -= max(result.items, 1)
                counted.append(job)
                last = job
            }
            try await gate.write { [counted] db in
                let note = try RowStatement(
                    "INSERT OR REPLACE INTO recounts SELECT id, revision FROM jobs WHERE id = ?", in: db)
                for job in counted { try note.run(job) }
            }
        }
        return mended
    }

    private func recount(_ job: JobID) async throws(JobsError) -> (items: Int64, mended: MendedJob?) {
        let (items, isWrong) = try await gate.read { db in try Self.look(at: job, in: db) }
        guard isWrong, let finding = try await gate.write({ db in try Self.mend(job, in: db) }) else {
            return (items, nil)
        }
        return (items, MendedJob(job: job, finding: finding))
    }

    /// Open jobs, and jobs whose row breaks the table's own checks.
    private func suspects(upTo limit: Int64) async throws(JobsError) -> [JobID] {
        try await gate.read { db in
            // The items are counted, since the counter itself may be wrong.
            try db.integers(
                """
                SELECT id FROM jobs WHERE (\(Schema.isOpen())
                    AND (SELECT count(*) FROM (SELECT 1 FROM items WHERE job = jobs.id LIMIT ?1)) < ?1)
                    OR \(Self.isImpossible) ORDER BY id
                """, [limit])
        }
    }

    /// At most 1,000 ended jobs that were never recounted, or whose counters have changed since then.
    private func changedEndedJobs(after last: JobID) async throws(JobsError) -> [JobID] {
        try await gate.read { db in
            try db.integers(
                """
                SELECT id FROM jobs LEFT JOIN recounts ON recounts.job = jobs.id
                WHERE recounts.revision IS NOT jobs.revision AND NOT \(Schema.isOpen()) AND id > ?
                ORDER BY id LIMIT 1000
                """, [last])
        }
    }

    /// Mends jobs that are not open and have open items, and removes the items of jobs that are gone.
    private func mendStrays() async throws(JobsError) -> [MendedJob] {
        var mended: [MendedJob] = []
        var missing: [JobID] = []
        var hasItemsWithoutJobID = false
        for job in try await gate.read({ db in try Self.endedJobsOfOtherIndices(in: db) }) {
            if let one = try await recount(job).mended { mended.append(one) }
        }
        for source in Self.jobIndices {
            var last: JobID? = .min
            while let after = last {
                let strays: Strays
                (strays, last) = try await gate.read { db in try Self.strays(in: source, after: after, db) }
                for job in strays.ended { if let one = try await recount(job).mended { mended.append(one) } }
                missing += strays.missing
                hasItemsWithoutJobID = hasItemsWithoutJobID || strays.hasItemsWithoutJobID
            }
        }
        if hasItemsWithoutJobID {
            let count = try await gate.write { db in
                // These items left jobs whose counters no trigger has changed. Such a job may have ended, so all ended
                // jobs are recounted.
                try db.run("DELETE FROM recounts")
                return try db.change("DELETE FROM items WHERE typeof(job) <> 'integer'")
            }
            mended.append(MendedJob(job: 0, finding: "\(count) items of no job were removed."))
        }
        guard !missing.isEmpty else { return mended }
        // As after a list that was not completed.
        try await gate.write { [missing] db in
            let add = try RowStatement(
                "INSERT OR IGNORE INTO job_additions SELECT ?1 WHERE ?1 NOT IN (SELECT id FROM jobs)", in: db)
            for job in missing { try add.run(job) }
        }
        try await JobQueue(gate: gate).removeBrokenAdditions()
        return mended + missing.map { MendedJob(job: $0, finding: "Job \($0) is gone; its items were removed.") }
    }

    private struct Strays {
        /// Jobs that have ended and have open items.
        var ended: [JobID] = []
        /// Numbers of jobs that have items and are gone.
        var missing: [JobID] = []
        /// Whether items have something else than a whole number as their job.
        var hasItemsWithoutJobID = false
    }

    /// The indices that begin with the job: of open items, and of all.
    private static let jobIndices: [(source: String, areOpen: Bool)] = [
        ("items INDEXED BY items_queued WHERE state = 'queued' AND priority IS NULL", true),
        ("items INDEXED BY items_delayed_by_job WHERE state = 'delayed'", true),
        ("items INDEXED BY items_by_job WHERE TRUE", false),
    ]

    /// Ended jobs with open items that no index lists by their jobs: active ones, and those with a priority of their
    /// own.
    private static func endedJobsOfOtherIndices(in db: Connection) throws -> [JobID] {
        let isEnded = "EXISTS (SELECT 1 FROM jobs WHERE id = items.job AND NOT \(Schema.isOpen("jobs.")))"
        return try db.integers(
            """
            SELECT DISTINCT job FROM items INDEXED BY items_leased WHERE state = 'active' AND \(isEnded)
            UNION SELECT DISTINCT job FROM items INDEXED BY items_own_priority
                WHERE state = 'queued' AND priority IS NOT NULL AND \(isEnded)
            """)
    }

    /// Looks at the next jobs of an index, a slice of them: other calls wait for a read, too. It looks each job up
    /// instead of reading all rows.
    ///
    /// - Returns: also the last job; nil at the end of the index.
    private static func strays(
        in index: (source: String, areOpen: Bool), after: JobID, _ db: Connection,
    ) throws -> (Strays, last: JobID?) {
        let next = try RowStatement(
            "SELECT job, typeof(job) = 'integer' FROM \(index.source) AND job > ? ORDER BY job LIMIT 1", in: db)
        let nextNumber = try RowStatement(
            "SELECT job FROM \(index.source) AND job > ? AND typeof(job) = 'integer' ORDER BY job LIMIT 1", in: db)
        let isOpen = try RowStatement("SELECT \(Schema.isOpen()) FROM jobs WHERE id = ?", in: db)
        var strays = Strays()
        var last = after
        for _ in 0..<4_096 {
            var job: JobID?
            if let (found, isNumber) = try next.first(last, read: { ($0.integer(0), $0.integer(1) == 1) }) {
                job = found
                if !isNumber {
                    strays.hasItemsWithoutJobID = true
                    job = try nextNumber.first(last, read: { $0.integer(0) })
                }
            }
            guard let job else { return (strays, nil) }
            last = job
            let state = try isOpen.first(job, read: { $0.integer(0) })
            if index.areOpen, state == 0 { strays.ended.append(job) }
            if !index.areOpen, state == nil, try !db.exists("SELECT 1 FROM job_additions WHERE job = ?", [job]) {
                strays.missing.append(job)
            }
        }
        return (strays, last)
    }

    /// Whether a job's row breaks the table's own checks, which a shell can switch off: any change of such a row fails.
    static func hasImpossibleCounters(in db: Connection) throws -> Bool {
        try db.exists("SELECT 1 FROM jobs WHERE \(isImpossible)")
    }

    static func mendImpossible(in db: Connection) throws {
        for job in try db.integers("SELECT id FROM jobs WHERE \(isImpossible)") { _ = try mend(job, in: db) }
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
    private static func counts(of job: JobID, in db: Connection) throws -> (written: [Int64], counted: [Int64])? {
        let list = columns.joined(separator: ", ")
        guard
            let written = try RowStatement("SELECT \(list) FROM jobs WHERE id = ?", in: db)
                .first(job, read: { row in columns.indices.map { row.integer(CInt($0)) } }),
            let counted = try RowStatement(recount, in: db)
                .first(job, read: { row in columns.indices.map { row.integer(CInt($0)) } })
        else { return nil }
        return (written, counted)
    }

    private static func look(at job: JobID, in db: Connection) throws -> (items: Int64, isWrong: Bool) {
        guard let counts = try counts(of: job, in: db) else { return (0, false) }
        let isOpen = try db.exists("SELECT 1 FROM jobs WHERE id = ? AND \(Schema.isOpen())", [job])
        return try (
            counts.counted[0],
            counts.written != counts.counted || !isSound(job, in: db) || (isOpen && isOver(counts.counted)),
        )
    }

    private static func queueItemsWithoutState(of job: JobID, in db: Connection) throws {
        _ = try TriggerSwitch.withTriggers(false, db) {
            try db.run(
                """
                UPDATE items SET state = 'queued', lease = NULL, run_at = NULL, finished_at = NULL
                WHERE job = ? AND NOT (\(Schema.isOneOf(ItemState.self)))
                """, [job])
        }
    }

    /// Whether the job's row keeps the table's own checks. A counter may be text that reads as the right number.
    private static func isSound(_ job: JobID, in db: Connection) throws -> Bool {
        try !db.exists("SELECT 1 FROM jobs WHERE id = ? AND (\(isImpossible))", [job])
    }

    private static let isImpossible =
        "((state = 'finished' AND queued + active + delayed <> 0) OR NOT (\(Schema.addsUp(""))))"

    /// Whether a job with these counters has no open items. A job without any items waits for its first.
    private static func isOver(_ counted: [Int64]) -> Bool {
        counted[0] > 0 && counted[1] + counted[2] + counted[3] == 0
    }

    /// - Returns: a sentence if a counter was wrong.
    static func mend(_ job: JobID, in db: Connection) throws -> String? {
        guard var counts = try counts(of: job, in: db) else { return nil }
        var findings: [String] = []
        if counts.counted[0] != counts.counted.dropFirst().reduce(0, +) {
            try queueItemsWithoutState(of: job, in: db)
            findings.append("some of its items had unknown states, and are queued again")
            if let again = try self.counts(of: job, in: db) { counts = again }
        }
        if try counts.written != counts.counted || !isSound(job, in: db) {
            let assignments = columns.map { "\($0) = ?" }.joined(separator: ", ")
            let open = counts.counted[1...3].reduce(0, +)
            // Reopens a finished job that has open items.
            try db.run(
                """
                UPDATE jobs SET \(assignments), revision = revision + 1,
                    finished_at = CASE WHEN state = 'finished' AND ? > 0 THEN NULL ELSE finished_at END,
                    state = CASE WHEN state = 'finished' AND ? > 0 THEN 'queued' ELSE state END WHERE id = ?
                """, SQLValues(counts.counted + [open, open, job]))
            if counts.written == counts.counted {
                findings.append("its row had values that no worker writes, and was corrected")
            }
            findings += columns.indices.filter { counts.written[$0] != counts.counted[$0] }
                .map { "\(columns[$0]) was \(counts.written[$0]) and is \(counts.counted[$0])" }
        }
        if isOver(counts.counted) {
            let isChanged = try db.change(
                """
                UPDATE jobs SET state = 'finished', finished_at = coalesce(finished_at, \(Schema.now))
                WHERE id = ? AND \(Schema.isOpen())
                """, [job])
            // A worker may have finished the job in the meantime.
            if isChanged > 0 { findings.append("all of its items have ended, so it is finished") }
        }
        return findings.isEmpty ? nil : "Job \(job): " + findings.joined(separator: "; ") + "."
    }
}
