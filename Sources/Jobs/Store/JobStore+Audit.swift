internal import GRDB

extension JobStore {
    /// Rules that hold at any moment, each as a query for what breaks it.
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
            WHERE jobs.total <> ifnull(counted.total, 0) OR (jobs.total > 0 AND (jobs.queued <> counted.queued
                OR jobs.active <> counted.active OR jobs.delayed <> counted.delayed OR jobs.done <> counted.done
                OR jobs.cached <> counted.cached OR jobs.failed <> counted.failed
                OR jobs.blacklisted <> counted.blacklisted OR jobs.cancelled <> counted.cancelled))
            """
        ),
        ("every item belongs to a job", "SELECT id FROM items WHERE job NOT IN (SELECT id FROM jobs)"),
        (
            "an active item is leased by somebody",
            "SELECT id FROM items WHERE state = 'active' AND ifnull(lease, 0) NOT IN (SELECT id FROM leases)"
        ),
        (
            "every entry's blob is in the index",
            "SELECT key FROM entries WHERE blob NOT IN (SELECT hash FROM blobs)"
        ),
        (
            "the cache's size is the sum of its blobs' sizes",
            """
            SELECT id FROM cache_totals WHERE blobs <> (SELECT count(*) FROM blobs)
                OR bytes <> (SELECT ifnull(sum(size), 0) FROM blobs)
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

    /// The rules that are broken, each with how often and an example. Reads every item; takes a while on large queues.
    public func inconsistencies() async throws(JobsError) -> [String] {
        try await read { db in
            try Self.rules.compactMap { rule, query in
                let count = try Int.fetchOne(db, sql: "SELECT count(*) FROM (\(query))") ?? 0
                guard count > 0 else { return nil }
                let example = try DatabaseValue.fetchOne(db, sql: query + " LIMIT 1")?.description ?? "?"
                return "Broken \(count) times, as by \(example): \(rule)."
            }
        }
    }

    /// How many of these blobs the index knows.
    public func known(blobs hashes: [String]) async throws(JobsError) -> Int {
        try await read { db in
            let statement = try db.cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM blobs WHERE hash = ?)")
            return try hashes.reduce(0) { count, hash in
                try Bool.fetchOne(statement, arguments: [hash]) == true ? count + 1 : count
            }
        }
    }
}
