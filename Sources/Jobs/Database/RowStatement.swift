internal import Core

/// A statement that runs for every item, on either engine.
enum RowStatement {
    case sqlite(SQLiteRowStatement)
    case postgres(PostgresStatement)

    /// The engine keeps prepared statements. Use it only on the database's queue.
    init(_ sql: String, in db: Connection) throws {
        switch db.engine {
        case .sqlite(let sqlite): self = .sqlite(try SQLiteRowStatement(sql, in: sqlite))
        case .postgres(let connection): self = .postgres(try PostgresStatement(sql, in: connection))
        }
    }

    /// Runs the statement to its end, with these values for its parameters. PostgreSQL runs it with the next statement
    /// whose answer is needed, or with the commit; an error is thrown there.
    func run<each Value: RowValue>(_ values: repeat each Value) throws {
        switch self {
        case .sqlite(let statement): try statement.run(repeat each values)
        case .postgres(let statement): try statement.post(Self.list(repeat each values))
        }
    }

    /// The first row; nil if there is none.
    func first<each Value: RowValue, Result>(
        _ values: repeat each Value, read: (RowColumns) throws -> Result,
    ) throws -> Result? {
        switch self {
        case .sqlite(let statement): return try statement.first(repeat each values, read: read)
        case .postgres(let statement):
            let result = try statement.result(Self.list(repeat each values))
            return result.rowCount > 0 ? try read(.postgres(result, 0)) : nil
        }
    }

    /// All rows.
    func all<each Value: RowValue, Result>(
        _ values: repeat each Value, read: (RowColumns) throws -> Result,
    ) throws -> [Result] {
        switch self {
        case .sqlite(let statement): return try statement.all(repeat each values, read: read)
        case .postgres(let statement):
            let result = try statement.result(Self.list(repeat each values))
            return try (0..<result.rowCount).map { try read(.postgres(result, $0)) }
        }
    }

    // MARK: - Many rows of values

    /// Runs the statement for each element. SQLite runs it again and again, and PostgreSQL once with all values, as late
    /// as `run`. So no element's change may depend on that of another.
    ///
    /// - Parameter values: of an element, for the statement's parameters.
    func runEach<Element, each Value: RowValue>(
        _ elements: [Element], _ values: (Element) throws -> (repeat each Value),
    ) throws {
        switch self {
        case .sqlite(let statement):
            for element in elements {
                let row = try values(element)
                try statement.run(repeat each row)
            }
        case .postgres(let statement):
            try statement.runEach(
                elements.map { element in
                    let row = try values(element)
                    return Self.list(repeat each row)
                })
        }
    }

    /// Runs the statement for each element, at once.
    ///
    /// - Returns: for each element, whether a row was inserted, changed or deleted.
    func changeEach<Element, each Value: RowValue>(
        _ elements: [Element], _ values: (Element) throws -> (repeat each Value),
    ) throws -> [Bool] {
        switch self {
        case .sqlite(let statement):
            return try elements.map { element in
                let row = try values(element)
                try statement.run(repeat each row)
                return statement.changesCount > 0
            }
        case .postgres(let statement):
            return try statement.changeEach(
                elements.map { element in
                    let row = try values(element)
                    return Self.list(repeat each row)
                })
        }
    }

    /// The first row of a query for each element, in the same way.
    func firstEach<Element, each Value: RowValue, Found>(
        _ elements: [Element], _ values: (Element) throws -> (repeat each Value), read: (RowColumns) throws -> Found,
    ) throws -> [Found?] {
        switch self {
        case .sqlite(let statement):
            return try elements.map { element in
                let row = try values(element)
                return try statement.first(repeat each row, read: read)
            }
        case .postgres(let statement):
            let rows = try elements.map { element in
                let row = try values(element)
                return Self.list(repeat each row)
            }
            return try statement.firstEach(rows) { try read(.postgres($0, $1)) }
        }
    }

    // MARK: - Values of any number and rows of any columns

    func run(all values: SQLValues) throws {
        switch self {
        case .sqlite(let statement): try statement.run(all: values)
        case .postgres(let statement): try statement.post(values.all)
        }
    }

    func runEach(all rows: [SQLValues]) throws {
        switch self {
        case .sqlite(let statement): for values in rows { try statement.run(all: values) }
        case .postgres(let statement): try statement.runEach(rows.map(\.all))
        }
    }

    func rows(_ values: SQLValues) throws -> [Row] {
        var rows: [Row] = []
        try forEachRow(values) { rows.append($0) }
        return rows
    }

    /// The first row; nil if there is none.
    func row(_ values: SQLValues) throws -> Row? {
        switch self {
        case .sqlite(let statement): return try statement.row(values)
        case .postgres(let statement):
            let result = try statement.result(values.all)
            return result.rowCount > 0 ? Row(result, 0) : nil
        }
    }

    func forEachRow(_ values: SQLValues, _ body: (Row) throws -> Void) throws {
        switch self {
        case .sqlite(let statement): try statement.forEachRow(values, body)
        case .postgres(let statement):
            let result = try statement.result(values.all)
            for row in 0..<result.rowCount { try body(Row(result, row)) }
        }
    }

    private static func list<each Value: RowValue>(_ values: repeat each Value) -> [SQLValue] {
        var list: [SQLValue] = []
        for value in repeat each values { list.append(value.value) }
        return list
    }
}

/// The current row of a statement. Columns are counted from zero.
enum RowColumns {
    case sqlite(SQLiteRow)
    case postgres(PostgresResult, Int)

    func integer(_ column: CInt) -> Int64 {
        switch self {
        case .sqlite(let row): row.integer(column)
        case .postgres(let result, let row): result.integer(row, Int(column))
        }
    }

    /// A number of bytes.
    func size(_ column: CInt) -> Int64 { Int64(bytes: integer(column)) }

    func number<Number: FixedWidthInteger>(_ column: CInt) -> Number? {
        isNull(column) ? nil : Number(clamping: integer(column))
    }

    func flag(_ column: CInt) -> Bool? { isNull(column) ? nil : integer(column) != 0 }

    /// Invalid UTF-8 is read with replacement characters.
    func text(_ column: CInt) -> String? {
        switch self {
        case .sqlite(let row): row.text(column)
        case .postgres(let result, let row): result.text(row, Int(column))
        }
    }

    func value(_ column: CInt) -> SQLValue {
        switch self {
        case .sqlite(let row): row.value(column)
        case .postgres(let result, let row): result.value(row, Int(column))
        }
    }

    /// The columns as a row with these names.
    func row(_ names: [String]) -> Row {
        Row(columnNames: names, values: names.indices.map { value(CInt($0)) })
    }

    private func isNull(_ column: CInt) -> Bool {
        switch self {
        case .sqlite(let row): row.isNull(column)
        case .postgres(let result, let row): result.isNull(row, Int(column))
        }
    }
}

extension Row {
    fileprivate init(_ result: PostgresResult, _ row: Int) {
        self.init(
            columnNames: result.columnNames, values: result.columnNames.indices.map { result.value(row, $0) })
    }
}

/// The statements of a transaction that runs them for many rows: each is looked up once.
///
/// GRDB finds a statement by hashing its text; for a dozen statements of each item that took 3 % of a run's CPU.
final class RowStatements {
    let db: Connection
    /// By the addresses of their names or texts. There are a dozen at most, so a linear search is as fast as hashing.
    private var kept: [(address: UnsafePointer<UInt8>, statement: RowStatement)] = []

    init(_ db: Connection) { self.db = db }

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
