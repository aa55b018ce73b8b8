/// A prepared statement of PostgreSQL.
struct PostgresStatement {
    private let name: String
    let sql: String
    let connection: PostgresConnection

    init(_ sql: String, in connection: PostgresConnection) throws {
        name = try connection.name(of: sql)
        self.sql = sql
        self.connection = connection
    }

    func result(_ values: [SQLValue]) throws -> PostgresResult { try connection.execute(name, values) }

    /// Runs the statement with the next one whose answer is needed.
    func post(_ values: [SQLValue]) throws { try connection.post(name, values) }
}

extension SQLValue {
    /// The value as a parameter in text format; nil for null.
    var postgresText: String? {
        switch self {
        case .null: nil
        case .integer(let value): "\(value)"
        case .real(let value):
            value.isNaN ? "NaN" : value.isInfinite ? (value < 0 ? "-Infinity" : "Infinity") : "\(value)"
        case .text(let text): text
        // No column holds bytes: a value that was given as bytes is compared with text.
        case .bytes(let bytes): String(decoding: bytes, as: UTF8.self)
        }
    }
}

extension PostgresStatement {
    /// Runs the statement for many rows of values, without waiting for the answers.
    func runEach(_ rows: [[SQLValue]]) throws {
        guard rows.count > 1, let batch = try connection.batch(of: sql) else {
            for row in rows { try post(row) }
            return
        }
        for places in batch.rounds(rows) { try connection.postBatch(of: sql, places.map { rows[$0] }) }
    }

    /// Runs the statement for many rows of values.
    ///
    /// - Returns: for each, whether a row of the table was inserted, changed or deleted.
    func changeEach(_ rows: [[SQLValue]]) throws -> [Bool] {
        guard rows.count > 1, let batch = try connection.batch(of: sql) else {
            return try rows.map { try result($0).changes > 0 }
        }
        var isChanged = Array(repeating: false, count: rows.count)
        for places in batch.rounds(rows) {
            let answer = try connection.executeBatch(of: sql, places.map { rows[$0] })
            for place in batch.answered(answer, places, rows) { isChanged[place] = true }
        }
        return isChanged
    }

    /// The first row of a query for each row of values.
    ///
    /// - Parameter read: gets a result and the number of its row.
    func firstEach<Found>(_ rows: [[SQLValue]], read: (PostgresResult, Int) throws -> Found) throws -> [Found?] {
        guard rows.count > 1, let batch = try connection.batch(of: sql) else {
            return try rows.map { row in
                let one = try result(row)
                return one.rowCount > 0 ? try read(one, 0) : nil
            }
        }
        let answer = try connection.executeBatch(of: sql, rows)
        var found: [Found?] = Array(repeating: nil, count: rows.count)
        for (number, place) in batch.answered(answer, Array(rows.indices), rows).enumerated() where found[place] == nil
        {
            found[place] = try read(answer, number)
        }
        return found
    }
}
