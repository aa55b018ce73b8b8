internal import GRDB

/// What a recount of a job's items found, and what it changed.
public struct MendedJob: Hashable, Sendable {
    public let job: JobID
    /// One sentence: which counters were wrong.
    public let finding: String
}

extension JobStore {
    /// Open jobs with more items than this are recounted only where their counters stand in the way.
    private static let recountLimit = 200_000

    /// Recounts the items of open jobs, and mends counters that don't agree: those of a file that was repaired by other
    /// programs, or changed by one that switches triggers off.
    ///
    /// - Parameter always: also jobs of millions of items, which takes a second for each few millions.
    /// - Returns: the jobs whose counters were wrong.
    public func mendCounters(always: Bool = false) async throws(JobsError) -> [MendedJob] {
        let limit = always ? Int.max : Self.recountLimit
        let suspects = try await read { db in
            try Int64.fetchAll(
                db,
                sql: """
                    SELECT id FROM jobs WHERE (state = 'queued' OR state = 'running' OR state = 'paused') AND total <= ?
                    ORDER BY id
                    """, arguments: [limit])
        }
        var mended: [MendedJob] = []
        for job in suspects {
            guard try await read({ db in try Self.isMiscounted(job, in: db) }) else { continue }
            let finding = try await write { db in try Self.mend(job, in: db) }
            if let finding { mended.append(MendedJob(job: job, finding: finding)) }
        }
        return mended
    }

    private static let columns = [
        "total", "queued", "active", "delayed", "done", "cached", "failed", "blacklisted", "cancelled",
    ]

    private static let recount = """
        SELECT count(*) AS total, ifnull(sum(state = 'queued'), 0) AS queued, ifnull(sum(state = 'active'), 0) AS active,
            ifnull(sum(state = 'delayed'), 0) AS delayed, ifnull(sum(state = 'done' AND cached = 0), 0) AS done,
            ifnull(sum(state = 'done' AND cached <> 0), 0) AS cached,
            ifnull(sum(state = 'failed' AND blacklisted = 0), 0) AS failed,
            ifnull(sum(state = 'failed' AND blacklisted <> 0), 0) AS blacklisted,
            ifnull(sum(state = 'cancelled'), 0) AS cancelled
        FROM items WHERE job = ?
        """

    /// The job's counters and a recount of them, in the order of `columns`; nil where there is no such job.
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

    /// Whether a job with these counters has nothing left to do. One without items waits for its first.
    private static func isOver(_ counted: [Int64]) -> Bool {
        counted[0] > 0 && counted[1] + counted[2] + counted[3] == 0
    }

    /// - Returns: a sentence where something was wrong.
    private static func mend(_ job: JobID, in db: Database) throws -> String? {
        guard let counts = try counts(of: job, in: db) else { return nil }
        var findings: [String] = []
        if counts.written != counts.counted {
            let assignments = columns.map { "\($0) = ?" }.joined(separator: ", ")
            try db.execute(
                sql: "UPDATE jobs SET \(assignments), revision = revision + 1 WHERE id = ?",
                arguments: StatementArguments(counts.counted + [job]))
            findings += columns.indices.filter { counts.written[$0] != counts.counted[$0] }
                .map { "\(columns[$0]) was \(counts.written[$0]) and is \(counts.counted[$0])" }
        }
        if isOver(counts.counted) {
            try db.execute(
                sql: """
                    UPDATE jobs SET state = 'finished', finished_at = ifnull(finished_at, \(Schema.now))
                    WHERE id = ? AND (state = 'queued' OR state = 'running' OR state = 'paused')
                    """, arguments: [job])
            findings.append("all of its items have ended, so it is finished")
        }
        return findings.isEmpty ? nil : "Job \(job): " + findings.joined(separator: "; ") + "."
    }
}
