internal import Core

// An item whose change is refused fails, and no other item does.
extension JobQueue {
    /// Writes a transaction that changes items, and repeats it as long as the database refuses another change in it. A
    /// refused statement may have rolled back the whole transaction, so nothing less than that is repeated.
    func writeSparingOthers<Result: Sendable>(
        isDurable: Bool = true, _ body: @escaping @Sendable (Connection, ItemRefusals) throws -> Result,
    ) async throws(JobsError) -> (result: Result, refused: [Int64: Failure]) {
        var refusals = ItemRefusals.none
        while true {
            do {
                let result = try await gate.write(isDurable: isDurable) { [refusals] db in try body(db, refusals) }
                return (result, refusals.failures)
            } catch {
                guard let change = error.refused, refusals.note(change, error.message) else { throw error }
            }
        }
    }

    /// Changes an item's state.
    ///
    /// - Throws: an error with the item, if a statement is refused; others as they are.
    @discardableResult
    static func change<Result>(
        _ item: Int64, to state: ItemState, in db: Connection, _ body: () throws -> Result,
    ) throws -> Result {
        try change(group: [item], to: state, in: db, body)
    }

    /// Changes the states of a group of items.
    ///
    /// - Throws: an error with the item if a statement is refused and the group has only one; without it for a larger
    ///   group, whose items are then changed one by one.
    @discardableResult
    static func change<Result>(
        group: [Int64], to state: ItemState, in db: Connection, _ body: () throws -> Result,
    ) throws -> Result {
        // Statements before these are not theirs.
        try db.flush()
        do {
            let result = try body()
            try db.flush()
            return result
        } catch {
            guard let reason = Refusal.reason(of: error) else { throw error }
            throw refusal(group.count == 1 ? .item(group[0]) : .ofSome, to: state, reason)
        }
    }

    /// The error of a change that was refused.
    static func refusal(_ change: ItemRefusals.Change, to state: ItemState, _ reason: String) -> JobsError {
        let name = if case .item(let item) = change { "item \(item)" } else { "an item" }
        var error = JobsError(
            .refused,
            "The database refuses that \(name) becomes '\(state.rawValue)': \(reason). Look at the triggers that you added."
        )
        error.refused = change
        return error
    }

    /// The reason if a trigger leaves out a row with `RAISE(IGNORE)`.
    static let ignored = "a trigger ignores it"

    /// Fails an open item without triggers, so that none refuses it, and counts and logs it as they would.
    static func fail(refused item: Int64, _ failure: Failure, now: WallTime, in db: Connection) throws {
        guard
            let row = try db.row(
                """
                SELECT job, state, cached, blacklisted FROM items
                WHERE id = ? AND (state = 'queued' OR state = 'active' OR state = 'delayed')
                """, [item])
        else { return }
        try TriggerSwitch.withTriggers(false, db) {
            try db.run(
                """
                UPDATE items SET state = 'failed', lease = NULL, run_at = NULL, waits_for = NULL, class = ?,
                    http_status = NULL, message = ?, blacklisted = 0, finished_at = ? WHERE id = ?
                """, [failure.failureClass.rawValue, failure.message, now.milliseconds, item])
        }
        try db.run(
            "INSERT INTO uncounted_moves VALUES (?, ?, ?, ?, ?, 'failed', 0, 0, NULL, ?)",
            [
                item, row["job"] as Int64, row["state"] as String, row["cached"] as Bool, row["blacklisted"] as Bool,
                failure.failureClass.rawValue,
            ])
    }

    /// Queues active or delayed items again: in one statement, or one by one if some were refused, which fail.
    ///
    /// - Parameters:
    ///   - condition: which items, for a `WHERE`; it may end with an order and a limit.
    ///   - deaths: the new value of `deaths`, in SQL; nil to leave it.
    /// - Returns: the number of items that were queued or failed.
    static func queueAgain(
        _ condition: String, _ values: SQLValues, deaths: String? = nil, _ refusals: ItemRefusals,
        now: WallTime, in db: Connection,
    ) throws -> Int {
        let ids = try db.integers("SELECT id FROM items WHERE \(condition)", values)
        guard !ids.isEmpty else { return 0 }
        let update = """
            UPDATE items SET state = 'queued', lease = NULL, run_at = NULL, waits_for = NULL\(deaths.map { ", deaths = \($0)" } ?? "")
            WHERE (state = 'active' OR state = 'delayed')
            """
        guard refusals.isOneByOne else {
            do {
                let all = "[" + ids.map(String.init).joined(separator: ",") + "]"
                if try db.change("\(update) AND id IN (SELECT CAST(value AS INTEGER) FROM json_each(?))", [all])
                    == ids.count
                {
                    return ids.count
                }
            } catch {
                guard let reason = Refusal.reason(of: error) else { throw error }
                throw refusal(.ofSome, to: .queued, reason)
            }
            // Some were ignored, or a trigger has moved or removed them.
            throw refusal(.ofSome, to: .queued, ignored)
        }
        for id in ids {
            if let failure = refusals.failures[id] {
                try fail(refused: id, failure, now: now, in: db)
                continue
            }
            let isQueued = try change(id, to: .queued, in: db) { try db.change("\(update) AND id = ?", [id]) > 0 }
            if !isQueued,
                try db.exists("SELECT 1 FROM items WHERE id = ? AND (state = 'active' OR state = 'delayed')", [id])
            {
                throw refusal(.item(id), to: .queued, ignored)
            }
        }
        return ids.count
    }
}
