internal import Core

/// When schedules are due next.
extension ScheduleBook {
    /// Plans again, for an earlier time, the schedules that were planned while the machine's clock was ahead.
    public func planAnew() async throws(JobsError) {
        let now = gate.now()
        try await gate.write { db in
            for row in try db.rows("SELECT * FROM schedules WHERE next_due IS NOT NULL") {
                // Best effort: rows that a user's SQL has made invalid are reported when they are taken.
                guard let cron = try? CronExpression(parsing: row["cron"]),
                    let zone = try? ScheduleZone(named: row["time_zone"]), let planned = row.wall("next_due"),
                    let due = cron.next(after: now, in: zone), due < planned
                else { continue }
                let name: String = row["name"]
                // If the clock was set back by a little, a run must not start twice.
                let isDone = try db.exists(
                    "SELECT 1 FROM schedule_runs WHERE schedule = ? AND due_at >= ? AND due_at < ?",
                    [name, due.milliseconds, planned.milliseconds])
                if !isDone { try Self.plan(name, due, jitter: row["jitter"], in: db) }
            }
        }
    }

    static func planFirst(of row: Row, after now: WallTime, in db: Connection) throws {
        let name: String = row["name"]
        do {
            let due = try CronExpression(parsing: row["cron"]).next(
                after: now, in: ScheduleZone(named: row["time_zone"]))
            guard let due else { throw JobsError(.refused, "The schedule '\(row["cron"] as String)' is never due.") }
            try plan(name, due, jitter: row["jitter"], in: db)
        } catch let error as JobsError {
            // A user's SQL wrote an invalid row. It is planned again when its cron or its time zone is changed.
            try db.run("UPDATE schedules SET error = ? WHERE name = ?", [error.message, name])
        }
    }

    static func plan(_ name: String, _ due: WallTime, jitter: Int64, in db: Connection) throws {
        try db.run(
            "UPDATE schedules SET next_due = ?, starts_at = ?, error = NULL WHERE name = ?",
            [due.milliseconds, start(of: name, due, jitter).milliseconds, name])
    }

    /// The start of a run, which every worker computes alike: the due time and a part of the jitter.
    static func start(of name: String, _ due: WallTime, _ jitter: Int64) -> WallTime {
        guard jitter > 0 else { return due }
        // FNV-1a, since Swift's own hashes differ from process to process.
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in "\(name) \(due)".utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return due + Int64((hash >> 11) % UInt64(min(jitter, ScheduleSchema.longestJitter)))
    }
}
