internal import FoundationEssentials
internal import GRDB

extension JobStore {
    /// How long a lease lasts without a heartbeat, in milliseconds. Only a backstop: a dead worker is noticed by its lock.
    public static let leaseDuration: Int64 = 60_000

    /// Claims up to `limit` items: by the job's priority, then by age as the job's order says.
    ///
    /// - Parameters:
    ///   - order: for jobs that don't name one.
    ///   - above: claims only from jobs that go before this one; used to let an urgent job overtake a full buffer.
    ///   - eldest: claims from the oldest jobs, whatever their place in the line, so that none waits for ever.
    ///   - sparing: what is left alone as long as others can be had.
    ///   - caution: how many may be in flight beside items that were active when a worker died; nil for as many as are claimed.
    public func claim(
        limit: Int, worker: Int64, order: ExecutionOrder = .fifo, above: Precedence? = nil, eldest: Bool = false,
        sparing: Sparing = Sparing(), caution: Caution? = nil,
    ) async throws(JobsError) -> Claim {
        // Most asks of an idle worker find nothing; they shouldn't take the write lock for it.
        guard try await hasClaimable(order: order, above: above, sparing: sparing) else {
            return Claim(items: [], jobs: [:])
        }
        let reading = reading
        let now = reading.wall
        // A claim that a power cut undoes was never made: its items are still queued.
        return try await write(isDurable: false) { [leaseDuration] db in
            let jobs = sparing.choose(from: try Self.claimableJobs(order: order, above: above, eldest: eldest, in: db))
            guard !jobs.isEmpty else { return Claim(items: [], jobs: [:]) }
            let steady = try Self.cacheTime(reading, in: db)
            let lease = try Self.newLease(of: worker, now: now, until: steady + leaseDuration, isAlone: false, in: db)
            var taking = try Taking(
                lease: lease, others: Self.keysOfOthers(than: worker, in: db), now: now, steady: steady,
                caution: caution ?? .none, in: db)
            var used: [JobID: JobDefinition] = [:]
            for job in jobs where taking.items.count < limit && !taking.isAtItsLimit {
                let before = taking.items.count
                try taking.take(limit - before, of: job, in: db)
                if taking.items.count > before { used[job.id] = job }
            }
            return try taking.claim(used, in: db)
        }
    }

    static func newLease(
        of worker: Int64, now: Int64, until: Int64, isAlone: Bool, in db: Database,
    ) throws -> Int64 {
        try db.cachedStatement(sql: "INSERT INTO leases (worker, claimed_at, expires_at, is_alone) VALUES (?, ?, ?, ?)")
            .execute(arguments: [worker, now, until, isAlone])
        return db.lastInsertedRowID
    }

    /// Jobs of which a worker has enough in hand that doesn't move.
    public struct Sparing: Sendable {
        public enum Otherwise: Sendable {
            /// Where no other job of the same priority has anything, they are claimed from as ever.
            case asEver
            /// Jobs of lower priority go before them, too; where there are only such jobs, the one of which there is least.
            case least
            /// Nothing is claimed from them.
            case nothing
        }

        /// How much of each.
        public let inHand: [JobID: Int]
        public let otherwise: Otherwise

        public init(_ inHand: [JobID: Int] = [:], otherwise: Otherwise = .asEver) {
            self.inHand = inHand
            self.otherwise = otherwise
        }

        func choose(from all: [JobDefinition]) -> [JobDefinition] {
            guard !inHand.isEmpty, let highest = all.map(\.priority).max() else { return all }
            let others = all.filter { inHand[$0.id] == nil }
            switch otherwise {
            case .nothing: return others
            case .asEver:
                let equals = others.filter { $0.priority == highest }
                return equals.isEmpty ? all : equals
            case .least:
                guard others.isEmpty else { return others }
                return all.enumerated().sorted { a, b in
                    (inHand[a.element.id] ?? 0, a.offset) < (inHand[b.element.id] ?? 0, b.offset)
                }.map(\.element)
            }
        }
    }

    /// A job's place in the line: who goes before whom.
    public struct Precedence: Hashable, Sendable, Comparable {
        public let priority: Int
        public let order: ExecutionOrder
        /// The job's age; smaller is older.
        public let job: JobID

