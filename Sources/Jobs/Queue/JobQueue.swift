internal import Core
internal import FoundationEssentials

/// The queue for workers: it adds jobs, claims items and records their endings.
public struct JobQueue: Sendable {
    let gate: DatabaseGate

    /// Claims up to `limit` items: by the job's priority, then by age in the job's order.
    ///
    /// - Parameters:
    ///   - order: for jobs without their own.
    ///   - above: claims only from jobs that go before this one, so that an urgent job can overtake a full buffer.
    ///   - eldest: claims from the oldest jobs, without regard to priority, so that none starves.
    ///   - sparing: stalled jobs to pass over as long as others have items.
    ///   - caution: limits the items in flight beside those that were active when a worker died; nil for no limit.
    public func claim(
        limit: Int, worker: Int64, order: ExecutionOrder = .fifo, above: Precedence? = nil, eldest: Bool = false,
        sparing: StalledJobPolicy = StalledJobPolicy(), caution: Caution? = nil,
    ) async throws(JobsError) -> Claim {
        // Most claims of an idle worker find no items, and should not take the write lock.
        guard try await hasClaimable(order: order, above: above, sparing: sparing) else { return .nothing }
        let reading = gate.reading
        // Not synced: if a power failure undoes a claim, its items are still queued.
        return try await writeSparingOthers(isDurable: false) { [leaseDuration = gate.leaseDuration] db, refusals in
            let queues = sparing.choose(from: try Self.claimable(order: order, above: above, eldest: eldest, in: db))
            guard !queues.isEmpty else { return .nothing }
            let now = try reading.moment(in: db)
            let lease = try Self.newLease(of: worker, now: now, lasts: leaseDuration, isAlone: false, in: db)
            var taking = try ClaimTransaction(
                lease: lease, others: Self.keysOfOthers(than: worker, in: db), now: now,
                caution: caution ?? .none, refusals: refusals, in: db)
            var used: [JobID: JobDefinition] = [:]
            for queue in queues where taking.items.count < limit && !taking.isAtItsLimit {
                let before = taking.items.count
                try taking.take(limit - before, of: queue, in: db)
                if taking.items.count > before { used[queue.job.id] = queue.job }
            }
            return try taking.claim(used, in: db)
        }.result
    }

    /// - Parameter duration: milliseconds.
    static func newLease(
        of worker: Int64, now: Moment, lasts duration: Int64, isAlone: Bool, in db: Connection,
    ) throws -> Int64 {
        try db.insert(
            "INSERT INTO leases (worker, claimed_at, expires_at, is_alone) VALUES (?, ?, ?, ?) RETURNING id",
            [worker, now.wall.milliseconds, (now.steady + duration).milliseconds, isAlone])
    }

    private func hasClaimable(
        order: ExecutionOrder, above: Precedence?, sparing: StalledJobPolicy,
    ) async throws(JobsError) -> Bool {
        // The first jobs may be stalled ones, which are passed over.
        let limit = 1 + sparing.inFlight.count
        return try await gate.read { db in
            try !sparing.choose(from: Self.claimable(order: order, above: above, limit: limit, in: db)).isEmpty
        }
    }

    /// The queues of open jobs, in claim order.
    private static func claimable(
        order: ExecutionOrder, above: Precedence?, eldest: Bool = false, limit: Int = 1_000, in db: Connection,
    ) throws -> [ClaimQueue] {
        let statement = try RowStatement(
            """
            SELECT id, variants, options, headers, priority, execution_order FROM jobs
            WHERE state IN ('queued', 'running') AND queued > 0 AND priority >= ?1 AND \(Schema.nothingIsSuspended)
            ORDER BY \(eldest ? "" : "priority DESC, coalesce(execution_order, ?2) DESC,")
                CASE coalesce(execution_order, ?2) WHEN 'lifo' THEN \(eldest ? "" : "-")id ELSE id END LIMIT ?3
            """, in: db)
        let own = try ownPriorities(order: order, in: db)
        // Where items have priorities of their own, the first jobs may have no other items.
        let limit = own.isEmpty ? limit : max(limit, 1_000)
        var queues = try statement.all(above?.priority ?? -100, order.rawValue, limit) {
            ClaimQueue(job: definition($0, order: order), priority: nil)
        }
        if !own.isEmpty { queues = try queues.filter { try $0.hasUsualItems(in: db) } + own }
        if eldest { return own.isEmpty ? queues : queues.sorted { $0.job.id < $1.job.id } }
        return queues.filter { queue in above.map { queue.precedence > $0 } ?? true }
            .sorted { $0.precedence > $1.precedence }
    }

    /// The jobs' current precedence, and whether each is paused, by itself or with all jobs.
    ///
    /// - Parameter order: for jobs without their own.
    public func precedences(
        of jobs: Set<JobID>, order: ExecutionOrder,
    ) async throws(JobsError) -> [(precedence: Precedence, isPaused: Bool)] {
        try await gate.read { db in
            let isSuspended = try db.exists("SELECT 1 FROM suspension")
            return try jobs.sorted().compactMap { job in
                try db.row("SELECT priority, execution_order, state FROM jobs WHERE id = ?", [job]).map { row in
                    let own = (row["execution_order"] as String?).flatMap(ExecutionOrder.init(rawValue:))
                    return (
                        precedence: Precedence(priority: row["priority"], order: own ?? order, job: job),
                        isPaused: isSuspended || row["state"] as String == JobState.paused.rawValue
                    )
                }
            }
        }
    }

    /// One open job.
    static func definition(of job: JobID, order: ExecutionOrder, in db: Connection) throws -> JobDefinition? {
        try RowStatement(
            """
            SELECT id, variants, options, headers, priority, execution_order FROM jobs
            WHERE id = ? AND state IN ('queued', 'running') AND \(Schema.nothingIsSuspended)
            """, in: db
        ).first(job) { definition($0, order: order) }
    }

    /// A job with an unreadable row gets a `problem`, and does not block other jobs.
    private static func definition(_ row: RowColumns, order: ExecutionOrder) -> JobDefinition {
        var headers: [String: String] = [:]
        var problem: String?
        if let json = row.text(3) {
            do {
                headers = try Self.headers(json)
            } catch {
                problem = "The job's headers must be a JSON object of strings."
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
