internal import Core

/// A claim in progress: the items that one lease takes, in one transaction.
struct Taking {
    private(set) var items: [ClaimedItem] = []
    /// Whether the limit for items in flight beside a suspect is reached.
    private(set) var isAtItsLimit = false

    private let lease: Int64
    /// Keys that other workers are processing.
    private let others: Set<String>
    private let now: Moment
    private let caution: Caution
    private let refusals: ItemRefusals
    private var failed: [RefusedItem] = []
    private var hasSuspects: Bool
    private var moves: JobCounterBatch
    private let update: RowStatement
    private let known: RowStatement
    private let statements: RowStatements

    init(
        lease: Int64, others: Set<String>, now: Moment, caution: Caution, refusals: ItemRefusals,
        in db: Connection,
    ) throws {
        self.lease = lease
        self.others = others
        self.now = now
        self.caution = caution
        self.refusals = refusals
        hasSuspects = caution.hasSuspects
        moves = try JobCounterBatch(in: db)
        statements = RowStatements(db)
        update = try RowStatement(
            """
            UPDATE items SET state = 'active', lease = ?, run_at = NULL, started_at = coalesce(started_at, ?)
            WHERE id = ? AND state = 'queued'
            """, in: db)
        known = try RowStatement(KnownOfKey.question, in: db)
    }

    private struct QueuedRow {
        let id: Int64
        let url: String
        let attempts: Int
        let deaths: Int
        let hasOwn: Bool

        static let columns = "id, url, attempts, deaths, \(OwnColumns.areGiven)"

        init(_ columns: RowColumns) {
            id = columns.integer(0)
            url = columns.text(1) ?? ""
            attempts = Int(clamping: min(max(columns.integer(2), 0), 1_000_000))
            deaths = Int(clamping: min(max(columns.integer(3), 0), 100))
            hasOwn = columns.integer(4) != 0
        }
    }

    /// Takes up to `limit` of a job's items in the job's order, except items with two deaths or more.
    mutating func take(_ limit: Int, of queue: ClaimQueue, in db: Connection) throws {
        let direction = queue.job.order == .fifo ? "ASC" : "DESC"
        let priority = queue.priority == nil ? "IS NULL" : "= ?3"
        let select = try RowStatement(
            """
            SELECT \(QueuedRow.columns) FROM items
            WHERE job = ?1 AND state = 'queued' AND priority \(priority) AND deaths < 2 ORDER BY id \(direction) LIMIT ?2
            """, in: db)
        let rows =
            if let priority = queue.priority {
                try select.all(queue.job.id, limit, priority, read: QueuedRow.init)
            } else {
                try select.all(queue.job.id, limit, read: QueuedRow.init)
            }
        try take(rows, of: queue.job, in: db)
    }

    /// Takes the given items.
    mutating func take(_ ids: [Int64], of job: JobDefinition, in db: Connection) throws {
        let select = try RowStatement(
            "SELECT \(QueuedRow.columns) FROM items WHERE id = ? AND state = 'queued'", in: db)
        try take(try ids.compactMap { try select.first($0, read: QueuedRow.init) }, of: job, in: db)
    }

    private mutating func take(_ rows: [QueuedRow], of job: JobDefinition, in db: Connection) throws {
        guard !rows.isEmpty else { return }
        try db.run(
            """
            UPDATE jobs SET state = 'running', started_at = coalesce(started_at, ?) WHERE id = ? AND state = 'queued'
            """, [now.wall.milliseconds, job.id])
        let rule = others.isEmpty ? nil : JobQueue.keyRule(job.options)
        for row in rows {
            guard mayTake(row) else { return }
            try take(row, of: job, by: rule, in: db)
        }
    }

    private mutating func mayTake(_ row: QueuedRow) -> Bool {
        hasSuspects = hasSuspects || row.deaths > 0
        isAtItsLimit = hasSuspects && caution.inFlight + items.count >= caution.window
        return !isAtItsLimit
    }

    private mutating func take(_ row: QueuedRow, of job: JobDefinition, by rule: CacheKeyRule?, in db: Connection)
        throws
    {
        if let failure = refusals.failures[row.id] {
            try JobQueue.fail(refused: row.id, failure, now: now.wall, in: db)
            failed.append(RefusedItem(item: row.id, job: job.id, failure: failure))
            return
        }
        let own =
            row.hasOwn
            ? try statements("an item's own columns", OwnColumns.question).first(row.id, read: OwnColumns.init) : nil
        let url = own?.askedURL ?? row.url
        let key = URLText.cacheKey(url)
        try moves.announce(row.id, to: .active)
        try JobQueue.change(row.id, to: .active) { try update.run(lease, now.wall, row.id) }
        guard db.changesCount > 0 else {
            throw JobQueue.refusal(.item(row.id), to: .active, JobQueue.ignored)
        }
        guard others.isEmpty || !others.contains(rule == nil ? key : JobQueue.key(of: url, by: rule)) else {
            try moves.announce(row.id, to: .delayed)
            try JobQueue.change(row.id, to: .delayed) {
                try JobQueue.leave(row.id, until: now.steady + JobQueue.othersDelay, in: db)
            }
            moves.count(job.id, from: .queued, to: .delayed)
            return
        }
        moves.count(job.id, from: .queued, to: .active)
        let known = try KnownOfKey(key, known)
        items.append(
            ClaimedItem(
                id: row.id, job: job.id, url: url, key: key, attempts: row.attempts, lease: lease,
                deaths: row.deaths, source: known.hasSource ? try CacheIndex.source(key: key, in: statements) : nil,
                blacklisting: known.isListed ? try Blacklist.entry(key: key, now: now, in: db) : nil,
                own: own))
    }

    /// Writes the counters. Called after all changes that they count: from then on, the triggers count changes
    /// themselves.
    func claim(_ jobs: [JobID: JobDefinition], in db: Connection) throws -> Claim {
        try moves.addUp(in: db)
        if items.isEmpty {
            try db.run("DELETE FROM leases WHERE id = ?", [lease])
        }
        return Claim(items: items, jobs: jobs, refused: failed)
    }
}

/// Whether a cache key has a source or a blacklist entry. Reading one number costs a fraction of reading two rows,
/// which usually do not exist.
private struct KnownOfKey {
    let hasSource: Bool
    /// Whether the blacklist has an entry, which may have expired.
    let isListed: Bool

    static let question = """
        SELECT CASE WHEN EXISTS (SELECT 1 FROM sources WHERE key = ?1) THEN 1 ELSE 0 END
            + CASE WHEN EXISTS (SELECT 1 FROM blacklist_entries WHERE url = ?1) THEN 2 ELSE 0 END
        """

    /// - Parameter asked: the statement of ``question``.
    init(_ key: String, _ asked: RowStatement) throws {
        let bits = try asked.first(key) { $0.integer(0) } ?? 0
        hasSource = bits & 1 != 0
        isListed = bits & 2 != 0
    }
}
