internal import Core
internal import GRDB
internal import GRDBSQLite

/// A statement that runs for every item. It binds values with SQLite's own calls.
///
/// GRDB boxes each value and looks for changes to report to observers, which took more than half as long as SQLite
/// itself; this program has no observers. GRDB still prepares and caches the statement.
struct RowStatement {
    private let statement: Statement
    private let connection: SQLiteConnection?

    /// Gets the statement from GRDB's cache, which keeps it. Use it only on the database's queue.
    init(_ sql: String, in db: Database) throws {
        statement = try db.cachedStatement(sql: sql)
        connection = db.sqliteConnection
    }

    /// Runs the statement to its end, with these values for its parameters.
    func run<each Value: RowValue>(_ values: repeat each Value) throws {
        defer { sqlite3_reset(raw) }
        try bind(repeat each values)
        while try step() {}
    }

    /// The first row; nil if there is none.
    func first<each Value: RowValue, Result>(
        _ values: repeat each Value, read: (RowColumns) throws -> Result,
    ) throws -> Result? {
        defer { sqlite3_reset(raw) }
        try bind(repeat each values)
        return try step() ? read(RowColumns(raw: raw)) : nil
    }

    /// All rows.
    func all<each Value: RowValue, Result>(
        _ values: repeat each Value, read: (RowColumns) throws -> Result,
    ) throws -> [Result] {
        defer { sqlite3_reset(raw) }
        try bind(repeat each values)
        var rows: [Result] = []
        while try step() { rows.append(try read(RowColumns(raw: raw))) }
        return rows
    }

    private var raw: SQLiteStatement { statement.sqliteStatement }

    private func bind<each Value: RowValue>(_ values: repeat each Value) throws {
        var index: CInt = 0
        for value in repeat each values {
            index += 1
            try check(value.bind(to: raw, at: index))
        }
    }

    /// - Returns: whether there is another row.
    private func step() throws -> Bool {
        let code = sqlite3_step(raw)
        if code == SQLITE_DONE { return false }
        if code != SQLITE_ROW { try check(code) }
        return true
    }

    private func check(_ code: CInt) throws {
        guard code != SQLITE_OK else { return }
        throw DatabaseError(
            resultCode: ResultCode(rawValue: code), message: String(cString: sqlite3_errmsg(connection)),
            sql: statement.sql)
    }
}

extension DatabaseGate {
    /// The version of the SQLite library.
    public static var libraryVersion: String { String(cString: sqlite3_libversion()) }
}

extension Database {
    /// Removes GRDB's authorizer from this connection.
    ///
    /// It notes the tables and columns of each statement for observers, and this program has none. SQLite asks it about
    /// every column in every trigger that a statement may run, which took 60 ms of CPU at each start of a worker.
    /// https://www.sqlite.org/c3ref/set_authorizer.html
    ///
    /// Without it, GRDB does not notice changes of the schema: call this once the schema is complete.
    func removeAuthorizer() { sqlite3_set_authorizer(sqliteConnection, nil, nil) }
}

/// The statements of a transaction that runs them for many rows: each is looked up once.
///
/// GRDB finds a statement by hashing its text; for a dozen statements of each item that took 3 % of a run's CPU.
final class RowStatements {
    let db: Database
    /// By the addresses of their names or texts. There are a dozen at most, so a linear search is as fast as hashing.
    private var kept: [(address: UnsafePointer<UInt8>, statement: RowStatement)] = []

    init(_ db: Database) { self.db = db }

    /// The statement with this text.
    func callAsFunction(_ sql: StaticString) throws -> RowStatement { try self(sql, sql.description) }

    /// The statement of this name; its text is made only once.
    func callAsFunction(_ name: StaticString, _ sql: @autoclosure () -> String) throws -> RowStatement {
        let address = name.utf8Start
        for one in kept where one.address == address { return one.statement }
        let statement = try RowStatement(sql(), in: db)
        kept.append((address, statement))
        return statement
    }
}

/// The current row of a statement. Columns are counted from zero.
struct RowColumns {
    fileprivate let raw: SQLiteStatement

    func integer(_ column: CInt) -> Int64 { sqlite3_column_int64(raw, column) }

    /// A number of bytes.
    func size(_ column: CInt) -> Int64 { Int64(bytes: integer(column)) }

    func number<Number: FixedWidthInteger>(_ column: CInt) -> Number? {
        isNull(column) ? nil : Number(clamping: sqlite3_column_int64(raw, column))
    }

    func flag(_ column: CInt) -> Bool? { isNull(column) ? nil : sqlite3_column_int64(raw, column) != 0 }

    /// Invalid UTF-8 is read with replacement characters, as in GRDB.
    func text(_ column: CInt) -> String? {
        guard let bytes = sqlite3_column_text(raw, column) else { return nil }
        let count = Int(sqlite3_column_bytes(raw, column))
        return String(decoding: UnsafeBufferPointer(start: bytes, count: count), as: UTF8.self)
    }

    private func isNull(_ column: CInt) -> Bool { sqlite3_column_type(raw, column) == SQLITE_NULL }
}

/// A type that can be bound to a parameter.
protocol RowValue {
    /// - Returns: SQLite's result code.
    func bind(to raw: SQLiteStatement, at index: CInt) -> CInt
}

extension Int64: RowValue {
    func bind(to raw: SQLiteStatement, at index: CInt) -> CInt { sqlite3_bind_int64(raw, index, self) }
}

extension WallTime: RowValue {
    func bind(to raw: SQLiteStatement, at index: CInt) -> CInt { milliseconds.bind(to: raw, at: index) }
}

extension SteadyTime: RowValue {
    func bind(to raw: SQLiteStatement, at index: CInt) -> CInt { milliseconds.bind(to: raw, at: index) }
}

extension Int: RowValue {
    func bind(to raw: SQLiteStatement, at index: CInt) -> CInt { sqlite3_bind_int64(raw, index, Int64(self)) }
}

extension Bool: RowValue {
    func bind(to raw: SQLiteStatement, at index: CInt) -> CInt { sqlite3_bind_int64(raw, index, self ? 1 : 0) }
}

extension String: RowValue {
    /// https://sqlite.org/c3ref/c_static.html: SQLite copies the text.
    private static let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

    func bind(to raw: SQLiteStatement, at index: CInt) -> CInt {
        var text = self
        return text.withUTF8 { bytes in
            // A null pointer would bind NULL instead of an empty text.
            guard let start = bytes.baseAddress else { return sqlite3_bind_text(raw, index, "", 0, nil) }
            return start.withMemoryRebound(to: CChar.self, capacity: bytes.count) {
                sqlite3_bind_text64(raw, index, $0, UInt64(bytes.count), Self.copied, UInt8(SQLITE_UTF8))
            }
        }
    }
}

extension Optional: RowValue where Wrapped: RowValue {
    func bind(to raw: SQLiteStatement, at index: CInt) -> CInt {
        switch self {
        case .some(let value): value.bind(to: raw, at: index)
        case .none: sqlite3_bind_null(raw, index)
        }
    }
}
