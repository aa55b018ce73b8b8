internal import GRDB

/// A connection to the database, on which the store's statements run.
///
/// Each statement is prepared once and cached. Statements that run for every item are ``RowStatement``s. They are written
/// for SQLite; ``PostgresDialect`` translates them.
struct Connection {
    enum Engine {
        case sqlite(Database)
        case postgres(PostgresConnection)
    }

    let engine: Engine

    init(_ sqlite: Database) { engine = .sqlite(sqlite) }

    init(_ postgres: PostgresConnection) { engine = .postgres(postgres) }

    /// Nil on PostgreSQL.
    var sqlite: Database? { if case .sqlite(let sqlite) = engine { sqlite } else { nil } }

    /// Nil on SQLite.
    var postgres: PostgresConnection? { if case .postgres(let connection) = engine { connection } else { nil } }

    /// Runs a statement whose answer is not needed. PostgreSQL runs it with the next one whose answer is, or with the
    /// commit, in one round trip; an error is thrown there.
    func run(_ sql: String, _ values: SQLValues = []) throws { try RowStatement(sql, in: self).run(all: values) }

    /// Runs a statement.
    ///
    /// - Returns: the number of changed rows.
    func change(_ sql: String, _ values: SQLValues = []) throws -> Int {
        try run(sql, values)
        return try changesCount()
    }

    /// Runs the statements that wait, so that their errors are thrown here. On SQLite none wait.
    func flush() throws {
        try postgres?.flush()
    }

    /// Runs an INSERT of one row that ends with `RETURNING id`.
    ///
    /// - Returns: the id of the row.
    func insert(_ sql: String, _ values: SQLValues = []) throws -> Int64 {
        guard let id = try integer(sql, values) else { throw JobsError(.internalError, "An INSERT returned no id.") }
        return id
    }

    /// Runs several statements without parameters.
    func script(_ sql: String) throws {
        switch engine {
        case .sqlite(let sqlite): try sqlite.execute(sql: sql)
        case .postgres(let connection): try connection.script(PostgresDialect.translated(sql))
        }
    }

    func rows(_ sql: String, _ values: SQLValues = []) throws -> [Row] {
        try RowStatement(sql, in: self).rows(values)
    }

    /// Calls `body` with each row, without keeping them all.
    func forEachRow(_ sql: String, _ values: SQLValues = [], _ body: (Row) throws -> Void) throws {
        try RowStatement(sql, in: self).forEachRow(values, body)
    }

    func row(_ sql: String, _ values: SQLValues = []) throws -> Row? {
        try RowStatement(sql, in: self).row(values)
    }

    /// The first column of the first row; the next three functions do the same for other types.
    func integer(_ sql: String, _ values: SQLValues = []) throws -> Int64? { try row(sql, values)?[0] }

    func int(_ sql: String, _ values: SQLValues = []) throws -> Int? { try row(sql, values)?[0] }

    func flag(_ sql: String, _ values: SQLValues = []) throws -> Bool? { try row(sql, values)?[0] }

    func text(_ sql: String, _ values: SQLValues = []) throws -> String? { try row(sql, values)?[0] }

    /// The first column of every row; the next function does the same for text.
    func integers(_ sql: String, _ values: SQLValues = []) throws -> [Int64] {
        try rows(sql, values).map { $0[0] ?? 0 }
    }

    func texts(_ sql: String, _ values: SQLValues = []) throws -> [String] {
        try rows(sql, values).map { $0[0] ?? "" }
    }

    /// Whether a query has a row.
    func exists(_ query: String, _ values: SQLValues = []) throws -> Bool {
        try flag("SELECT EXISTS (\(query))", values) ?? false
    }

    /// The number of rows that the last statement changed.
    func changesCount() throws -> Int {
        switch engine {
        case .sqlite(let sqlite): sqlite.changesCount
        case .postgres(let connection): try connection.changesCount()
        }
    }
}

extension DatabaseGate {
    /// Whether a query has a row: checked before a write, so that most calls without work take no write lock.
    func exists(_ query: String, _ values: SQLValues = []) async throws(JobsError) -> Bool {
        try await read { db in try db.exists(query, values) }
    }
}

/// The reason with which the database refuses a change.
enum Refusal {
    /// What a trigger may fail with by its own fault: a broken constraint or `RAISE`, a function that refuses its
    /// arguments, a table that is missing, a value that is too large.
    private static let codes: [ResultCode] = [.SQLITE_CONSTRAINT, .SQLITE_ERROR, .SQLITE_MISMATCH, .SQLITE_TOOBIG]

    /// - Returns: nil for an error of another kind.
    static func reason(of error: any Error) -> String? {
        if let error = error as? PostgresError { return error.refusal }
        guard let error = error as? DatabaseError, codes.contains(error.resultCode) else { return nil }
        return error.message ?? "without a reason"
    }
}
