/// Items with their own priority are claimed beside their job's other items, as if each priority were a job.
extension JobQueue {
    private static let maxQueues = 1_000

    /// The queues of such items in open jobs, the highest priority first. It makes one look-up per priority of each
    /// job, independent of the number of items, and a single one if there are no such items.
    static func ownPriorities(order: ExecutionOrder, in db: Connection) throws -> [ClaimQueue] {
        let highest = try look("TRUE ORDER BY priority DESC, job DESC", in: db)
        guard var last = try highest.first(read: Self.place) else { return [] }
        let nextJob = try look("priority = ? AND job < ? ORDER BY job DESC", in: db)
        let nextPriority = try look("priority < ? ORDER BY priority DESC, job DESC", in: db)
        var queues: [ClaimQueue] = []
        while queues.count < maxQueues {
            if let job = try definition(of: last.job, order: order, in: db) {
                queues.append(ClaimQueue(job: job, priority: last.priority))
            }
            guard
                let next = try nextJob.first(last.priority, last.job, read: Self.place)
                    ?? nextPriority.first(last.priority, read: Self.place)
            else { break }
            last = next
        }
        return queues
    }

    /// The items among these that have a priority of their own now.
    public func ownPriorities(of items: [Int64]) async throws(JobsError) -> [Int64: Int] {
        guard !items.isEmpty else { return [:] }
        let list = "[" + items.map(String.init).joined(separator: ",") + "]"
        return try await gate.read { db in
            let rows = try RowStatement(
                "SELECT id, priority FROM items WHERE id IN (SELECT CAST(value AS INTEGER) FROM json_each(?)) AND priority IS NOT NULL",
                in: db
            ).all(list) { ($0.integer(0), min(max(Int(clamping: $0.integer(1)), -100), 100)) }
            return Dictionary(rows) { $1 }
        }
    }

    private static func look(_ condition: String, in db: Connection) throws -> RowStatement {
        try RowStatement(
            """
            SELECT priority, job FROM items INDEXED BY items_own_priority
            WHERE state = 'queued' AND priority IS NOT NULL AND \(condition) LIMIT 1
            """, in: db)
    }

    private static func place(_ row: RowColumns) -> (priority: Int, job: JobID) {
        (Int(clamping: row.integer(0)), row.integer(1))
    }
}

extension ClaimQueue {
    /// Whether the job has queued items without their own priority.
    func hasUsualItems(in db: Connection) throws -> Bool {
        try RowStatement("SELECT 1 FROM items WHERE job = ? AND state = 'queued' AND priority IS NULL LIMIT 1", in: db)
            .first(job.id) { _ in true } ?? false
    }
}
