public import Core

/// The schedules: programs take due runs here, and record the results.
///
/// A due run is a row of `schedule_runs`, which exists once. A program that takes it marks the row, reads the sources
/// without a transaction, and then adds the job and ends the run in one transaction, if the mark is still its own. So
/// each run has one job, even with many workers, and a run whose program died is taken over.
public struct ScheduleBook: Sendable {
    let gate: DatabaseGate

    /// How long a run may go without renewal before another program takes it over, in milliseconds.
    public static let claimDuration: Int64 = 30_000
    /// A run that would start later than this counts as missed, in milliseconds.
    static let lateness: Int64 = 60_000
    /// How many runs of a schedule are kept.
    static let keptRuns = 100
    /// A run fails after this many programs began to read its sources and none finished: the sources may kill programs.
    static let maxTakers = 3

    // MARK: - Editing

    /// Adds a schedule, or replaces the schedule of this name.
    ///
    /// - Returns: whether it is new, and when its next run is due.
    /// - Throws: `refused` if it is never due.
    @discardableResult
    public func put(_ schedule: NewSchedule) async throws(JobsError) -> (isNew: Bool, nextDue: WallTime) {
        let now = gate.now()
        guard let due = schedule.cron.next(after: now, in: schedule.zone) else {
            throw JobsError(.refused, "The schedule '\(schedule.cron)' is never due.")
        }
        let isNew = try await gate.write { db in
            let isNew = try !db.exists("SELECT 1 FROM schedules WHERE name = ?", [schedule.name])
            // Not REPLACE, which would delete the runs.
            try db.run(
                """
                INSERT INTO schedules (name, manifest, origin, cron, time_zone, jitter, missed)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                ON CONFLICT (name) DO UPDATE SET manifest = ?2, origin = ?3, cron = ?4, time_zone = ?5, jitter = ?6, missed = ?7
                """,
                [
                    schedule.name, schedule.manifest, schedule.origin, schedule.cron.description,
                    schedule.zone.description, schedule.jitter, schedule.missed.rawValue,
                ])
            try Self.plan(schedule.name, due, jitter: schedule.jitter, in: db)
            return isNew
        }
        return (isNew, due)
    }

    public func all() async throws(JobsError) -> [ScheduleRecord] {
        try await gate.read { db in
            try db.rows(
                """
                SELECT schedules.*, run.due_at, run.outcome, run.job, run.message,
                    (SELECT max(ended_at) FROM schedule_runs WHERE schedule = name AND job IS NOT NULL) AS last_success
                FROM schedules LEFT JOIN schedule_runs AS run ON run.schedule = name
                    AND run.due_at = (SELECT max(due_at) FROM schedule_runs WHERE schedule = name)
                ORDER BY name
                """
            ).map(ScheduleRecord.init)
        }
    }

    /// - Returns: whether there was one.
    public func remove(_ name: String) async throws(JobsError) -> Bool {
        try await gate.write { db in try db.change("DELETE FROM schedules WHERE name = ?", [name]) > 0 }
    }

    /// Runs that are due during a pause are not made up for.
    ///
    /// - Returns: whether there is a schedule of this name.
    public func setPaused(_ name: String, _ isPaused: Bool) async throws(JobsError) -> Bool {
        try await gate.write { db in
            try db.change("UPDATE schedules SET paused = ? WHERE name = ?", [isPaused, name]) > 0
        }
    }

    // MARK: - Runs

    /// When there is something to take: now, or the start of the next run; nil without any schedule in force.
    public func nextTurn() async throws(JobsError) -> WallTime? {
        let now = gate.now()
        return try await gate.read { db in
            let turn = try db.row(
                """
                SELECT min(turn) AS turn FROM (
                    SELECT coalesce(starts_at, 0) AS turn FROM schedules WHERE paused = 0 AND error IS NULL
                    UNION ALL SELECT taken_at + \(Self.claimDuration) FROM schedule_runs
                        WHERE outcome IS NULL AND schedule IN (SELECT name FROM schedules))
                """)
            return turn?.wall("turn").map { max($0, now) }
        }
    }

