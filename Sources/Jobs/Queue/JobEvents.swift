public import Core

/// The log of ended items and of jobs' states: read page by page, or followed as an asynchronous sequence.
public struct JobEvents: Sendable {
    let gate: DatabaseGate

    /// How long the log keeps events, in milliseconds. A reader that pauses longer misses some.
    public static let retention: Int64 = 7 * FailureClass.day

    /// Rows that any program has written with ids from here on are left out: the ids of their events would be too large
    /// for a number.
    private static let maxRows: Int64 = 1 << 52

    /// The id of the last event so far; 0 if there is none.
    public func last() async throws(JobsError) -> Int64 {
        try await gate.read { db in
            try db.integer(
                """
                SELECT id * \(Schema.eventsPerRow) + json_array_length(\(Schema.eventDetail)) - 1 FROM event_log WHERE id < ?
                ORDER BY id DESC LIMIT 1
                """, [Self.maxRows]) ?? 0
        }
    }

    /// The id of the last event before a time; 0 if the log has none.
    public func last(before time: WallTime) async throws(JobsError) -> Int64 {
        try await gate.read { db in
            // Finds the first row at or after the time. Rows are not sorted by time, since the machine's clock may have
            // been set.
            try db.integer(
                "SELECT id * \(Schema.eventsPerRow) - 1 FROM event_log WHERE at >= ? AND id < ? ORDER BY id LIMIT 1",
                [time.milliseconds, Self.maxRows])
                ?? db.integer(
                    "SELECT (max(id) + 1) * \(Schema.eventsPerRow) - 1 FROM event_log WHERE id < ?", [Self.maxRows])
                ?? 0
        }
    }

    /// The next events after an id, in order, followed by the progress of each of their jobs.
    ///
    /// - Parameter job: leaves out events of other jobs.
    /// - Returns: at most some thousand events, and the id to continue after; at the end of the log no events and the
    ///   same id.
    public func page(after last: Int64, job: JobID? = nil) async throws(JobsError) -> (events: [JobEvent], last: Int64)
    {
        try await gate.read { db in
            let first = max(0, last) / Int64(Schema.eventsPerRow)
            let end = try db.integer(
                "SELECT max(id) FROM (SELECT id FROM event_log WHERE id >= ? AND id < ? ORDER BY id LIMIT 16)",
                [first, Self.maxRows])
            guard let end else { return ([], last) }
            let rows = try db.rows(
                """
                SELECT event_log.id * \(Schema.eventsPerRow) + part.key AS id, \(Schema.iso("at")) AS at,
                    \(Schema.eventItem) AS item, \(Schema.eventJob) AS job,
                    json_extract(\(Schema.eventPart), '$[2]') AS state, json_extract(\(Schema.eventPart), '$[3]') AS class, items.url,
                    \(Schema.json("items.meta")) AS meta
                FROM event_log CROSS JOIN json_each(\(Schema.eventDetail)) AS part
                    LEFT JOIN items ON items.id = \(Schema.eventItem)
                WHERE event_log.id BETWEEN ? AND ? AND event_log.id * \(Schema.eventsPerRow) + part.key > ?
                    AND (?4 IS NULL OR \(Schema.eventJob) = ?4)
                ORDER BY event_log.id, part.key
                """, [first, end, last, job])
            let events = rows.map { row in
                let item: Int64? = row["item"]
                return JobEvent(
                    id: row["id"], at: row["at"], event: item == nil ? .job : .item, job: row["job"], item: item,
                    url: row["url"], state: row["state"], failure: row["class"], meta: row["meta"])
            }
            // If all events of these rows were left out or returned before, the caller continues with the next rows.
            let next = max(last, (end + 1) * Int64(Schema.eventsPerRow) - 1)
            guard let newest = events.last else { return ([], next) }
            return (events + (try Self.progress(after: newest, Set(events.map(\.job)), in: db)), next)
        }
    }

    private static func progress(after event: JobEvent, _ jobs: Set<JobID>, in db: Connection) throws -> [JobEvent] {
        try jobs.sorted().compactMap { job in
            try db.row("SELECT finished_count, skipped_count, total FROM progress WHERE job = ?", [job]).map { row in
                JobEvent(
                    id: event.id, at: event.at, event: .progress, job: job, finished: row["finished_count"],
                    skipped: row["skipped_count"], total: row["total"])
            }
        }
    }

