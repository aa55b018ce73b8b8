internal import GRDB

/// Runs SQL in one line: each statement is prepared once and cached. Statements that run for every item are
/// ``RowStatement``s.
extension Database {
    /// - Returns: the number of changed rows.
    @discardableResult
    func run(_ sql: String, _ arguments: StatementArguments = []) throws -> Int {
        try cachedStatement(sql: sql).execute(arguments: arguments)
        return changesCount
    }

    func rows(_ sql: String, _ arguments: StatementArguments = []) throws -> [Row] {
        try Row.fetchAll(cachedStatement(sql: sql), arguments: arguments)
    }

    func row(_ sql: String, _ arguments: StatementArguments = []) throws -> Row? {
        try Row.fetchOne(cachedStatement(sql: sql), arguments: arguments)
    }

    /// The first column of the first row; the next three functions do the same for other types.
    func integer(_ sql: String, _ arguments: StatementArguments = []) throws -> Int64? {
        try Int64.fetchOne(cachedStatement(sql: sql), arguments: arguments)
    }

    func int(_ sql: String, _ arguments: StatementArguments = []) throws -> Int? {
        try Int.fetchOne(cachedStatement(sql: sql), arguments: arguments)
    }

    func flag(_ sql: String, _ arguments: StatementArguments = []) throws -> Bool? {
        try Bool.fetchOne(cachedStatement(sql: sql), arguments: arguments)
    }

    func text(_ sql: String, _ arguments: StatementArguments = []) throws -> String? {
        try String.fetchOne(cachedStatement(sql: sql), arguments: arguments)
    }

    /// The first column of every row; the next function does the same for text.
    func integers(_ sql: String, _ arguments: StatementArguments = []) throws -> [Int64] {
        try Int64.fetchAll(cachedStatement(sql: sql), arguments: arguments)
    }

    func texts(_ sql: String, _ arguments: StatementArguments = []) throws -> [String] {
        try String.fetchAll(cachedStatement(sql: sql), arguments: arguments)
    }

    /// Whether a query has a row.
    func exists(_ query: String, _ arguments: StatementArguments = []) throws -> Bool {
        try flag("SELECT EXISTS (\(query))", arguments) ?? false
    }
}

extension DatabaseGate {
    /// Whether a query has a row: checked before a write, so that most calls without work take no write lock.
    func exists(_ query: String, _ arguments: StatementArguments = []) async throws(JobsError) -> Bool {
        try await read { db in try db.exists(query, arguments) }
    }
}
