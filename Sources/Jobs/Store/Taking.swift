internal import GRDB

/// A claim while it is made: the items that one lease takes, within one transaction.
struct Taking {
    private(set) var items: [ClaimedItem] = []
    /// Whether no more may be in flight beside an item that was active when a worker died.
    private(set) var isAtItsLimit = false

    private let lease: Int64
    /// Keys that other workers have in hand.
    private let others: Set<String>
    private let now: Int64
    private let steady: Int64
    private let caution: Caution
    private var hasSuspects: Bool
    private var moves: GroupMoves
    private let update: RowStatement
    private let known: RowStatement

    init(
        lease: Int64, others: Set<String>, now: Int64, steady: Int64, caution: Caution, in db: Database,
    ) throws {
        self.lease = lease
        self.others = others
        self.now = now
        self.steady = steady
        self.caution = caution
        hasSuspects = caution.hasSuspects
        moves = try GroupMoves(in: db)
        update = try RowStatement(
            """
            UPDATE items SET state = 'active', lease = ?, started_at = ifnull(started_at, ?)
            WHERE id = ? AND state = 'queued'
            """, in: db)
        known = try RowStatement(KnownOfKey.question, in: db)
    }

    private struct Row {
        let id: Int64
        let url: String
        let attempts: Int
        let deaths: Int

        init(_ columns: RowColumns) {
            id = columns.integer(0)
            url = columns.text(1) ?? ""
            attempts = Int(clamping: min(max(columns.integer(2), 0), 1_000_000))
            deaths = Int(clamping: min(max(columns.integer(3), 0), 100))
        }
    }

    /// Takes up to `limit` of a job's items in the job's order, without those that several workers died of.
    mutating func take(_ limit: Int, of job: JobDefinition, in db: Database) throws {
        let direction = job.order == .fifo ? "ASC" : "DESC"
        let select = try RowStatement(
            """
            SELECT id, url, attempts, deaths FROM items WHERE job = ? AND state = 'queued' AND deaths < 2
            ORDER BY id \(direction) LIMIT ?
            """, in: db)
        try take(try select.all(job.id, limit, read: Row.init), of: job, in: db)
    }

    /// Takes just these.
    mutating func take(_ ids: [Int64], of job: JobDefinition, in db: Database) throws {
        let select = try RowStatement(
            "SELECT id, url, attempts, deaths FROM items WHERE id = ? AND state = 'queued'", in: db)
        try take(try ids.compactMap { try select.first($0, read: Row.init) }, of: job, in: db)
    }

    private mutating func take(_ rows: [Row], of job: JobDefinition, in db: Database) throws {
        guard !rows.isEmpty else { return }
        let begin = try db.cachedStatement(
            sql: """
                UPDATE jobs SET state = 'running', started_at = ifnull(started_at, ?) WHERE id = ? AND state = 'queued'
                """)
        try begin.execute(arguments: [now, job.id])
        let rule = others.isEmpty ? nil : JobStore.keyRule(job.options)
        for row in rows {
            guard mayTake(row) else { return }
            try take(row, of: job, by: rule, in: db)
        }
    }

    private mutating func mayTake(_ row: Row) -> Bool {
        hasSuspects = hasSuspects || row.deaths > 0
        isAtItsLimit = hasSuspects && caution.inFlight + items.count >= caution.window
        return !isAtItsLimit
    }

    private mutating func take(_ row: Row, of job: JobDefinition, by rule: CacheKeyRule?, in db: Database) throws {
        let key = URLText.cacheKey(row.url)
        try moves.announce(row.id, to: .active)
        try update.run(lease, now, row.id)
        guard db.changesCount > 0 else { return }
        guard others.isEmpty || !others.contains(rule == nil ? key : JobStore.key(of: row.url, by: rule)) else {
            try moves.announce(row.id, to: .delayed)
            try JobStore.leave(row.id, until: steady + JobStore.othersDelay, in: db)
            moves.count(job.id, from: .queued, to: .delayed)
            return
        }
        moves.count(job.id, from: .queued, to: .active)
        let known = try KnownOfKey(key, known)
        items.append(
            ClaimedItem(
                id: row.id, job: job.id, url: row.url, key: key, attempts: row.attempts, lease: lease,
                deaths: row.deaths, source: known.hasSource ? try JobStore.source(key: key, in: db) : nil,
                blacklisting: known.isListed ? try JobStore.blacklisting(key: key, now: steady, in: db) : nil))
    }

    /// Writes the counters. It must be the last of its transaction.
    func claim(_ jobs: [JobID: JobDefinition], in db: Database) throws -> Claim {
        try moves.addUp(in: db)
        if items.isEmpty {
            try db.cachedStatement(sql: "DELETE FROM leases WHERE id = ?").execute(arguments: [lease])
        }
        return Claim(items: items, jobs: jobs)
    }
}

/// What there is of a cache key. To ask for a number costs a fraction of asking for rows, which most often aren't there.
private struct KnownOfKey {
    let hasSource: Bool
    /// Whether the blacklist has an entry, though it may be over.
    let isListed: Bool

    static let question = """
        SELECT EXISTS (SELECT 1 FROM sources WHERE key = ?1)
            + 2 * EXISTS (SELECT 1 FROM blacklist_entries WHERE url = ?1)
        """

    /// - Parameter asked: the statement of ``question``.
    init(_ key: String, _ asked: RowStatement) throws {
        let bits = try asked.first(key) { $0.integer(0) } ?? 0
        hasSource = bits & 1 != 0
        isListed = bits & 2 != 0
    }
}
