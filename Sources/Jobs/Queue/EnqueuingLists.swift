internal import Synchronization

/// The rows of a list, which can be read several times.
package struct ListRows: Sendable {
    /// A URL, and a JSON object for `items.meta`, both checked.
    package typealias Row = (url: String, meta: String?)

    let rewind: @Sendable () throws -> Void
    private let next: @Sendable () throws -> Row?

    /// - Parameters:
    ///   - rewind: goes to the first row. It is called before any row is read.
    ///   - next: nil after the last row.
    package init(rewind: @escaping @Sendable () throws -> Void, next: @escaping @Sendable () throws -> Row?) {
        self.rewind = rewind
        self.next = next
    }

    /// Calls `body` with all rows.
    func forEach(_ body: (Row) throws -> Void) throws {
        try rewind()
        while let row = try next() { try body(row) }
    }

    /// Whether there are more rows than this.
    func areMore(than count: Int) throws -> Bool {
        try rewind()
        for _ in 0..<count where try next() == nil { return false }
        return try next() != nil
    }

    /// The next rows: at most `count`, and fewer if they are long.
    ///
    /// - Parameter other: bytes of each item's other columns.
    func page(of count: Int, withOther other: Int) throws -> [Row] {
        var page: [Row] = []
        var bytes = 0
        while page.count < count, bytes < Self.pageBytes, let row = try next() {
            bytes += other + row.url.utf8.count + (row.meta?.utf8.count ?? 0)
            page.append(row)
        }
        return page
    }

    private static let pageBytes = 1 << 20
}

/// Adds jobs of any length, row by row.
extension JobQueue {
    /// Adds a job with the rows of a list of any length, or none of them.
    ///
    /// - Parameters:
    ///   - job: without URLs and items.
    ///   - fallbacks: of every item: at most 16 URLs.
    /// - Returns: the job's id; `nil` if an unfinished job has the same `dedupeKey`.
    package func enqueue(
        _ job: NewJob, fallbacks: [String] = [], rows: ListRows,
    ) async throws(JobsError) -> JobID? {
        try await ListAddition(job, fallbacks: fallbacks, rows: rows, gate: gate).add { id, _ in id }
    }
}

/// Adds one job with the rows of a list.
///
/// A short list is added in one transaction. The rows of a long one are added in slices, between which other programs
/// write: a million rows in one transaction would block them for longer than the five seconds that many clients wait.
/// Until the last transaction there is no job, only its id in `job_additions`, so other programs see the job with all
/// of its items or not at all. See ``JobQueue/removeBrokenAdditions(within:)`` for a program that ends before that.
///
/// The six triggers that check each inserted row take longer than SQLite takes for the row. The caller has checked the
/// rows, so the triggers are off while rows are added. There are two exceptions: a short list with `only-new`, whose
/// known URLs a trigger leaves out; and a database in which a user has added triggers to `items`. They may read the
/// row's job, so one transaction adds the job and all rows, however many there are.
struct ListAddition: Sendable {
    private let job: NewJob
    private let texts: JobQueue.Texts
    private let isOnlyNew: Bool
    /// JSON.
    private let fallbacks: String?
    private let rows: ListRows
    private let gate: DatabaseGate
    private let shortList: Int

    /// - Parameter shortList: a list with at most so many rows is added in one transaction, which takes some 100 ms.
    init(
        _ job: NewJob, fallbacks: [String] = [], rows: ListRows, gate: DatabaseGate, shortList: Int = 20_000,
    ) throws(JobsError) {
        self.job = job
        texts = JobQueue.Texts(urls: nil, headers: try JobQueue.texts(of: job).headers)
        isOnlyNew = try JobOptions(parsing: job.options).contains(.onlyNew)
        self.fallbacks = fallbacks.isEmpty ? nil : try JobQueue.json(fallbacks)
        self.rows = rows
        self.gate = gate
        self.shortList = shortList
    }