    /// Takes a run that is due, or one that another program has begun and no longer renews.
    public func take() async throws(JobsError) -> ScheduleRun? {
        guard let turn = try await nextTurn(), turn <= gate.now() else { return nil }
        let now = gate.now()
        return try await gate.write { db in
            for row in try db.rows("SELECT * FROM schedules WHERE next_due IS NULL AND paused = 0 AND error IS NULL") {
                try Self.planFirst(of: row, after: now, in: db)
            }
            for row in try Self.abandoned(at: now, in: db) {
                if let run = try Self.takeOver(row, at: now, in: db) { return run }
            }
            let due = try db.rows(
                "SELECT * FROM schedules WHERE paused = 0 AND error IS NULL AND starts_at <= ? ORDER BY starts_at",
                [now.milliseconds])
            for row in due {
                if let run = try Self.takeDue(row, at: now, in: db) { return run }
            }
            return nil
        }
    }

    /// Takes a run at this moment, even if the schedule is not due.
    public func takeNow(_ name: String) async throws(JobsError) -> ScheduleRun? {
        let now = gate.now()
        return try await gate.write { db in
            guard let row = try db.row("SELECT * FROM schedules WHERE name = ?", [name]) else { return nil }
            // Never a whole second, since the runs of the schedule itself are due at whole seconds.
            var due = now.milliseconds % 1_000 == 0 ? now + 1 : now
            while try db.exists(
                "SELECT 1 FROM schedule_runs WHERE schedule = ? AND due_at = ?", [name, due.milliseconds])
            {
                due = due + 1
            }
            return try Self.begin(row, due: due, at: now, in: db)
        }
    }

    /// Renews a run that takes long, so that no other program takes it over.
    public func renew(_ run: ScheduleRun) async throws(JobsError) {
        let now = gate.now()
        try await gate.write(isDurable: false) { db in
            try db.run(
                "UPDATE schedule_runs SET taken_at = ? WHERE schedule = ? AND due_at = ? AND token = ?",
                [now.milliseconds, run.schedule, run.due.milliseconds, run.token])
        }
    }

    /// Gives a run up, so that another program takes it at once.
    public func release(_ run: ScheduleRun) async throws(JobsError) {
        try await gate.write { db in
            try db.run(
                """
                UPDATE schedule_runs SET taken_at = 0, token = NULL, takers = takers - 1
                WHERE schedule = ? AND due_at = ? AND token = ?
                """, [run.schedule, run.due.milliseconds, run.token])
        }
    }

    /// Adds the job of a run, unless an unfinished job has its key, and ends the run.
    ///
    /// - Parameters:
    ///   - job: with a `dedupeKey`, without URLs and items.
    package func finish(
        _ run: ScheduleRun, with job: NewJob,
        rows: ListRows,
    ) async throws(JobsError) -> ScheduleOutcome {
        let now = gate.now()
        return try await ListAddition(job, rows: rows, gate: gate).add(
            unless: { db in try Self.isOurs(run, in: db) ? nil : .lost },
            { id, db in
                if let id {
                    try Self.end(run, "enqueued", job: id, nil, at: now, in: db)
                    return .enqueued(id)
                }
                let id = try JobQueue.unfinishedJob(withDedupeKey: job.dedupeKey ?? "", in: db) ?? 0
                try Self.end(run, "joined", job: id, nil, at: now, in: db)
                return .joined(id)
            })
    }

    /// Ends a run whose sources could not be read.
    public func fail(_ run: ScheduleRun, _ message: String) async throws(JobsError) {
        let now = gate.now()
        try await gate.write { db in
            guard try Self.isOurs(run, in: db) else { return }
            try Self.end(run, "failed", job: nil, message, at: now, in: db)
        }
    }

    // MARK: - Steps

    private static func isOurs(_ run: ScheduleRun, in db: Connection) throws -> Bool {
        try db.exists(
            "SELECT 1 FROM schedule_runs WHERE schedule = ? AND due_at = ? AND token = ? AND outcome IS NULL",
            [run.schedule, run.due.milliseconds, run.token])
    }

    private static func end(
        _ run: ScheduleRun, _ outcome: String, job: JobID?, _ message: String?, at now: WallTime, in db: Connection,
    ) throws {
        try db.run(
            """
            UPDATE schedule_runs SET outcome = ?, job = ?, message = ?, ended_at = ?, token = NULL
            WHERE schedule = ? AND due_at = ?
            """, [outcome, job, message, now.milliseconds, run.schedule, run.due.milliseconds])
    }

