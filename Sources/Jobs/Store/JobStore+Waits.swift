internal import GRDB

extension JobStore {
    /// What keeps the queue from being empty, though this worker has nothing to do: a sentence for each reason.
    public func waits(of worker: Int64) async throws(JobsError) -> [String] {
        let reading = reading
        return try await read { db in
            let now = try Self.cacheTime(reading, in: db)
            return try Self.others(than: worker, in: db) + Self.delays(at: now, in: db) + Self.suspects(in: db)
        }
    }

    private static let isOpen =
        "EXISTS (SELECT 1 FROM jobs WHERE jobs.id = items.job AND (jobs.state = 'queued' OR jobs.state = 'running'))"

    private static func others(than worker: Int64, in db: Database) throws -> [String] {
        try Row.fetchAll(
            db,
            sql: """
                SELECT count(*) AS n, workers.pid AS pid, workers.host AS host FROM items
                LEFT JOIN leases ON leases.id = items.lease LEFT JOIN workers ON workers.id = leases.worker
                WHERE items.state = 'active' AND leases.worker IS NOT ? AND \(isOpen)
                GROUP BY leases.worker ORDER BY n DESC LIMIT 3
                """, arguments: [worker]
        ).map { row in
            let who = (row["pid"] as Int64?).map { "the worker of process \($0) on \(row["host"] ?? "?")" }
            return "\(items(row["n"])) in the hands of \(who ?? "a worker that is no more")."
        }
    }

    private static func delays(at now: Int64, in db: Database) throws -> [String] {
        let many = DelayedWaits(db)
        if try many.count() > DelayedWaits.mostSeen { return try delays(at: now, many) }
        return try Row.fetchAll(
            db,
            sql: """
                SELECT count(*) AS n, min(run_at) AS next, max(run_at) AS last, waits_for, max(message) AS message
                FROM items WHERE state = 'delayed' AND \(isOpen) GROUP BY waits_for ORDER BY n DESC LIMIT 4
                """
        ).map { row in
            let host = (row["waits_for"] as String?).map { " for \($0)" } ?? ""
            let next = seconds(until: row["next"], from: now)
            let last = seconds(until: row["last"], from: now)
            let time = next == last ? "\(next) s" : "\(next) to \(last) s"
            let reason = (row["message"] as String?).map { " (\(trimmed($0)))" } ?? ""
            return "\(items(row["n"])) put off\(host), for \(time) more\(reason)."
        }
    }

    /// The same of more items than are looked at each time.
    private static func delays(at now: Int64, _ many: DelayedWaits) throws -> [String] {
        let all = "\(try many.count()) items are put off."
        return try [all]
            + many.hosts(job: nil, limit: 1_000).sorted { $0.items > $1.items }.prefix(3).map { wait in
                let time = wait.until.map { ", for up to \(seconds(until: $0, from: now)) s more" } ?? ""
                let least = wait.isMore ? "At least \(wait.items)" : "\(wait.items)"
                return "\(least) of them for \(wait.host)\(time) (\(trimmed(wait.reason)))."
            }
    }

    private static func suspects(in db: Database) throws -> [String] {
        let count =
            try Int64.fetchOne(
                db, sql: "SELECT count(*) FROM items WHERE state = 'queued' AND deaths > 1 AND \(isOpen)") ?? 0
        return count == 0
            ? [] : ["\(items(count)) to be run apart from others, since workers died while they held them."]
    }

    private static func items(_ count: Int64) -> String { count == 1 ? "1 item is" : "\(count) items are" }

    private static func seconds(until time: Int64?, from now: Int64) -> Int64 {
        let (left, overflow) = (time ?? now).subtractingReportingOverflow(now)
        return overflow ? 0 : max(0, left) / 1_000
    }

    private static func trimmed(_ message: String) -> String {
        message.hasSuffix(".") ? String(message.dropLast()) : message
    }
}
