public import Core

/// A notice that a job has ended, while a worker sends it.
public struct JobNotice: Hashable, Sendable {
    public enum Target: Hashable, Sendable {
        case url(String)
        /// The command with which the worker was started.
        case command
    }

    public let job: JobID
    public let target: Target
    public let endedAt: WallTime
    /// The number of attempts, including this one.
    public let attempts: Int

    /// The same for every attempt, so that a receiver can recognise a notice that it has got already.
    public var id: String { "job-\(job)-\(endedAt.milliseconds)" }

    /// Attempts that are made before a notice counts as failed: over some four hours.
    public static let maxAttempts = 10

    /// How long until the next attempt, in milliseconds: 10 s, three times as long after each, and an hour at most.
    public var delay: Int64 {
        var delay: Int64 = 10_000
        for _ in 1..<max(1, attempts) { delay = min(3 * delay, 3_600_000) }
        return delay
    }
}

/// A job's notice, for users.
public struct NoticeRecord: Hashable, Sendable, Codable {
    public enum State: String, Sendable, Codable { case waiting, sent, failed }

    public let state: State
    public let attempts: Int
    /// When the next attempt is made; nil for a notice that is sent or has failed.
    public let dueAt: WallTime?
    /// Why the last attempt failed.
    public let message: String?
}
