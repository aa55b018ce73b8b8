internal import Core

extension JobReports {
    /// Why an idle worker's queue is not empty: a sentence for each reason.
    public func waits(of worker: Int64) async throws(JobsError) -> [String] {
        let reading = gate.reading
        return try await gate.read { db in
            let now = try reading.moment(in: db)
            return try Self.others(than: worker, in: db) + Self.delays(at: now, in: db) + Self.suspects(in: db)
        }
    }

    private static let isOpen =
        "EXISTS (SELECT 1 FROM jobs WHERE jobs.id = items.job AND (jobs.state = 'queued' OR jobs.state = 'running'))"

    private static func others(than worker: Int64, in db: Connection) throws -> [String] {
        try db.rows(
            """
            SELECT count(*) AS n, max(workers.pid) AS pid, max(workers.host) AS host FROM items
            LEFT JOIN leases ON leases.id = items.lease LEFT JOIN workers ON workers.id = leases.worker
            WHERE items.state = 'active' AND leases.worker IS NOT ? AND \(isOpen)
            GROUP BY leases.worker ORDER BY n DESC LIMIT 3
            """, [worker]
        ).map { row in
            let who = (row["pid"] as Int64?).map { "the worker of process \($0) on \(row["host"] ?? "?")" }
            return "\(items(row["n"])) active in \(who ?? "a worker that has died")."
        }
    }

    private static func delays(at now: Moment, in db: Connection) throws -> [String] {
        let many = DelayedWaits(db, now)
        if try many.count() > DelayedWaits.maxSeen { return try delays(at: now.wall, many) }
        return try db.rows(
            """
            SELECT count(*) AS n, min(run_at) AS next, max(run_at) AS last, waits_for, max(message) AS message
            FROM items WHERE state = 'delayed' AND \(isOpen) GROUP BY waits_for ORDER BY n DESC LIMIT 4
            """
        ).map { row in
            let host = (row["waits_for"] as String?).map { " for \($0)" } ?? ""
            let next = seconds(until: row.steady("next"), from: now.steady)
            let last = seconds(until: row.steady("last"), from: now.steady)
            let time = next == last ? "\(next) s" : "\(next) to \(last) s"
            let reason = (row["message"] as String?).map { " (\(trimmed($0)))" } ?? ""
            return "\(items(row["n"])) delayed\(host), for \(time) more\(reason)."
        }
    }

    /// The same if there are more delayed items than can be read each time.
    private static func delays(at now: WallTime, _ many: DelayedWaits) throws -> [String] {
        let all = "\(try many.count()) items are delayed."
        return try [all]
            + many.hosts(job: nil, limit: 1_000).sorted { $0.items > $1.items }.prefix(3).map { wait in
                let time = wait.until.map { ", for up to \(seconds(until: $0, from: now)) s more" } ?? ""
                let least = wait.isMore ? "At least \(wait.items)" : "\(wait.items)"
                return "\(least) of them for \(wait.host)\(time) (\(trimmed(wait.reason)))."
            }
    }

    private static func suspects(in db: Connection) throws -> [String] {
        let count =
            try db.integer("SELECT count(*) FROM items WHERE state = 'queued' AND deaths > 1 AND \(isOpen)") ?? 0
        return count == 0
            ? [] : ["\(items(count)) to be run apart from others, since workers died while processing them."]
    }

    private static func items(_ count: Int64) -> String { count == 1 ? "1 item is" : "\(count) items are" }

    private static func seconds<Time: ClockTime>(until time: Time?, from now: Time) -> Int64 {
        max(0, (time ?? now) - now) / 1_000
    }

    private static func trimmed(_ message: String) -> String {
        message.hasSuffix(".") ? String(message.dropLast()) : message
    }
}
