/// Checks, repairs, copies and prunes the database.
public struct Maintenance: Sendable {
    let gate: DatabaseGate

    /// The version of SQLite or PostgreSQL, and the findings of SQLite's integrity check (none if the database is
    /// intact).
    public func integrity() async throws(JobsError) -> (version: String, complaints: [String]) {
        try await gate.read { db in
            guard db.sqlite != nil else { return (try db.text("SELECT current_setting('server_version')") ?? "", []) }
            let lines = try db.texts("PRAGMA quick_check")
            let version = try db.text("SELECT sqlite_version()") ?? "unknown"
            return (version, lines.filter { $0 != "ok" })
        }
    }

    /// Rules that always hold, each with a query for the rows that break it.
    private static let rules: [(rule: String, query: String)] = [
        (
            "the counters of a job are the numbers of its items",
            """
            SELECT jobs.id FROM jobs LEFT JOIN (SELECT job, count(*) AS total, sum(state = 'queued') AS queued,
                sum(state = 'active') AS active, sum(state = 'delayed') AS delayed,
                sum(state = 'done' AND cached = 0) AS done, sum(state = 'done' AND cached <> 0) AS cached,
                sum(state = 'failed' AND blacklisted = 0) AS failed,
                sum(state = 'failed' AND blacklisted <> 0) AS blacklisted, sum(state = 'cancelled') AS cancelled
                FROM items GROUP BY job) AS counted ON counted.job = jobs.id
            WHERE jobs.total <> coalesce(counted.total, 0) OR (jobs.total > 0 AND (jobs.queued <> counted.queued
                OR jobs.active <> counted.active OR jobs.delayed <> counted.delayed OR jobs.done <> counted.done
                OR jobs.cached <> counted.cached OR jobs.failed <> counted.failed
                OR jobs.blacklisted <> counted.blacklisted OR jobs.cancelled <> counted.cancelled))
            """
        ),
        (
            "every item belongs to a job",
            """
            SELECT id FROM items WHERE job NOT IN (SELECT id FROM jobs)
                AND job NOT IN (SELECT job FROM job_additions)
            """
        ),
        (
            "an active item has a lease",
            "SELECT id FROM items WHERE state = 'active' AND coalesce(lease, 0) NOT IN (SELECT id FROM leases)"
        ),
        (
            "every entry's blob is in the index",
            "SELECT key FROM cache_entries WHERE blob NOT IN (SELECT hash FROM blobs)"
        ),
        (
            "the cache's size is the sum of its blobs' sizes",
            """
            SELECT id FROM cache_totals WHERE blobs <> (SELECT count(*) FROM blobs)
                OR bytes <> (SELECT coalesce(sum(size), 0) FROM blobs)
            """
        ),
        (
            "every variant's blob is in the index",
            "SELECT identity FROM variants WHERE blob NOT IN (SELECT hash FROM blobs)"
        ),
        (
            "every kept source's blob is in the index",
            "SELECT key FROM sources WHERE kept <> 0 AND hash NOT IN (SELECT hash FROM blobs)"
        ),
        (
            "a finished job has nothing left to do",
            "SELECT id FROM jobs WHERE state = 'finished' AND queued + active + delayed > 0"
        ),
        (
            "a failed item carries its reason",
            "SELECT id FROM items WHERE state = 'failed' AND (class IS NULL OR message IS NULL)"
        ),
    ]

    /// The broken rules, each with the number of rows and an example. Reads every item, so it takes a while on large
    /// queues.
    public func inconsistencies() async throws(JobsError) -> [String] {
        try await gate.read { db in
            try Self.rules.compactMap { rule, query in
                let count = try db.int("SELECT count(*) FROM (\(query))") ?? 0
                guard count > 0 else { return nil }
                let example = try db.text(query + " LIMIT 1") ?? "?"
                return "\(count) rows, such as \(example), break the rule: \(rule)."
            }
        }
    }

    /// Commits an update without effect, to test whether the disk accepts writes.
    public func probe() async throws(JobsError) {
        try await gate.write { db in
            try db.run("UPDATE cache_totals SET failed_syncs = failed_syncs WHERE id = 1")
        }
    }
}