    /// Follows the log after an event, until the task is cancelled. Each event is returned exactly once, beginning with
    /// those that happened while no reader was active.
    ///
    /// - Parameters:
    ///   - last: the id of the last event that the reader has seen; 0 for all events in the log.
    ///   - job: leaves out other jobs; the sequence ends at the end of the log if this job has ended.
    ///   - follows: whether to wait for more events at the end of the log.
    public func events(after last: Int64 = 0, job: JobID? = nil, follows: Bool = true) -> Sequence {
        Sequence(log: self, last: last, job: job, follows: follows)
    }

    /// Whether a job and all its items have ended or were removed, so that no further events of it are expected.
    private func isOver(_ job: JobID?) async throws(JobsError) -> Bool {
        guard let job else { return false }
        return try await gate.read { db in
            // The items of a cancelled job end after it.
            try !db.exists(
                "SELECT 1 FROM jobs WHERE id = ? AND (\(Schema.isOpen()) OR queued + active + delayed > 0)", [job])
        }
    }

    public struct Sequence: AsyncSequence, Sendable {
        let log: JobEvents
        let last: Int64
        let job: JobID?
        let follows: Bool

        public func makeAsyncIterator() -> Iterator { Iterator(log: log, last: last, job: job, follows: follows) }

        public struct Iterator: AsyncIteratorProtocol {
            let log: JobEvents
            var last: Int64
            let job: JobID?
            let follows: Bool
            private var page: ArraySlice<JobEvent> = []

            init(log: JobEvents, last: Int64, job: JobID?, follows: Bool) {
                (self.log, self.last, self.job, self.follows) = (log, last, job, follows)
            }

            /// - Returns: nil at the end, and if the task is cancelled.
            public mutating func next() async throws -> JobEvent? {
                while page.isEmpty {
                    // Before the page is read, so that the job's last event is in it. A job may be retried after it
                    // has ended, so its state decides, and not an event of the log.
                    let isOver = try await log.isOver(job)
                    let before = last
                    let (events, end) = try await log.page(after: last, job: job)
                    (page, last) = (events[...], end)
                    guard events.isEmpty, end == before else { continue }
                    guard follows, !isOver, await Self.nap() else { return nil }
                }
                return page.popFirst()
            }

            /// - Returns: false if the task was cancelled, which ends the sleep.
            private static func nap() async -> Bool { (try? await Task.sleep(for: .milliseconds(200))) != nil }
        }
    }

    /// Removes events before a time.
    public func prune(before time: WallTime) async throws(JobsError) {
        while !Task.isCancelled,
            try await gate.exists(
                "SELECT 1 FROM event_log WHERE id = (SELECT min(id) FROM event_log) AND at < ?", [time.milliseconds])
        {
            try await gate.writeSlice(.prune) { db, rows in
                let count = try db.change(
                    "DELETE FROM event_log WHERE at < ? AND id IN (SELECT id FROM event_log ORDER BY id LIMIT ?)",
                    [time.milliseconds, rows])
                return ((), count)
            }
            await gate.breathe()
        }
    }
}

/// The endings of a group's items, for the log.
struct EndedItems {
    /// Rows of the log without their closing brackets, the last of which grows.
    private var rows: [String] = []
    private var eventsOfLast = 0

    mutating func add(_ item: ClaimedItem, _ ending: ItemEnding) {
        switch ending {
        case .done(let completion): add(item, completion.isCached ? "cached" : "done")
        case .failed(let failure): add(item, "failed", failure.failureClass)
        case .blacklisted(let entry): add(item, "blacklisted", entry.failure)
        case .retry, .wait, .release, .fallBack: break
        }
    }

    mutating func addCancelled(_ item: Int64, of job: JobID) { add(item, job, "cancelled", "cancelled") }

    private mutating func add(_ item: ClaimedItem, _ state: StaticString, _ failure: FailureClass? = nil) {
        add(item.id, item.job, state, failure?.rawValue)
    }

    private mutating func add(_ item: Int64, _ job: JobID, _ state: StaticString, _ failure: String?) {
        if rows.isEmpty || eventsOfLast == Schema.eventsPerRow {
            rows.append("[")
            eventsOfLast = 0
        }
        let last = rows.endIndex - 1
        rows[last] += eventsOfLast == 0 ? "[" : ",["
        rows[last] += String(item)
        rows[last] += ","
        rows[last] += String(job)
        rows[last] += ",\""
        rows[last] += state.description
        if let failure { rows[last] += "\",\"" + failure }
        rows[last] += "\"]"
        eventsOfLast += 1
    }

    func log(at now: WallTime, in db: Connection) throws {
        for row in rows {
            try db.run("INSERT INTO event_log (at, detail) VALUES (?, ?)", [now.milliseconds, row + "]"])
        }
    }
}
