internal import Core
internal import FoundationEssentials
internal import GRDB

/// The queue as workers use it: jobs come in, items are claimed, and their endings are written down.
public struct JobQueue: Sendable {
    let gate: DatabaseGate

    /// Claims up to `limit` items: by the job's priority, then by age as the job's order says.
    ///
    /// - Parameters:
    ///   - order: for jobs that don't name one.
    ///   - above: claims only from jobs that go before this one; used to let an urgent job overtake a full buffer.
    ///   - eldest: claims from the oldest jobs, without regard to priority, so that none waits for ever.
    ///   - sparing: jobs to pass over as long as others have items.
    ///   - caution: how many may be in flight beside items that were active when a worker died; nil for as many as are
    ///     claimed.
    public func claim(
        limit: Int, worker: Int64, order: ExecutionOrder = .fifo, above: Precedence? = nil, eldest: Bool = false,
        sparing: StalledJobPolicy = StalledJobPolicy(), caution: Caution? = nil,
    ) async throws(JobsError) -> Claim {
        // Most asks of an idle worker find nothing; they shouldn't take the write lock for it.
        guard try await hasClaimable(order: order, above: above, sparing: sparing) else {
            return Claim(items: [], jobs: [:])
        }
        let reading = gate.reading
        // A claim that a power cut undoes was never made: its items are still queued.
        return try await gate.write(isDurable: false) { [leaseDuration = gate.leaseDuration] db in
            let queues = sparing.choose(from: try Self.claimable(order: order, above: above, eldest: eldest, in: db))
            guard !queues.isEmpty else { return Claim(items: [], jobs: [:]) }
            let now = try reading.moment(in: db)
            let lease = try Self.newLease(of: worker, now: now, lasts: leaseDuration, isAlone: false, in: db)
            var taking = try Taking(
                lease: lease, others: Self.keysOfOthers(than: worker, in: db), now: now,
                caution: caution ?? .none, in: db)
            var used: [JobID: JobDefinition] = [:]
            for queue in queues where taking.items.count < limit && !taking.isAtItsLimit {
                let before = taking.items.count
                try taking.take(limit - before, of: queue, in: db)
                if taking.items.count > before { used[queue.job.id] = queue.job }
            }
            return try taking.claim(used, in: db)
        }
    }

    /// - Parameter duration: in milliseconds.
    static func newLease(
        of worker: Int64, now: Moment, lasts duration: Int64, isAlone: Bool, in db: Database,
    ) throws -> Int64 {
        try db.run(
            "INSERT INTO leases (worker, claimed_at, expires_at, is_alone) VALUES (?, ?, ?, ?)",
            [worker, now.wall.milliseconds, (now.steady + duration).milliseconds, isAlone])
        return db.lastInsertedRowID
    }

    private func hasClaimable(
        order: ExecutionOrder, above: Precedence?, sparing: StalledJobPolicy,
    ) async throws(JobsError) -> Bool {
        // The first may be one of those that are left alone.
        let limit = 1 + sparing.inHand.count
        return try await gate.read { db in
            try !sparing.choose(from: Self.claimable(order: order, above: above, limit: limit, in: db)).isEmpty
        }
    }

    /// What is queued in open jobs, first come first.
    private static func claimable(
        order: ExecutionOrder, above: Precedence?, eldest: Bool = false, limit: Int = 1_000, in db: Database,
    ) throws -> [ClaimQueue] {
        let statement = try RowStatement(
            """
            SELECT id, variants, options, headers, priority, execution_order FROM jobs
            WHERE state IN ('queued', 'running') AND queued > 0 AND priority >= ?1 AND \(Schema.nothingIsSuspended)
            ORDER BY \(eldest ? "" : "priority DESC, coalesce(execution_order, ?2) DESC,")
                CASE coalesce(execution_order, ?2) WHEN 'lifo' THEN \(eldest ? "" : "-")id ELSE id END LIMIT ?3
            """, in: db)
        var queues = try statement.all(above?.priority ?? -100, order.rawValue, limit) {
            ClaimQueue(job: definition($0, order: order), priority: nil)
        }
        let own = try ownPriorities(order: order, in: db)
        if !own.isEmpty { queues = try queues.filter { try $0.hasUsualItems(in: db) } + own }
        if eldest { return own.isEmpty ? queues : queues.sorted { $0.job.id < $1.job.id } }
        return queues.filter { queue in above.map { queue.precedence > $0 } ?? true }
            .sorted { $0.precedence > $1.precedence }
    }

