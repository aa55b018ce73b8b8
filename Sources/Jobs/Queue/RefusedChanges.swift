internal import Core
internal import GRDB

// A trigger that a user has added to `items` may refuse that an item changes. That ends this item, and no other.
extension JobQueue {
    /// Writes a transaction that changes items, and repeats it as long as the database refuses the change of one more
    /// item. A refused statement may have rolled back the whole transaction, so nothing less than that is repeated.
    ///
    /// - Parameter body: gets the items that were refused so far, and fails them.
    /// - Throws: the error of an item that can't be failed either.
    func writeSparingOthers<Result: Sendable>(
        isDurable: Bool = true, _ body: @escaping @Sendable (Database, [Int64: Failure]) throws -> Result,
    ) async throws(JobsError) -> (result: Result, refused: [Int64: Failure]) {
        var refused: [Int64: Failure] = [:]
        while true {
            do {
                let result = try await gate.write(isDurable: isDurable) { [refused] db in try body(db, refused) }
                return (result, refused)
            } catch {
                guard let item = error.item, refused[item] == nil else { throw error }
                refused[item] = Failure(.refusedByDatabase, error.message)
            }
        }
    }

    /// Changes an item's state.
    ///
    /// - Throws: an error with the item, if the statement itself is refused; others as they are.
    @discardableResult
    static func change<Result>(_ item: Int64, to state: ItemState, _ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let error as DatabaseError where refusals.contains(error.resultCode) {
            throw refusal(of: item, to: state, error.message ?? "without a reason")
        }
    }

    /// The error of an item whose change was refused.
    static func refusal(of item: Int64, to state: ItemState, _ reason: String) -> JobsError {
        var error = JobsError(
            .refused,
            "The database refuses that item \(item) becomes '\(state.rawValue)': \(reason). Look at the triggers on its "
                + "table 'items' that aren't of this program.")
        error.item = item
        return error
    }

    /// What a trigger may fail with by its own fault: a broken constraint or `RAISE`, a function that refuses its
    /// arguments, a table that is missing, a value that is too large.
    private static let refusals: [ResultCode] = [
        .SQLITE_CONSTRAINT, .SQLITE_ERROR, .SQLITE_MISMATCH, .SQLITE_TOOBIG,
    ]
}
