internal import GRDB

/// The moves of a group of items, added up for their jobs within the transaction that makes them.
struct JobCounterBatch {
    /// The counters of `jobs`, in the order of the statement below.
    enum Counter: Int, CaseIterable {
        case queued, active, delayed, done, cached, failed, blacklisted, cancelled
    }

    private struct Change {
        var counters = [Int64](repeating: 0, count: Counter.allCases.count)
        var bytes: Int64 = 0
    }

    private var changes: [JobID: Change] = [:]
    private let announcement: RowStatement

    init(in db: Database) throws {
        announcement = try RowStatement("INSERT OR REPLACE INTO moving (id, item, state) VALUES (1, ?, ?)", in: db)
    }

    /// Says that the next move of an item to this state is counted here.
    func announce(_ item: Int64, to state: ItemState) throws {
        try announcement.run(item, state.rawValue)
    }

    /// Says that all moves of a job's items to this state are counted here, or that all that are deleted are.
    func announceAll(of job: JobID, to state: String) throws { try announcement.run(-job, state) }

    /// Counts a move.
    mutating func count(_ job: JobID, from: Counter, to: Counter, items: Int64 = 1, bytes: Int64 = 0) {
        changes[job, default: Change()].counters[from.rawValue] -= items
        changes[job, default: Change()].counters[to.rawValue] += items
        changes[job, default: Change()].bytes += bytes
    }

    /// Writes the counters, and finishes the jobs that have nothing left. It must be the last of its transaction.
    func addUp(in db: Database) throws {
        try db.run("DELETE FROM moving")
        let count = try db.cachedStatement(
            sql: """
                UPDATE jobs SET queued = queued + ?, active = active + ?, delayed = delayed + ?, done = done + ?,
                    cached = cached + ?, failed = failed + ?, blacklisted = blacklisted + ?, cancelled = cancelled + ?,
                    bytes = bytes + ?, revision = revision + 1
                WHERE id = ?
                """)
        let finish = try db.cachedStatement(
            sql: """
                UPDATE jobs SET state = 'finished', finished_at = \(Schema.now)
                WHERE id = ? AND queued = 0 AND active = 0 AND delayed = 0 AND state IN ('queued', 'running', 'paused')
                """)
        for (job, change) in changes.sorted(by: { $0.key < $1.key }) {
            try count.execute(arguments: StatementArguments(change.counters + [change.bytes, job]))
            try finish.execute(arguments: [job])
        }
    }
}

extension ItemEnding {
    /// The state that its item moves to.
    var state: ItemState {
        switch self {
        case .done: .done
        case .failed, .blacklisted: .failed
        case .retry, .wait: .delayed
        case .release, .fallBack: .queued
        }
    }

    /// Where its item is counted afterwards.
    var counter: JobCounterBatch.Counter {
        switch self {
        case .done(let completion): completion.isCached ? .cached : .done
        case .failed: .failed
        case .blacklisted: .blacklisted
        case .retry, .wait: .delayed
        case .release, .fallBack: .queued
        }
    }

    /// Bytes that its job has downloaded by it.
    var bytes: Int64 {
        guard case .done(let completion) = self, !completion.isCached else { return 0 }
        return completion.source.size
    }
}
