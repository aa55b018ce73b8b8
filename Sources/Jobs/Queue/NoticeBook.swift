internal import Core

/// The notices of ended jobs: workers take due ones here and record the results.
///
/// A worker that takes a notice moves its due time into the future, so that another worker takes it over if this one
/// dies. A receiver may get a notice twice, and recognises it by its id.
public struct NoticeBook: Sendable {
    let gate: DatabaseGate

    /// Another worker takes over a notice whose sender has said nothing for this long, in milliseconds.
    static let claimDuration: Int64 = 120_000

    /// Takes the notice that has been due for the longest time.
    ///
    /// - Parameter takesCommands: whether notices that a command gets are taken.
    /// - Returns: nil if none is due.
    public func take(takesCommands: Bool) async throws(JobsError) -> JobNotice? {
        let now = gate.now()
        // Checked by a read first, so that a call that finds nothing takes no write lock.
        guard try await gate.exists(Self.due, [now.milliseconds, takesCommands]) else { return nil }
        return try await gate.write { db in
            guard let row = try db.row(Self.due, [now.milliseconds, takesCommands]) else { return nil }
            let target: String = row["notify"]
            let attempts: Int64 = row["attempts"]
            let notice = JobNotice(
                job: row["job"], target: target == Schema.notifyCommand ? .command : .url(target),
                endedAt: WallTime(clamping: row["ended_at"]), attempts: Int(clamping: min(max(attempts, 0), 1_000) + 1))
            // `ended_at` is written as it was read: SQL may have stored text there, and ``end`` compares numbers.
            try db.run(
                "UPDATE notices SET attempts = ?, ended_at = ?, due_at = ? WHERE job = ?",
                [
                    notice.attempts, notice.endedAt.milliseconds, (now + Self.claimDuration).milliseconds, notice.job,
                ])
            return notice
        }
    }

    /// A query of the notice that is due.
    private static let due = """
        SELECT notices.job, notify, ended_at, attempts FROM notices JOIN jobs ON jobs.id = notices.job
            WHERE notices.state = 'waiting' AND due_at <= ? AND notify IS NOT NULL
                AND (? OR notify <> '\(Schema.notifyCommand)') ORDER BY due_at LIMIT 1
        """

    public func sent(_ notice: JobNotice) async throws(JobsError) {
        try await end(notice, "state = 'sent', message = NULL", [])
    }

    /// - Parameters:
    ///   - isFinal: whether the receiver wants no other attempt.
    ///   - retryAfter: the least time until the next attempt, in milliseconds.
    /// - Returns: whether there is another attempt.
    public func failed(
        _ notice: JobNotice, _ message: String, isFinal: Bool, retryAfter: Int64 = 0,
    ) async throws(JobsError) -> Bool {
        let isOver = isFinal || notice.attempts >= JobNotice.maxAttempts
        let due = gate.now() + max(notice.delay, min(max(retryAfter, 0), 3_600_000))
        try await end(
            notice, "state = ?, message = ?, due_at = ?",
            [isOver ? "failed" : "waiting", String(message.prefix(500)), due.milliseconds])
        return !isOver
    }

    /// Puts a notice back that could not be sent, since the worker stops. The attempt does not count.
    public func release(_ notice: JobNotice) async throws(JobsError) {
        try await end(notice, "attempts = attempts - 1, due_at = ?", [gate.now().milliseconds])
    }

    /// The notice of a job; nil if it has none.
    public func notice(ofJob job: JobID) async throws(JobsError) -> NoticeRecord? {
        try await gate.read { db in
            try db.row("SELECT state, attempts, due_at, message FROM notices WHERE job = ?", [job]).map { row in
                let state = NoticeRecord.State(rawValue: row["state"]) ?? .waiting
                return NoticeRecord(
                    state: state, attempts: row["attempts"],
                    dueAt: state == .waiting ? WallTime(clamping: row["due_at"]) : nil, message: row["message"])
            }
        }
    }

    /// Changes a notice if it is still the one that this worker has taken.
    private func end(
        _ notice: JobNotice, _ assignments: String, _ values: SQLValues,
    ) async throws(JobsError) {
        let now = gate.now().milliseconds
        try await gate.write { db in
            try db.run(
                """
                UPDATE notices SET \(assignments), told_at = ?
                WHERE job = ? AND ended_at = ? AND attempts = ? AND state = 'waiting'
                """, values + [now, notice.job, notice.endedAt.milliseconds, notice.attempts])
        }
    }
}
