internal import FoundationEssentials

/// Adds jobs to the queue from a program; SQL inserts the same rows.
extension JobQueue {
    /// Adds a job with all its items, or none of them.
    ///
    /// - Returns: the job's id; `nil` if an unfinished job has the same `dedupeKey`.
    public func enqueue(_ job: NewJob) async throws(JobsError) -> JobID? {
        let texts = try Self.texts(of: job)
        return try await gate.write { db in try Self.insert(job, texts, in: db) }
    }

    /// A job's URLs and headers as they are stored.
    struct Texts {
        /// Nil if all items have their own columns.
        let urls: String?
        let headers: String?
    }

    static func texts(of job: NewJob) throws(JobsError) -> Texts {
        _ = try JobOptions(parsing: job.options)
        let all = job.items.isEmpty ? job.urls : job.urls + job.items.flatMap { [$0.url] + $0.fallbacks }
        if let wrong = all.first(where: isNoURL) {
            throw JobsError(.refused, "'\(wrong.prefix(100))' is no URL; no job was added.")
        }
        return Texts(
            urls: job.urls.isEmpty && !job.items.isEmpty ? nil : try json(job.urls),
            headers: job.headers.isEmpty ? nil : try json(job.headers))
    }

    /// Programs get an error for a wrong URL, unlike a statement that copies a million rows.
    private static func isNoURL(_ text: String) -> Bool {
        !text.utf8.contains { !"0123456789.e+- \t\r\n".utf8.contains($0) }
    }

    /// - Parameter id: nil for the next free one.
    static func insert(_ job: NewJob, _ texts: Texts, id: JobID? = nil, in db: Connection) throws -> JobID? {
        if let key = job.dedupeKey, try Self.unfinishedJob(withDedupeKey: key, in: db) != nil { return nil }
        try RecipeBook.check(job.variants, in: db)
        let id = try db.insert(
            """
            INSERT INTO jobs
                (\(id == nil ? "" : "id, ")name, urls, variants, options, headers, priority, execution_order, dedupe_key, notify)
            VALUES (\(id == nil ? "" : "?, ")?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id
            """,
            SQLValues(id.map { [$0] } ?? []) + [
                job.name, texts.urls, job.variants, job.options, texts.headers, job.priority, job.order?.rawValue,
                job.dedupeKey, job.notify,
            ])
        for item in job.items { try insert(item, of: id, in: db) }
        return id
    }

    private static func insert(_ item: NewItem, of job: JobID, in db: Connection) throws {
        try RecipeBook.check(item.variants, in: db)
        try db.run(
            """
            INSERT INTO items (job, url, meta, priority, variants, headers, sha256, size, fallbacks)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                job, item.url, item.meta, item.priority, item.variants,
                item.headers.isEmpty ? nil : try json(item.headers), item.sha256, item.size,
                item.fallbacks.isEmpty ? nil : try json(item.fallbacks),
            ])
    }

    /// The unfinished job with a dedupe key, if there is one.
    public func unfinishedJob(withDedupeKey key: String) async throws(JobsError) -> JobID? {
        try await gate.read { db in try Self.unfinishedJob(withDedupeKey: key, in: db) }
    }

    /// Marks a batch as being kept by this program, until ``close()`` or the end of the process.
    ///
    /// - Returns: false if another program keeps it at this moment.
    public func hold(batch key: String) -> Bool { gate.liveness.hold(batch: key) }

    static func unfinishedJob(withDedupeKey key: String, in db: Connection) throws -> JobID? {
        try db.integer("SELECT id FROM jobs WHERE dedupe_key = ? AND state IN ('queued', 'running', 'paused')", [key])
    }

    static func json(_ value: some Encodable) throws(JobsError) -> String {
        do {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.withoutEscapingSlashes, .sortedKeys]
            return String(decoding: try encoder.encode(value), as: UTF8.self)
        } catch {
            throw JobsError(.refused, "A URL or header can't be written as JSON: \(error).")
        }
    }
}