    /// Takes the last of a schedule's runs that are due, and plans the one after it.
    private static func takeDue(_ row: Row, at now: WallTime, in db: Connection) throws -> ScheduleRun? {
        let name: String = row["name"]
        let jitter: Int64 = row["jitter"]
        guard let cron = try? CronExpression(parsing: row["cron"]),
            let zone = try? ScheduleZone(named: row["time_zone"]), let first = row.wall("next_due")
        else {
            // A user's SQL has made it invalid since; planning it again records the error.
            try db.run("UPDATE schedules SET next_due = NULL, starts_at = NULL WHERE name = ?", [name])
            try planFirst(of: row, after: now, in: db)
            return nil
        }
        // Every run that was due before this should have started, even with the full jitter.
        let started = now - jitter
        var due = first < started ? cron.last(from: first, through: started, in: zone) : first
        var next = cron.next(after: due, in: zone)
        while let later = next, later <= now, start(of: name, later, jitter) <= now {
            due = later
            next = cron.next(after: later, in: zone)
        }
        if let next {
            try plan(name, next, jitter: jitter, in: db)
        } else {
            try db.run(
                "UPDATE schedules SET next_due = NULL, starts_at = NULL, error = 'It is never due again.' WHERE name = ?",
                [name])
        }
        if row["missed"] == MissedRuns.skip.rawValue, now - start(of: name, due, jitter) > lateness {
            try db.run(
                """
                INSERT OR IGNORE INTO schedule_runs (schedule, due_at, taken_at, outcome, ended_at, message)
                VALUES (?, ?, ?, 'skipped', ?, 'No worker ran when it was due.')
                """, [name, due.milliseconds, now.milliseconds, now.milliseconds])
            return nil
        }
        return try begin(row, due: due, at: now, in: db)
    }

    /// - Returns: nil if the run has been taken before.
    private static func begin(_ row: Row, due: WallTime, at now: WallTime, in db: Connection) throws -> ScheduleRun? {
        let name: String = row["name"]
        let run = ScheduleRun(
            schedule: name, due: due, manifest: row["manifest"], origin: row["origin"],
            token: Int64.random(in: 1...Int64.max))
        let isNew = try db.change(
            "INSERT OR IGNORE INTO schedule_runs (schedule, due_at, taken_at, token) VALUES (?, ?, ?, ?)",
            [name, due.milliseconds, now.milliseconds, run.token])
        try db.run(
            """
            DELETE FROM schedule_runs WHERE schedule = ?1 AND outcome IS NOT NULL AND due_at <=
                (SELECT due_at FROM schedule_runs WHERE schedule = ?1 ORDER BY due_at DESC LIMIT 1 OFFSET \(keptRuns))
            """, [name])
        return isNew > 0 ? run : nil
    }

    /// Runs whose programs no longer renew them, with their schedules.
    private static func abandoned(at now: WallTime, in db: Connection) throws -> [Row] {
        try db.rows(
            """
            SELECT due_at, takers, schedules.* FROM schedule_runs JOIN schedules ON name = schedule
            WHERE outcome IS NULL AND taken_at <= ? ORDER BY taken_at LIMIT 1000
            """, [(now - claimDuration).milliseconds])
    }

    /// - Returns: nil if too many programs have taken it before; the run is then ended as failed.
    private static func takeOver(_ row: Row, at now: WallTime, in db: Connection) throws -> ScheduleRun? {
        let run = ScheduleRun(
            schedule: row["name"], due: row.wall("due_at") ?? now, manifest: row["manifest"], origin: row["origin"],
            token: Int64.random(in: 1...Int64.max))
        guard row["takers"] < maxTakers else {
            try end(
                run, "failed", job: nil,
                "\(maxTakers) programs began to read its lists, and none finished.",
                at: now, in: db)
            return nil
        }
        try db.run(
            "UPDATE schedule_runs SET taken_at = ?, token = ?, takers = takers + 1 WHERE schedule = ? AND due_at = ?",
            [now.milliseconds, run.token, run.schedule, run.due.milliseconds])
        return run
    }
}
