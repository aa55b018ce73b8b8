internal import Core

/// Delayed items by the hosts for which they wait. The time to find them does not grow with their number.
struct DelayedWaits {
    /// Maximum items that are read one by one.
    static let maxSeen = 10_000
    /// Maximum further items that are only counted, in their index.
    private static let maxCounted = 50_000
    private static let maxHosts = 1_000

    private let db: Connection
    private let now: Moment

    /// - Parameter now: converts the ends of waits to the machine's clock.
    init(_ db: Connection, _ now: Moment) {
        self.db = db
        self.now = now
    }

    /// The number of delayed items, of one job or all open jobs, from the counters.
    func count(job: JobID? = nil) throws -> Int {
        let condition = job == nil ? "state IN ('queued', 'running', 'paused')" : "id = ?"
        let sum = "SELECT \(Schema.sum("delayed")) FROM jobs WHERE \(condition)"
        return max(0, try db.int(sum, job == nil ? [] : [job]) ?? 0)
    }

    func hosts(job: JobID?, limit: Int) throws -> [HostWaits] {
        let count = try count(job: job)
        if count <= Self.maxSeen { return try grouped(job: job, limit: limit).map { HostWaits($0, now: now) } }
        // For one job among many, even its hosts can't be found without reading its items.
        if let job, try self.count() > count { return try grouped(job: job, limit: limit).map(more) }
        return try sampled(limit: min(limit, Self.maxHosts))
    }

    private func more(_ row: Row) -> HostWaits {
        var waits = HostWaits(row, now: now)
        waits.isMore = true
        return waits
    }

    /// Reads all items one by one, up to the limit.
    private func grouped(job: JobID?, limit: Int) throws -> [Row] {
        let items = "SELECT waits_for, message, run_at FROM items WHERE state = 'delayed' AND waits_for IS NOT NULL"
        return try db.rows(
            """
            SELECT waits_for AS host, count(*) AS items, max(message) AS reason,
                coalesce(min(max(run_at), max(gives_up_at)), max(gives_up_at), max(run_at)) AS until
            FROM (\(items)\(job == nil ? "" : " AND job = ?2") LIMIT \(Self.maxSeen))
            LEFT JOIN hosts ON hosts.host = waits_for
            GROUP BY waits_for ORDER BY items DESC, waits_for LIMIT ?1
            """, job == nil ? [limit] : [limit, job])
    }

    /// Walks hosts along the index and counts at most a limited number of items of each. For a host with more items,
    /// the latest end of any delayed item is used.
    private func sampled(limit: Int) throws -> [HostWaits] {
        let row = try db.row(
            """
            WITH RECURSIVE found (host) AS (
                SELECT * FROM (SELECT waits_for FROM items WHERE state = 'delayed' AND waits_for IS NOT NULL
                    ORDER BY waits_for LIMIT 1)
                UNION ALL SELECT (SELECT waits_for FROM items WHERE state = 'delayed' AND waits_for > found.host
                    ORDER BY waits_for LIMIT 1) FROM found WHERE found.host IS NOT NULL
            ) SELECT count(*) AS count, json_group_array(host) AS names
                FROM (SELECT host FROM found LIMIT ?) WHERE host IS NOT NULL
            """, [limit + 1])
        guard let row, row.count("count") > 0 else { return [] }
        let (counted, seen) = (Self.maxCounted / row.count("count") + 1, Self.maxSeen / 2 / row.count("count") + 1)
        let ofHost = "FROM items WHERE state = 'delayed' AND waits_for = names.value"
        let waits = try db.rows(
            """
            SELECT names.value AS host, (SELECT count(*) FROM (SELECT 1 \(ofHost) LIMIT ?2)) AS items,
                (SELECT max(message) FROM (SELECT message \(ofHost) LIMIT ?3)) AS reason,
                (SELECT max(run_at) FROM (SELECT run_at \(ofHost) LIMIT ?3)) AS seen, gives_up_at,
                (SELECT max(run_at) FROM items WHERE state = 'delayed') AS last
            FROM json_each(?1) AS names LEFT JOIN hosts ON hosts.host = names.value LIMIT ?4
            """, [row.text("names"), counted, seen, limit])
        let areAll = waits.count < limit
        return waits.map { row in
            // If hosts are left out or items were not read, the latest end of any delayed item is the upper bound.
            let until = areAll && row.count("items") < seen ? row.steady("seen") : row.steady("last")
            let givesUp = row.steady("gives_up_at")
            return HostWaits(
                host: row.text("host") ?? "", items: row.count("items"), reason: row.text("reason") ?? "",
                until: (until.flatMap { until in givesUp.map { min(until, $0) } } ?? givesUp ?? until).map(now.wall),
                isMore: row.count("items") == counted || !areAll)
        }
    }
}