    /// - Parameters:
    ///   - refusal: called in the last transaction; no job is added if it has a result.
    ///   - end: called in the last transaction with the job's id; `nil` if an unfinished job has the same `dedupeKey`.
    func add<R: Sendable>(
        unless refusal: @escaping @Sendable (Connection) throws -> R? = { _ in nil },
        _ end: @escaping @Sendable (JobID?, Connection) throws -> R,
    ) async throws(JobsError) -> R {
        guard let addition = try await addInSlices() else {
            return try await gate.write { [self] db in
                if let refused = try refusal(db) { return refused }
                return try end(try addAtOnce(in: db), db)
            }
        }
        defer { gate.liveness.letGo(addition: addition.id) }
        let result: Result<(value: R, isAdded: Bool), JobsError>
        do throws(JobsError) {
            result = .success(
                try await gate.write { [self] db in
                    if let refused = try refusal(db) { return (refused, false) }
                    let id = try publish(addition, in: db)
                    return (try end(id, db), id != nil)
                })
        } catch { result = .failure(error) }
        // Best effort: the next line throws the error.
        if (try? result.get().isAdded) != true { await remove(addition.id) }
        return try result.get().value
    }

    // MARK: - In one transaction

    /// - Returns: nil if an unfinished job has the same `dedupeKey`.
    private func addAtOnce(in db: Connection) throws -> JobID? {
        guard let id = try JobQueue.insert(job, texts, in: db) else { return nil }
        // As jobs_spread does for `urls`: the items are counted once, at the end.
        try TriggerSwitch.withTriggers(false, db) { try db.run("UPDATE jobs SET urls = '[]' WHERE id = ?", [id]) }
        try db.run("DELETE FROM spreading")
        try db.run("INSERT INTO spreading (job) VALUES (?)", [id])
        let needsTriggers = try isOnlyNew || TriggerSwitch.hasTriggersOfUsers(db)
        try TriggerSwitch.withTriggers(needsTriggers, db) {
            let insert = try Self.insertion(in: db)
            try rows.forEach { row in try insert.run(id, row.url, row.meta, fallbacks) }
        }
        try Self.count(id, in: db)
        return id
    }

    private static func insertion(in db: Connection) throws -> RowStatement {
        try RowStatement("INSERT INTO items (job, url, meta, fallbacks) VALUES (?, ?, ?, ?)", in: db)
    }

    private static func count(_ id: JobID, in db: Connection) throws {
        try db.run(
            """
            UPDATE jobs SET urls = NULL, total = n, queued = n - counted.failed, failed = counted.failed,
                revision = revision + 1
                FROM (SELECT (SELECT count(*) FROM items WHERE job = ?1) AS n, failed FROM spreading) AS counted
                WHERE id = ?1
            """, [id])
        try db.run("DELETE FROM spreading")
        try db.run("UPDATE jobs SET state = 'finished', finished_at = \(Schema.now) WHERE id = ? AND queued = 0", [id])
    }

    // MARK: - In slices

    struct Addition: Sendable {
        let id: JobID
        /// The number of URLs that `only-new` has left out.
        var notNew = 0
    }

    /// - Returns: nil if the list is short, a user has added triggers, or an unfinished job has the same `dedupeKey`.
    func addInSlices() async throws(JobsError) -> Addition? {
        do {
            guard try rows.areMore(than: shortList) else { return nil }
        } catch {
            throw JobsError(wrapping: error, path: gate.path)
        }
        try await JobQueue(gate: gate).removeBrokenAdditions()
        guard var addition = try await begin() else { return nil }
        do {
            try rows.rewind()
            while true {
                let page = try rows.page(
                    of: gate.slices.rows(.enqueue), withOther: fallbacks?.utf8.count ?? 0)
                if page.isEmpty { return addition }
                // When a worker stops, it cancels the task that adds a schedule's list.
                try Task.checkCancellation()
                try await gate.checkFile()
                let begun = SliceLedger.now()
                addition.notNew += try await gate.writeSlice(.enqueue) { [self, id = addition.id] db, _ in
                    (result: page.count - (try add(page, to: id, in: db)), handled: page.count)
                }
                await gate.breathe(after: SliceLedger.now() - begun)
            }
        } catch {
            await remove(addition.id)
            gate.liveness.letGo(addition: addition.id)
            throw JobsError(wrapping: error, path: gate.path)
        }
    }