        public init(priority: Int, order: ExecutionOrder, job: JobID) {
            self.priority = priority
            self.order = order
            self.job = job
        }

        /// `a < b` when `a` goes after `b`. At equal priority LIFO goes before FIFO: who asks for the newest first
        /// wants it now.
        public static func < (a: Precedence, b: Precedence) -> Bool {
            if a.priority != b.priority { return a.priority < b.priority }
            switch (a.order, b.order) {
            case (.fifo, .lifo): return true
            case (.lifo, .fifo): return false
            case (.fifo, .fifo): return a.job > b.job
            case (.lifo, .lifo): return a.job < b.job
            }
        }
    }

    private func hasClaimable(
        order: ExecutionOrder, above: Precedence?, sparing: Sparing,
    ) async throws(JobsError) -> Bool {
        // The first may be one of those that are left alone.
        let limit = 1 + sparing.inHand.count
        return try await read { db in
            try !sparing.choose(from: Self.claimableJobs(order: order, above: above, limit: limit, in: db)).isEmpty
        }
    }

    /// Open jobs with something queued, first come first.
    private static func claimableJobs(
        order: ExecutionOrder, above: Precedence?, eldest: Bool = false, limit: Int = 1_000, in db: Database,
    ) throws -> [JobDefinition] {
        let statement = try RowStatement(
            """
            SELECT id, variants, options, headers, priority, execution_order FROM jobs
            WHERE state IN ('queued', 'running') AND queued > 0 AND priority >= ?1
            ORDER BY \(eldest ? "" : "priority DESC, ifnull(execution_order, ?2) DESC,")
                CASE ifnull(execution_order, ?2) WHEN 'lifo' THEN \(eldest ? "" : "-")id ELSE id END LIMIT ?3
            """, in: db)
        let jobs = try statement.all(above?.priority ?? -100, order.rawValue, limit) { definition($0, order: order) }
        if eldest { return jobs }
        return jobs.filter { job in above.map { job.precedence > $0 } ?? true }
            .sorted { $0.precedence > $1.precedence }
    }

    /// One open job.
    static func definition(of job: JobID, order: ExecutionOrder, in db: Database) throws -> JobDefinition? {
        try RowStatement(
            """
            SELECT id, variants, options, headers, priority, execution_order FROM jobs
            WHERE id = ? AND state IN ('queued', 'running')
            """, in: db
        ).first(job) { definition($0, order: order) }
    }

    /// What can't be read is the job's own fault, and stops no other.
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
extension JobStore {
    /// How long an item is left to the worker that has the same URL in hand, in milliseconds, before it is looked at again.
    static let othersDelay: Int64 = 250

    /// What other workers have in hand. While they do, the same isn't claimed a second time: afterwards it is in the cache.
    static func keysOfOthers(than worker: Int64, in db: Database) throws -> Set<String> {
        let alone = try db.cachedStatement(sql: "SELECT NOT EXISTS (SELECT 1 FROM leases WHERE worker <> ?)")
        if try Bool.fetchOne(alone, arguments: [worker]) == true { return [] }
        let statement = try RowStatement(
            """
            SELECT items.url, jobs.options FROM leases
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
        // A job whose options can't be read is failed by whoever claims it.
        let rule = (try? JobSettings(parsing: options))?.cacheKey
        return rule?.isPattern == true ? nil : rule
    }

    static func key(of url: String, by rule: CacheKeyRule?) -> String {
        // Only patterns can fail.
        (try? rule?.key(of: url)) ?? URLText.cacheKey(url)
    }

    static func leave(_ item: Int64, until time: Int64, in db: Database) throws {
        try db.cachedStatement(
            sql: """
                UPDATE items SET state = 'delayed', lease = NULL, run_at = ?, waits_for = NULL,
                    message = 'Another worker has this URL in hand.' WHERE id = ?
                """
        ).execute(arguments: [time, item])
    }
}

extension JobDefinition {
    /// The job's place in the line.
    public var precedence: JobStore.Precedence {
        JobStore.Precedence(priority: priority, order: order, job: id)
    }
}