    /// The places of jobs in the claim order as they are now, and which of them are paused, by themselves or with all others.
    ///
    /// - Parameter order: of jobs that name none.
    public func places(
        of jobs: Set<JobID>, order: ExecutionOrder,
    ) async throws(JobsError) -> [(place: Precedence, isPaused: Bool)] {
        try await gate.read { db in
            let isSuspended = try db.exists("SELECT 1 FROM suspension")
            return try jobs.sorted().compactMap { job in
                try db.row("SELECT priority, execution_order, state FROM jobs WHERE id = ?", [job]).map { row in
                    let own = (row["execution_order"] as String?).flatMap(ExecutionOrder.init(rawValue:))
                    return (
                        place: Precedence(priority: row["priority"], order: own ?? order, job: job),
                        isPaused: isSuspended || row["state"] as String == JobState.paused.rawValue
                    )
                }
            }
        }
    }

    /// One open job.
    static func definition(of job: JobID, order: ExecutionOrder, in db: Database) throws -> JobDefinition? {
        try RowStatement(
            """
            SELECT id, variants, options, headers, priority, execution_order FROM jobs
            WHERE id = ? AND state IN ('queued', 'running') AND \(Schema.nothingIsSuspended)
            """, in: db
        ).first(job) { definition($0, order: order) }
    }

    /// A job whose row can't be read carries its `problem`, and stops no other job.
    private static func definition(_ row: RowColumns, order: ExecutionOrder) -> JobDefinition {
        var headers: [String: String] = [:]
        var problem: String?
        if let json = row.text(3) {
            do {
                headers = try Self.headers(json)
            } catch {
                problem = "The job's headers aren't text that can be sent; they have to be a JSON object of strings."
            }
        }
        return JobDefinition(
            id: row.integer(0), variants: row.text(1), options: row.text(2), headers: headers,
            priority: Int(row.integer(4)), order: row.text(5).flatMap(ExecutionOrder.init(rawValue:)) ?? order,
            problem: problem)
    }

    static func headers(_ json: String) throws -> [String: String] {
        try JSONDecoder().decode([String: String].self, from: Data(json.utf8))
    }
}

// One fetch for all workers.
extension JobQueue {
    /// How long an item is left to the worker that has the same URL in hand, in milliseconds, before it is looked at
    /// again.
    static let othersDelay: Int64 = 250

    /// The cache keys of items that other workers run. They aren't claimed a second time: soon they are in the cache.
    static func keysOfOthers(than worker: Int64, in db: Database) throws -> Set<String> {
        if try db.flag("SELECT NOT EXISTS (SELECT 1 FROM leases WHERE worker <> ?)", [worker]) == true { return [] }
        let statement = try RowStatement(
            """
            SELECT \(ItemSchema.askedURL("items")), jobs.options FROM leases
            CROSS JOIN items ON items.lease = leases.id AND items.state = 'active'
            CROSS JOIN jobs ON jobs.id = items.job WHERE leases.worker <> ?
            """, in: db)
        var rules: [String: CacheKeyRule?] = [:]
        return Set(
            try statement.all(worker) { row in
                let (url, options) = (row.text(0) ?? "", row.text(1) ?? "")
                if rules[options] == nil { rules[options] = .some(keyRule(options)) }
                return key(of: url, by: rules[options] ?? nil)
            })
    }

    /// A job's cache-key rule, where it takes no time worth speaking of: a pattern isn't run under the write lock, and
    /// neither is a delegate. What those make one key of may be fetched by two workers at once.
    static func keyRule(_ options: String?) -> CacheKeyRule? {
        guard let options, options.contains("cache-key=") else { return nil }
        // The worker that claims a job with unreadable options fails it.
        let rule = (try? JobSettings(parsing: options))?.cacheKey
        return rule?.isPattern == true ? nil : rule
    }

    static func key(of url: String, by rule: CacheKeyRule?) -> String {
        // Only patterns can fail.
        (try? rule?.key(of: url)) ?? URLText.cacheKey(url)
    }

    static func leave(_ item: Int64, until time: SteadyTime, in db: Database) throws {
        try db.run(
            """
            UPDATE items SET state = 'delayed', lease = NULL, run_at = ?, waits_for = NULL,
                message = 'Another worker has this URL in hand.' WHERE id = ?
            """, [time.milliseconds, item])
    }
}
