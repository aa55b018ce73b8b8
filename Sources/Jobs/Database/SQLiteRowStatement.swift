internal import Core
internal import GRDB
internal import GRDBSQLite

/// A prepared statement of SQLite. It binds values with SQLite's own calls.
///
/// GRDB boxes each value and looks for changes to report to observers, which took more than half as long as SQLite
/// itself; this program has no observers. GRDB still prepares and caches the statement.
struct SQLiteRowStatement {
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
        return try step() ? read(.sqlite(SQLiteRow(raw: raw))) : nil
    }

    /// All rows.
    func all<each Value: RowValue, Result>(
        _ values: repeat each Value, read: (RowColumns) throws -> Result,
    ) throws -> [Result] {
        defer { sqlite3_reset(raw) }
        try bind(repeat each values)
        var rows: [Result] = []
        while try step() { rows.append(try read(.sqlite(SQLiteRow(raw: raw)))) }
        return rows
    }

    // MARK: - Values of any number and rows of any columns

    func run(all values: SQLValues) throws {
        defer { sqlite3_reset(raw) }
        try bind(values)
        while try step() {}
    }

    func rows(_ values: SQLValues) throws -> [Row] {
        var rows: [Row] = []
        try forEachRow(values) { rows.append($0) }
        return rows
    }

    /// The first row; nil if there is none.
    func row(_ values: SQLValues) throws -> Row? {
        defer { sqlite3_reset(raw) }
        try bind(values)
        return try step() ? row(names: statement.columnNames) : nil
    }

    func forEachRow(_ values: SQLValues, _ body: (Row) throws -> Void) throws {
        defer { sqlite3_reset(raw) }
        try bind(values)
        let names = statement.columnNames
        while try step() { try body(row(names: names)) }
    }

    private func row(names: [String]) -> Row {
        let columns = SQLiteRow(raw: raw)
        return Row(columnNames: names, values: names.indices.map { columns.value(CInt($0)) })
    }

    /// The number of rows that the last statement of the connection changed.
    var changesCount: Int { connection.map { Int(sqlite3_changes($0)) } ?? 0 }

    private var raw: SQLiteStatement { statement.sqliteStatement }

    private func bind(_ values: SQLValues) throws {
        let count = Int(sqlite3_bind_parameter_count(raw))
        guard values.all.count == count else {
            throw JobsError(.internalError, "A statement has \(count) parameters and got \(values.all.count) values.")
        }
        for (index, value) in values.all.enumerated() { try check(value.bind(to: raw, at: CInt(index) + 1)) }
    }

    private func bind<each Value: RowValue>(_ values: repeat each Value) throws {
        var index: CInt = 0
        for value in repeat each values {
            index += 1
            try check(value.value.bind(to: raw, at: index))
        }
        // A parameter without a value would keep that of the call before.
        assert(index == sqlite3_bind_parameter_count(raw), statement.sql)
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

/// The current row of a statement of SQLite.
struct SQLiteRow {
    fileprivate let raw: SQLiteStatement

    func integer(_ column: CInt) -> Int64 { sqlite3_column_int64(raw, column) }

    /// Invalid UTF-8 is read with replacement characters, as in GRDB.
    func text(_ column: CInt) -> String? {
        guard let bytes = sqlite3_column_text(raw, column) else { return nil }
        let count = Int(sqlite3_column_bytes(raw, column))
        return String(decoding: UnsafeBufferPointer(start: bytes, count: count), as: UTF8.self)
    }

    func value(_ column: CInt) -> SQLValue {
        switch sqlite3_column_type(raw, column) {
        case SQLITE_INTEGER: .integer(integer(column))
        case SQLITE_FLOAT: .real(sqlite3_column_double(raw, column))
        case SQLITE_TEXT: .text(text(column) ?? "")
        case SQLITE_BLOB: .bytes(bytes(column))
        default: .null
        }
    }

    private func bytes(_ column: CInt) -> [UInt8] {
        let start = sqlite3_column_blob(raw, column)
        return Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(raw, column))))
    }

    func isNull(_ column: CInt) -> Bool { sqlite3_column_type(raw, column) == SQLITE_NULL }
}

extension SQLValue {
    /// - Returns: SQLite's result code.
    fileprivate func bind(to raw: SQLiteStatement, at index: CInt) -> CInt {
        switch self {
        case .null: sqlite3_bind_null(raw, index)
        case .integer(let value): sqlite3_bind_int64(raw, index, value)
        case .real(let value): sqlite3_bind_double(raw, index, value)
        case .text(var text):
            text.withUTF8 { bytes in
                // A null pointer would bind NULL instead of an empty text.
                guard let start = bytes.baseAddress else { return sqlite3_bind_text(raw, index, "", 0, nil) }
                return start.withMemoryRebound(to: CChar.self, capacity: bytes.count) {
                    sqlite3_bind_text64(raw, index, $0, UInt64(bytes.count), Self.copied, UInt8(SQLITE_UTF8))
                }
            }
        case .bytes(let bytes):
            bytes.withUnsafeBytes { bytes in
                // A null pointer would bind NULL instead of an empty blob.
                guard let start = bytes.baseAddress else { return sqlite3_bind_zeroblob(raw, index, 0) }
                return sqlite3_bind_blob64(raw, index, start, UInt64(bytes.count), Self.copied)
            }
        }
    }

    /// https://sqlite.org/c3ref/c_static.html: SQLite copies the bytes.
    private static let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
}
