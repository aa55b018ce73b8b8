internal import FoundationEssentials
internal import GRDB

extension JobStore {
    /// Adds a job with all its items, or refuses it whole.
    ///
    /// - Returns: its id; `nil` when an unfinished job has the same `dedupeKey`.
    public func enqueue(_ job: NewJob) async throws(JobsError) -> JobID? {
        let texts = try Self.texts(of: job)
        return try await write { db in try Self.insert(job, texts, in: db) }
    }

    /// A job's URLs and headers as they are stored.
    struct Texts {
        let urls: String
        let headers: String?
    }

    static func texts(of job: NewJob) throws(JobsError) -> Texts {
        _ = try JobOptions(parsing: job.options)
        return Texts(urls: try json(job.urls), headers: job.headers.isEmpty ? nil : try json(job.headers))
    }

    static func insert(_ job: NewJob, _ texts: Texts, in db: Database) throws -> JobID? {
        if let key = job.dedupeKey, try Self.unfinishedJob(withDedupeKey: key, in: db) != nil { return nil }
        try db.execute(
            sql: """
                INSERT INTO jobs (name, urls, variants, options, headers, priority, execution_order, dedupe_key)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                """,
            arguments: [
                job.name, texts.urls, job.variants, job.options, texts.headers, job.priority, job.order?.rawValue,
                job.dedupeKey,
            ],
        )
        return db.lastInsertedRowID
    }

    /// The unfinished job that holds a dedupe key, if there is one.
    public func unfinishedJob(withDedupeKey key: String) async throws(JobsError) -> JobID? {
        try await read { db in try Self.unfinishedJob(withDedupeKey: key, in: db) }
    }

    private static func unfinishedJob(withDedupeKey key: String, in db: Database) throws -> JobID? {
        try Int64.fetchOne(
            db,
            sql: "SELECT id FROM jobs WHERE dedupe_key = ? AND state IN ('queued', 'running', 'paused')",
            arguments: [key],
        )
    }

    private static func json(_ value: some Encodable) throws(JobsError) -> String {
        do {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.withoutEscapingSlashes, .sortedKeys]
            return String(decoding: try encoder.encode(value), as: UTF8.self)
        } catch {
            throw JobsError(.refused, "A URL or header can't be written as JSON: \(error).")
        }
    }
}
