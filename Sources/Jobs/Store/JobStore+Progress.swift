internal import GRDB

/// A job as people watch it: a row of the view `progress`.
public struct JobProgress: Hashable, Sendable, Codable {
    public let job: JobID
    public let name: String?
    public let state: JobState
    public let priority: Int
    public let total, ended, queued, active, delayed: Int
    public let done, cached, failed, blacklisted, cancelled: Int
    /// Downloaded by the job's items that are done.
    public let bytes: Int64
    public let percent: Double
    public let createdAt: String?
    public let startedAt: String?
    public let finishedAt: String?
    public let error: String?
}

/// What is left to do, over all jobs that are not paused.
public struct Backlog: Hashable, Sendable {
    public let queued, active, delayed: Int
    /// When the next delayed item is due, in UTC milliseconds.
    public let nextDue: Int64?

    public init(queued: Int, active: Int = 0, delayed: Int = 0, nextDue: Int64? = nil) {
        self.queued = queued
        self.active = active
        self.delayed = delayed
        self.nextDue = nextDue
    }

    public var isEmpty: Bool { queued + active + delayed == 0 }
}

extension JobStore {
    /// One job, or `nil` if there is none with this id.
    public func progress(job: JobID) async throws(JobsError) -> JobProgress? {
        try await read { db in
            try Row.fetchOne(db, sql: "SELECT * FROM progress WHERE job = ?", arguments: [job]).map(progressRow)
        }
    }

    /// Unfinished jobs and the latest ended ones, the newest first.
    public func progress(latest limit: Int = 20) async throws(JobsError) -> [JobProgress] {
        try await read { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT * FROM progress WHERE job IN (SELECT id FROM jobs WHERE state IN ('queued', 'running', 'paused')
                        UNION ALL SELECT id FROM (SELECT id FROM jobs ORDER BY id DESC LIMIT ?))
                    ORDER BY job DESC LIMIT 1000
                    """,
                arguments: [limit],
            ).map(progressRow)
        }
    }

    public func backlog() async throws(JobsError) -> Backlog {
        try await read { db in
            let row = try Row.fetchOne(
                db,
                sql: """
                    SELECT ifnull(sum(queued), 0) AS queued, ifnull(sum(active), 0) AS active,
                        ifnull(sum(delayed), 0) AS delayed,
                        (SELECT min(run_at) FROM items WHERE state = 'delayed') AS next_due
                    FROM jobs WHERE state IN ('queued', 'running')
                    """,
            )
            return Backlog(
                queued: row?["queued"] ?? 0, active: row?["active"] ?? 0, delayed: row?["delayed"] ?? 0,
                nextDue: row?["next_due"],
            )
        }
    }

    /// What the jobs that were open or ended since `time` have come to, for a run's last line and exit code.
    public func summary(jobs: Set<JobID>) async throws(JobsError) -> [JobProgress] {
        try await read { db in
            try jobs.sorted().compactMap { job in
                try Row.fetchOne(db, sql: "SELECT * FROM progress WHERE job = ?", arguments: [job]).map(progressRow)
            }
        }
    }
}

private func progressRow(_ row: Row) -> JobProgress {
    let state: String = row["state"]
    return JobProgress(
        job: row["job"], name: row["name"], state: JobState(rawValue: state) ?? .failed, priority: row["priority"],
        total: row["total"], ended: row["ended"], queued: row["queued"], active: row["active"], delayed: row["delayed"],
        done: row["done"], cached: row["cached"], failed: row["failed"], blacklisted: row["blacklisted"],
        cancelled: row["cancelled"], bytes: row["bytes"], percent: row["percent"], createdAt: row["created_at"],
        startedAt: row["started_at"], finishedAt: row["finished_at"], error: row["error"],
    )
}