    /// Takes the next id of a job. Its items belong to no job as long as it is in `job_additions`.
    private func begin() async throws(JobsError) -> Addition? {
        let held = Held()
        do {
            return try await begin(held)
        } catch {
            // The transaction may have failed after it had marked the list as being added.
            held.id.withLock { $0 }.map(gate.liveness.letGo(addition:))
            throw error
        }
    }

    private final class Held: Sendable {
        let id = Mutex<JobID?>(nil)
    }

    private func begin(_ held: Held) async throws(JobsError) -> Addition? {
        try await gate.write { [self] db in
            try RecipeBook.check(job.variants, in: db)
            if let key = job.dedupeKey, try JobQueue.unfinishedJob(withDedupeKey: key, in: db) != nil { return nil }
            guard try !TriggerSwitch.hasTriggersOfUsers(db) else { return nil }
            if isOnlyNew { try db.run("INSERT INTO unnoted_urls SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM done_urls)") }
            let id = try TriggerSwitch.withTriggers(false, db) {
                let id = try db.insert("INSERT INTO jobs DEFAULT VALUES RETURNING id")
                try db.run("DELETE FROM jobs WHERE id = ?", [id])
                return id
            }
            // A user who may only read the lock file can't mark the list as being added. One transaction then adds it.
            guard gate.liveness.hold(addition: id) else { return nil }
            held.id.withLock { $0 = id }
            try db.run("INSERT INTO job_additions (job) VALUES (?)", [id])
            return Addition(id: id)
        }
    }

    /// - Returns: the number of added rows.
    private func add(_ page: [ListRows.Row], to id: JobID, in db: Connection) throws -> Int {
        guard try db.exists("SELECT 1 FROM job_additions WHERE job = ?", [id]) else { throw Self.isGone }
        return try TriggerSwitch.withTriggers(false, db) {
            let insert = isOnlyNew ? try Self.insertionOfUnknown(in: db) : try Self.insertion(in: db)
            var count = 0
            for row in page {
                try insert.run(id, row.url, row.meta, fallbacks)
                count += isOnlyNew ? try db.changesCount() : 1
            }
            return count
        }
    }

    /// As items_leave_out_known does.
    private static func insertionOfUnknown(in db: Connection) throws -> RowStatement {
        try RowStatement(
            """
            INSERT INTO items (job, url, meta, fallbacks) SELECT ?1, ?2, ?3, ?4 WHERE NOT \(ItemSchema.isKnown("?2"))
            """, in: db)
    }

    /// Makes the job of all rows.
    ///
    /// - Returns: nil if an unfinished job has the same `dedupeKey`.
    private func publish(_ addition: Addition, in db: Connection) throws -> JobID? {
        guard try db.change("DELETE FROM job_additions WHERE job = ?", [addition.id]) > 0 else {
            throw Self.isGone
        }
        guard let id = try JobQueue.insert(job, texts, id: addition.id, in: db) else {
            try db.run("INSERT INTO job_additions (job) VALUES (?)", [addition.id])
            return nil
        }
        try db.run("UPDATE jobs SET not_new = ?, revision = revision + 1 WHERE id = ?", [addition.notNew, id])
        // Counted by their states, since a shell may have changed some of them meanwhile.
        _ = try JobControl.mend(id, in: db)
        try db.run(
            """
            UPDATE jobs SET state = 'finished', finished_at = \(Schema.now)
            WHERE id = ? AND state = 'queued' AND queued + active + delayed = 0
            """, [id])
        return id
    }

    private func remove(_ id: JobID) async {
        gate.liveness.letGo(addition: id)
        // A worker that stops leaves the items to the next one.
        if Task.isCancelled { return }
        // Best effort, both: a worker later removes the items that are left.
        _ = try? await gate.write { db in
            // A person may have deleted the row, and then no worker would find the items.
            try db.run("INSERT OR IGNORE INTO job_additions SELECT ?1 WHERE ?1 NOT IN (SELECT id FROM jobs)", [id])
        }
        _ = try? await JobQueue(gate: gate).removeBrokenAdditions()
    }

    private static let isGone = JobsError(
        .refused, "The list was removed from the database while it was being added. Add it again.")
}
