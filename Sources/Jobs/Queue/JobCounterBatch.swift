/// Adds up the state changes of a group of items for their jobs, in the transaction that makes them.
///
/// On SQLite a trigger runs for each row, so the batch announces each move, and counts it for the trigger. On PostgreSQL
/// a trigger runs once for each statement; it counts all items that the statement moves, logs their ends and notes their
/// URLs.
struct JobCounterBatch {
    /// The counters of `jobs`, in the order of the statement in `addUp`.
    enum Counter: Int, CaseIterable {
        case queued, active, delayed, done, cached, failed, blacklisted, cancelled
    }

    private struct Change {
        var counters = [Int64](repeating: 0, count: Counter.allCases.count)
        var bytes: Int64 = 0
    }

    private var changes: [JobID: Change] = [:]
    private let announcement: RowStatement
    /// Whether ``move(_:to:by:id:_:)`` leaves the counting, the log and the notes of URLs to this batch's owner.
    let isCounting: Bool

    init(in db: Connection) throws {
        isCounting = db.sqlite != nil
        announcement = try RowStatement("INSERT OR REPLACE INTO moving (id, item, state) VALUES (1, ?, ?)", in: db)
    }

    /// Announces that this batch counts the item's next change to this state.
    func announce(_ item: Int64, to state: ItemState) throws {
        try announcement.run(item, state.rawValue)
    }

    /// Moves items to a state, with a statement that runs for each of them.
    ///
    /// - Returns: for each item, whether it was moved.
    func move<Item, each Value: RowValue>(
        _ items: [Item], to state: ItemState, by statement: RowStatement, id: (Item) -> Int64,
        _ values: (Item) -> (repeat each Value),
    ) throws -> [Bool] {
        try statement.changeEach(items) { item in
            if isCounting { try announce(id(item), to: state) }
            return values(item)
        }
    }

    /// Announces that this batch counts all changes of a job's items to this state, or all their deletions.
    func announceAll(of job: JobID, to state: String) throws {
        // A program may have written `Int64.min`, and negating that traps.
        try announcement.run(0 &- job, state)
    }

    /// Counts a change.
    mutating func count(_ job: JobID, from: Counter, to: Counter, items: Int64 = 1, bytes: Int64 = 0) {
        changes[job, default: Change()].counters[from.rawValue] -= items
        changes[job, default: Change()].counters[to.rawValue] += items
        changes[job, default: Change()].bytes += bytes
    }

    /// Writes the counters, and finishes jobs without open items. Call it after all changes that it counts: from then
    /// on, the triggers count changes themselves.
    func addUp(in db: Connection) throws {
        try db.run("DELETE FROM moving")
        let count = """
            UPDATE jobs SET queued = queued + ?, active = active + ?, delayed = delayed + ?, done = done + ?,
                cached = cached + ?, failed = failed + ?, blacklisted = blacklisted + ?, cancelled = cancelled + ?,
                bytes = bytes + ?, revision = revision + 1
            WHERE id = ?
            """
        let finish = """
            UPDATE jobs SET state = 'finished', finished_at = \(Schema.now)
            WHERE id = ? AND queued = 0 AND active = 0 AND delayed = 0 AND state IN ('queued', 'running', 'paused')
            """
        for (job, change) in changes.sorted(by: { $0.key < $1.key }) {
            try db.run(count, SQLValues(change.counters + [change.bytes, job]))
            try db.run(finish, [job])
        }
    }
}

extension ItemEnding {
    /// The new state of the item.
    var state: ItemState {
        switch self {
        case .done: .done
        case .failed, .blacklisted: .failed
        case .retry, .wait: .delayed
        case .release, .fallBack: .queued
        }
    }

    /// The counter of the item's new state.
    var counter: JobCounterBatch.Counter {
        switch self {
        case .done(let completion): completion.isCached ? .cached : .done
        case .failed: .failed
        case .blacklisted: .blacklisted
        case .retry, .wait: .delayed
        case .release, .fallBack: .queued
        }
    }

    /// The bytes that the item adds to its job's downloads.
    var bytes: Int64 {
        guard case .done(let completion) = self, !completion.isCached else { return 0 }
        return completion.source.size
    }
}
