internal import Core

/// A claim in progress: the items that one lease takes, in one transaction.
struct ClaimTransaction {
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
        known = try RowStatement(KnownKeys.question, in: db)
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
        try take(try select.firstEach(ids, { $0 }, read: QueuedRow.init).compactMap(\.self), of: job, in: db)
    }

    private mutating func take(_ rows: [QueuedRow], of job: JobDefinition, in db: Connection) throws {
        guard !rows.isEmpty else { return }
        try db.run(
            """
            UPDATE jobs SET state = 'running', started_at = coalesce(started_at, ?) WHERE id = ? AND state = 'queued'
            """, [now.wall.milliseconds, job.id])
        let rule = others.isEmpty ? nil : JobQueue.keyRule(job.options)
        let chosen = try choose(rows, of: job, by: rule, in: db)
        for part in refusals.isOneByOne ? chosen.map({ [$0] }) : [chosen] where !part.isEmpty {
            try activate(part, in: db)
            try leave(part.filter(\.isOfOthers), of: job)
            try add(part.filter { !$0.isOfOthers }, of: job)
        }
    }

    /// An item that is about to be taken.
    private struct ChosenRow {
        let row: QueuedRow
        let own: OwnColumns?
        let url: String
        let key: String
        /// Whether another worker is processing its key.
        let isOfOthers: Bool
    }

    /// The items that may be taken. Fails those whose change was refused before.
    private mutating func choose(
        _ rows: [QueuedRow], of job: JobDefinition, by rule: CacheKeyRule?, in db: Connection,
    ) throws -> [ChosenRow] {
        let withOwn = rows.filter(\.hasOwn).map(\.id)
        let own =
            withOwn.isEmpty
            ? []
            : try statements("an item's own columns", OwnColumns.question)
                .firstEach(withOwn, { $0 }, read: OwnColumns.init)
        let ownColumns = Dictionary(zip(withOwn, own)) { first, _ in first }
        var chosen: [ChosenRow] = []
        var taken = 0
        for row in rows {
            guard mayTake(row, beside: taken) else { break }
            if let failure = refusals.failures[row.id] {
                try JobQueue.fail(refused: row.id, failure, now: now.wall, in: db)
                failed.append(RefusedItem(item: row.id, job: job.id, failure: failure))
                continue
            }
            let own = ownColumns[row.id] ?? nil
            let url = own?.askedURL ?? row.url
            let key = URLText.cacheKey(url)
            let isOfOthers = !others.isEmpty && others.contains(rule == nil ? key : JobQueue.key(of: url, by: rule))
            chosen.append(ChosenRow(row: row, own: own, url: url, key: key, isOfOthers: isOfOthers))
            if !isOfOthers { taken += 1 }
        }
        return chosen
    }

    /// - Parameter taken: how many were chosen just now.
    private mutating func mayTake(_ row: QueuedRow, beside taken: Int) -> Bool {
        hasSuspects = hasSuspects || row.deaths > 0
        isAtItsLimit = hasSuspects && caution.inFlight + items.count + taken >= caution.window
        return !isAtItsLimit
    }

    private func activate(_ chosen: [ChosenRow], in db: Connection) throws {
        let ids = chosen.map(\.row.id)
        let isActive = try JobQueue.change(group: ids, to: .active, in: db) {
            try moves.move(ids, to: .active, by: update, id: { $0 }) { (lease, now.wall, $0) }
        }
        guard let ignored = zip(ids, isActive).first(where: { !$1 }) else { return }
        throw JobQueue.refusal(.item(ignored.0), to: .active, JobQueue.ignored)
    }

    /// Delays items whose keys other workers are processing: they will soon be cached.
    private mutating func leave(_ left: [ChosenRow], of job: JobDefinition) throws {
        guard !left.isEmpty else { return }
        let ids = left.map(\.row.id)
        let until = now.steady + JobQueue.coalescingDelay
        try JobQueue.change(group: ids, to: .delayed, in: statements.db) {
            _ = try moves.move(ids, to: .delayed, by: try statements(JobQueue.leaving), id: { $0 }) { (until, $0) }
        }
        if moves.isCounting { moves.count(job.id, from: .queued, to: .delayed, items: Int64(ids.count)) }
    }

    private mutating func add(_ taken: [ChosenRow], of job: JobDefinition) throws {
        guard !taken.isEmpty else { return }
        if moves.isCounting { moves.count(job.id, from: .queued, to: .active, items: Int64(taken.count)) }
        let known = try KnownKeys(taken.map(\.key), known, now: now, in: statements)
        for one in taken {
            items.append(
                ClaimedItem(
                    id: one.row.id, job: job.id, url: one.url, key: one.key, attempts: one.row.attempts, lease: lease,
                    deaths: one.row.deaths, source: known.sources[one.key], blacklisting: known.listings[one.key],
                    own: one.own))
        }
    }

    /// Writes the counters. Called after all changes that they count: from then on, the triggers count changes
    /// themselves.
    func claim(_ jobs: [JobID: JobDefinition], in db: Connection) throws -> Claim {
        if moves.isCounting { try moves.addUp(in: db) }
        if items.isEmpty {
            try db.run("DELETE FROM leases WHERE id = ?", [lease])
        }
        return Claim(items: items, jobs: jobs, refused: failed)
    }
}

/// The sources and blacklist entries of cache keys. Reading one number costs a fraction of reading two rows, which
/// usually do not exist.
private struct KnownKeys {
    private(set) var sources: [String: SourceRecord] = [:]
    private(set) var listings: [String: BlacklistEntry] = [:]

    static let question = """
        SELECT CASE WHEN EXISTS (SELECT 1 FROM sources WHERE key = ?1) THEN 1 ELSE 0 END
            + CASE WHEN EXISTS (SELECT 1 FROM blacklist_entries WHERE url = ?1) THEN 2 ELSE 0 END
        """

    /// - Parameter asked: the statement of ``question``.
    init(_ keys: [String], _ asked: RowStatement, now: Moment, in statements: RowStatements) throws {
        let bits = try asked.firstEach(keys, { $0 }, read: { $0.integer(0) })
        var withSource: [String] = []
        var listed: [String] = []
        for (key, bits) in zip(keys, bits) {
            if (bits ?? 0) & 1 != 0 { withSource.append(key) }
            // The entry may have expired.
            if (bits ?? 0) & 2 != 0 { listed.append(key) }
        }
        if !withSource.isEmpty {
            for (key, source) in zip(withSource, try CacheIndex.sources(keys: withSource, in: statements)) {
                sources[key] = source
            }
        }
        if !listed.isEmpty {
            for (key, entry) in zip(listed, try Blacklist.entries(keys: listed, now: now, in: statements)) {
                listings[key] = entry
            }
        }
    }
}
