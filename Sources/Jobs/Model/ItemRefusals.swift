internal import Core

/// What the database has refused of a transaction so far, such as by a trigger that a user has added to `items`.
struct ItemRefusals: Sendable {
    /// A refused change.
    enum Change: Sendable {
        case item(Int64)
        /// Of one of the items that a statement changes together.
        case ofSome
    }

    /// The items whose change was refused. They fail.
    private(set) var failures: [Int64: Failure] = [:]
    /// Whether items have to be changed one by one, to find out which of them are refused.
    private(set) var isOneByOne = false

    static let none = ItemRefusals()

    /// - Returns: false if the change was refused before.
    mutating func note(_ change: Change, _ message: String) -> Bool {
        switch change {
        case .item(let item):
            return failures.updateValue(Failure(.refusedByDatabase, message), forKey: item) == nil
        case .ofSome:
            defer { isOneByOne = true }
            return !isOneByOne
        }
    }
}
