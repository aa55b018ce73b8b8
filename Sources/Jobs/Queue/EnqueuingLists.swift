internal import CSQLiteTriggers
internal import GRDB

/// Adds jobs of any length, row by row.
extension JobQueue {
    /// A URL of a list, and a JSON object for `items.meta`, both checked.
    package typealias ListRow = (url: String, meta: String?)

    /// Adds a job with the rows of a list of any length, or none of them.
    ///
    /// The six triggers that check each inserted row take longer than SQLite takes for the row. They are off while the
    /// rows are added, since the caller has checked the rows, unless the job needs them or a user has added triggers.
    ///
    /// - Parameters:
    ///   - job: without URLs and items.
    ///   - fallbacks: of every item: at most 16 URLs.
    ///   - rows: calls its argument with each row, from the first, each time it is called.
    /// - Returns: the job's id; `nil` if an unfinished job has the same `dedupeKey`.
    package func enqueue(
        _ job: NewJob, fallbacks: [String] = [], rows: @escaping @Sendable ((ListRow) throws -> Void) throws -> Void,
    ) async throws(JobsError) -> JobID? {
        let addition = try ListAddition(job, fallbacks: fallbacks)
        return try await gate.write { db in try addition.add(rows, in: db) }
    }

    /// A job whose rows are added in a transaction.
    struct ListAddition: Sendable {
        private let job: NewJob
        private let texts: Texts
        private let needsTriggers: Bool
        /// JSON.
        private let fallbacks: String?

        init(_ job: NewJob, fallbacks: [String]) throws(JobsError) {
            self.job = job
            texts = Texts(urls: nil, headers: try JobQueue.texts(of: job).headers)
            needsTriggers = try JobOptions(parsing: job.options).contains(.onlyNew)
            self.fallbacks = fallbacks.isEmpty ? nil : try JobQueue.json(fallbacks)
        }

        /// - Returns: nil if an unfinished job has the same `dedupeKey`.
        func add(_ rows: ((ListRow) throws -> Void) throws -> Void, in db: Database) throws -> JobID? {
            guard let id = try JobQueue.insert(job, texts, in: db) else { return nil }
            // As jobs_spread does for `urls`: the items are counted once, at the end.
            try db.run("INSERT INTO spreading (job) VALUES (?)", [id])
            let isPlain = try !needsTriggers && !JobQueue.hasTriggersOfUsers(db)
            if isPlain { try JobQueue.switchTriggers(on: false, db) }
            // If this fails, the connection adds rows without checks, which views and workers are ready for.
            defer { if isPlain { try? JobQueue.switchTriggers(on: true, db) } }
            let statement = try RowStatement(
                "INSERT INTO items (job, url, meta, fallbacks) VALUES (?, ?, ?, ?)", in: db)
            try rows { row in try statement.run(id, row.url, row.meta, fallbacks) }
            if isPlain { try JobQueue.switchTriggers(on: true, db) }
            try JobQueue.count(id, in: db)
            return id
        }
    }

    fileprivate static func count(_ id: JobID, in db: Database) throws {
        try db.run(
            """
            UPDATE jobs SET total = n, queued = n - counted.failed, failed = counted.failed, revision = revision + 1
                FROM (SELECT (SELECT count(*) FROM items WHERE job = ?1) AS n, failed FROM spreading) AS counted
                WHERE id = ?1
            """, [id])
        try db.run("DELETE FROM spreading")
        try db.run("UPDATE jobs SET state = 'finished', finished_at = \(Schema.now) WHERE id = ? AND queued = 0", [id])
    }

    fileprivate static func hasTriggersOfUsers(_ db: Database) throws -> Bool {
        let names = try db.rows("SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'items'")
            .map { $0["name"] as String }
        return !Schema.ownTriggers.isSuperset(of: names)
    }

    fileprivate static func switchTriggers(on isOn: Bool, _ db: Database) throws {
        guard let connection = db.sqliteConnection else { return }
        let code = csqlite_switch_triggers(UnsafeMutableRawPointer(connection), isOn ? 1 : 0)
        guard code == 0 else { throw DatabaseError(resultCode: ResultCode(rawValue: code)) }
    }
}
