/// A statement in the form that runs it for many rows of values at once.
///
/// The values arrive as one array for each parameter. `unnest` makes a table of them, whose columns stand where the
/// parameters stood, so that a group of items takes one round trip in place of one for each item.
struct PostgresBatch {
    let sql: String
    let answer: Answer

    /// How the rows of the result tell which rows of values they belong to.
    enum Answer {
        /// The last column is the number of the row, from 1.
        case number
        /// They have the primary key, whose values are these parameters, counted from 0. `isExclusive`: one statement may
        /// meet each key only once.
        case key([Int], isExclusive: Bool)
    }

    /// - Parameters:
    ///   - tokens: the statement, translated.
    ///   - types: of its parameters.
    /// - Returns: nil for a statement without such a form.
    init?(_ tokens: [SQLToken], types: [String]) {
        guard !types.isEmpty, let first = tokens.first else { return nil }
        let given = Self.table(types)
        let body = tokens.map(Self.column)
        if first.is("SELECT") {
            sql =
                "SELECT found.*, given.number FROM \(given) CROSS JOIN LATERAL (\(PostgresDialect.text(of: body))) AS found "
                + "ORDER BY given.number"
            answer = .number
        } else if first.is("UPDATE") || first.is("DELETE") {
            guard let end = Self.outer("WHERE", body), !body.contains(where: { $0.is("RETURNING") }) else { return nil }
            sql =
                "\(PostgresDialect.text(of: body[..<end])) \(first.is("UPDATE") ? "FROM" : "USING") \(given) \(PostgresDialect.text(of: body[end...])) "
                + "RETURNING given.number"
            answer = .number
        } else if let insertion = Self.insertion(tokens, body, given) {
            (sql, answer) = insertion
        } else {
            return nil
        }
    }

    /// `unnest($1::BIGINT[], …) WITH ORDINALITY AS given (p1, …, number)`
    private static func table(_ types: [String]) -> String {
        let arrays = types.enumerated().map { "$\($0.offset + 1)::\($0.element)[]" }
        let columns = types.indices.map { "p\($0 + 1)" }
        return "unnest(\(arrays.joined(separator: ", "))) WITH ORDINALITY AS given "
            + "(\(columns.joined(separator: ", ")), number)"
    }

    private static func column(_ token: SQLToken) -> SQLToken {
        if case .parameter(let number?) = token { .word("given.p\(number)") } else { token }
    }

    /// The first such keyword outside of parentheses.
    private static func outer(_ keyword: String, _ tokens: [SQLToken]) -> Int? {
        var depth = 0
        return tokens.firstIndex { token in
            if token.isSign("(") { depth += 1 }
            if token.isSign(")") { depth -= 1 }
            return depth == 0 && token.is(keyword)
        }
    }

    /// `INSERT INTO t (…) VALUES (…) ON CONFLICT …`
    private static func insertion(_ tokens: [SQLToken], _ body: [SQLToken], _ given: String) -> (String, Answer)? {
        guard tokens.count > 3, tokens[0].is("INSERT"), case .word(let table) = tokens[2],
            let shape = PostgresSchema.shapes[table], let start = outer("VALUES", tokens),
            let end = tokens[start...].firstIndex(where: { $0.isSign(")") }),
            !tokens.contains(where: { $0.is("RETURNING") }),
            !tokens[end...].contains(where: { if case .parameter = $0 { true } else { false } })
        else { return nil }
        let values = tokens[(start + 2)..<end].split { $0.isSign(",") }
        let columns =
            tokens[3].isSign("(")
            ? tokens[4..<(start - 1)].compactMap { if case .word(let name) = $0 { name } else { nil } } : shape.columns
        // A call among the values has commas of its own.
        guard values.count == columns.count, values.allSatisfy({ $0.count == 1 }) else { return nil }
        let names = target(of: Array(tokens[end...])) ?? shape.key
        let key = names.compactMap { name -> Int? in
            guard let place = columns.firstIndex(of: name), case .parameter(let number?) = values[place].first
            else { return nil }
            return number - 1
        }
        guard key.count == names.count else { return nil }
        let sql =
            "\(PostgresDialect.text(of: body[..<start])) SELECT \(PostgresDialect.text(of: body[(start + 2)..<end])) FROM \(given) ORDER BY given.number "
            + "\(PostgresDialect.text(of: body[(end + 1)...])) RETURNING \(names.joined(separator: ", "))"
        return (sql, .key(key, isExclusive: tokens[end...].contains { $0.is("UPDATE") }))
    }

