public import Core

/// A schedule as it is added.
public struct NewSchedule: Sendable {
    public var name: String
    /// The text of the manifest that each run enqueues.
    public var manifest: String
    /// The file that the manifest was read from.
    public var origin: String?
    public var cron: CronExpression
    public var zone = ScheduleZone.utc
    /// The time over which starts are spread, in milliseconds, a day at most.
    public var jitter: Int64 = 0
    public var missed = MissedRuns.once

    public init(name: String, manifest: String, cron: CronExpression) {
        self.name = name
        self.manifest = manifest
        self.cron = cron
    }

    /// A time such as `90s` or `5m`, a day at most, in milliseconds.
    public static func jitter(parsing text: String) throws(JobsError) -> Int64 {
        try JobSettings.time(text, "jitter", least: 0)
    }
}

/// How to treat runs that were due while no worker ran.
public enum MissedRuns: String, Sendable, CaseIterable, Codable {
    /// One run replaces all missed runs.
    case once
    /// The missed runs are skipped.
    case skip
}

/// A schedule with its next run and its last.
public struct ScheduleRecord: Encodable, Sendable {
    public let name: String
    public let cron: String
    public let timeZone: String
    /// Milliseconds.
    public let jitter: Int64
    public let missed: String
    public let paused: Bool
    public let origin: String?
    /// Nil if it is paused, wrong or not planned yet.
    public let nextDue: WallTime?
    /// When that run starts: its due time plus its part of the jitter.
    public let startsAt: WallTime?
    /// Why it cannot be planned.
    public let error: String?
    public let last: LastRun?
    /// When a run last ended in a job.
    public let lastSuccess: WallTime?

    public struct LastRun: Encodable, Sendable {
        public let dueAt: WallTime
        /// Nil while its sources are being read.
        public let outcome: String?
        public let job: JobID?
        public let message: String?
    }

    /// A row of `schedules`, joined with its last run.
    init(row: Row) {
        name = row["name"]
        cron = row["cron"]
        timeZone = row["time_zone"]
        jitter = row["jitter"]
        missed = row["missed"]
        paused = row["paused"]
        origin = row["origin"]
        nextDue = row.wall("next_due")
        startsAt = row.wall("starts_at")
        error = row["error"]
        lastSuccess = row.wall("last_success")
        last = row.wall("due_at").map {
            LastRun(dueAt: $0, outcome: row["outcome"], job: row.number("job"), message: row["message"])
        }
    }
}

/// A run that this program has taken, and whose sources it is to read now.
public struct ScheduleRun: Sendable {
    public let schedule: String
    public let due: WallTime
    /// The text of the manifest.
    public let manifest: String
    public let origin: String?
    let token: Int64
}

/// The result of a run.
public enum ScheduleOutcome: Sendable, Equatable {
    case enqueued(JobID)
    /// The job of an earlier run, or of a manual start, is unfinished.
    case joined(JobID)
    /// Another program has taken the run over, or the schedule was removed.
    case lost
}