    /// The columns of `ON CONFLICT (…)`, which may be another key than the table's first.
    private static func target(of tokens: [SQLToken]) -> [String]? {
        guard let start = tokens.firstIndex(where: { $0.is("CONFLICT") }), start + 1 < tokens.count,
            tokens[start + 1].isSign("("), let end = tokens[start...].firstIndex(where: { $0.isSign(")") })
        else { return nil }
        return tokens[(start + 2)..<end].compactMap { if case .word(let name) = $0 { name } else { nil } }
    }

    /// The name of a parameter's type by its id, which never changes: pg_type.dat in PostgreSQL's sources.
    static func name(ofType id: UInt32) -> String? {
        switch id {
        case 16: "BOOLEAN"
        case 20: "BIGINT"
        case 21: "SMALLINT"
        case 23: "INTEGER"
        case 25: "TEXT"
        case 700: "REAL"
        case 701: "DOUBLE PRECISION"
        case 1700: "NUMERIC"
        default: nil
        }
    }
}

/// The values of many rows, as one array in PostgreSQL's text format for each column.
struct PostgresArrays {
    private var columns: [[UInt8]]

    init(columns count: Int) { columns = Array(repeating: [UInt8(ascii: "{")], count: count) }

    mutating func add(_ row: [SQLValue]) {
        for (index, value) in row.enumerated() {
            if columns[index].count > 1 { columns[index].append(UInt8(ascii: ",")) }
            switch value {
            case .null: columns[index].append(contentsOf: "NULL".utf8)
            case .integer(let number): columns[index].append(contentsOf: String(number).utf8)
            case .real, .text, .bytes: Self.quote(value.postgresText ?? "", &columns[index])
            }
        }
    }

    private static func quote(_ text: String, _ array: inout [UInt8]) {
        array.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { array.append(UInt8(ascii: "\\")) }
            array.append(byte == 0 ? PostgresConnection.replacement : byte)
        }
        array.append(UInt8(ascii: "\""))
    }

    /// - Returns: all arrays, each ended by a zero, and where each begins.
    func close() -> (bytes: [UInt8], starts: [Int?]) {
        var bytes: [UInt8] = []
        var starts: [Int?] = []
        for column in columns {
            starts.append(bytes.count)
            bytes += column
            bytes += [UInt8(ascii: "}"), 0]
        }
        return (bytes, starts)
    }
}

extension PostgresBatch {
    /// The rows that one statement takes: all, or those without a key that comes a second time.
    func rounds(_ rows: [[SQLValue]]) -> [[Int]] {
        guard case .key(let columns, isExclusive: true) = answer else { return [Array(rows.indices)] }
        var met: [[SQLValue]: Int] = [:]
        var rounds: [[Int]] = []
        for (place, row) in rows.enumerated() {
            let round = met[columns.map { row[$0] }, default: 0]
            met[columns.map { row[$0] }] = round + 1
            if round == rounds.count { rounds.append([]) }
            rounds[round].append(place)
        }
        return rounds
    }

    /// The places of the rows of values that the rows of a result belong to.
    func answered(_ result: PostgresResult, _ places: [Int], _ rows: [[SQLValue]]) -> [Int] {
        switch answer {
        case .number:
            let column = result.columnNames.count - 1
            return (0..<result.rowCount).map { places[Int(result.integer($0, column)) - 1] }
        case .key(let columns, _):
            // Of rows with one key, the first was inserted.
            let known = Dictionary(places.map { place in (columns.map { Self.keyText(rows[place][$0]) }, place) }) {
                first, _ in first
            }
            return (0..<result.rowCount).compactMap { row in known[columns.indices.map { result.text(row, $0) ?? "" }] }
        }
    }

    private static func keyText(_ value: SQLValue) -> String { (value.postgresText ?? "").replacing("\0", with: "?") }
}
