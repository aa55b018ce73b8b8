/// Translates statements that are written for SQLite, so that each is written once.
///
/// Functions that PostgreSQL lacks are created in the database (``PostgresFunctions``). This type rewrites the syntax that
/// differs.
enum PostgresDialect {
    static func translated(_ sql: String) -> String { text(of: rewritten(tokens(of: sql))) }

    /// The tokens, with SQLite's long expression for the current time as the name of a function.
    static func tokens(of sql: String) -> [SQLToken] {
        SQLTokens.of(sql.replacing(Schema.now, with: "worker_now()"))
    }

    static func text(of tokens: some Sequence<SQLToken>) -> String { tokens.map(\.text).joined(separator: " ") }

    /// One statement.
    static func rewritten(_ tokens: [SQLToken]) -> [SQLToken] {
        var tokens = tokens
        numberParameters(&tokens)
        rewriteInserts(&tokens)
        rewriteCalls(&tokens)
        nameSubqueries(&tokens)
        moveNullTests(&tokens)
        var result: [SQLToken] = []
        var index = 0
        while index < tokens.count { index = append(tokens, index, to: &result) }
        return result
    }

    /// Appends the translation of the token at `index`.
    ///
    /// - Returns: the index of the next token.
    private static func append(_ tokens: [SQLToken], _ index: Int, to result: inout [SQLToken]) -> Int {
        let token = tokens[index]
        let next = index + 1 < tokens.count ? tokens[index + 1] : nil
        if token.is("INDEXED") {
            // INDEXED BY name, or NOT INDEXED
            if let last = result.last, last.is("NOT") {
                result.removeLast()
                return index + 1
            }
            return index + 3
        }
        if token.is("CROSS"), hasCondition(tokens, joinAt: index) { return index + 1 }
        if token.is("IS"), let next {
            let isNegated = next.is("NOT")
            let operand = isNegated ? (index + 2 < tokens.count ? tokens[index + 2] : nil) : next
            if let operand, !operand.is("NULL"), !operand.is("DISTINCT"), !operand.is("TRUE"), !operand.is("FALSE") {
                result += [.word("IS")] + (isNegated ? [] : [.word("NOT")]) + [.word("DISTINCT"), .word("FROM")]
                return index + (isNegated ? 2 : 1)
            }
        }
        if token.is("LIKE") {
            result.append(.word("ILIKE"))
            return index + 1
        }
        if token.is("GLOB"), let next {
            let isNegated = result.last?.is("NOT") ?? false
            if isNegated { result.removeLast() }
            result += [.sign(isNegated ? "!~" : "~"), .word("glob_as_regex"), .sign("("), next, .sign(")")]
            return index + 2
        }
        result.append(token)
        return index + 1
    }

    /// Whether a CROSS JOIN has a condition, which only SQLite allows: there it fixes the order of the tables.
    private static func hasCondition(_ tokens: [SQLToken], joinAt start: Int) -> Bool {
        var depth = 0
        for token in tokens[(start + 2)...] {
            if token.isSign("(") { depth += 1 }
            if token.isSign(")") {
                depth -= 1
                if depth < 0 { return false }
            }
            guard depth == 0 else { continue }
            if token.is("ON") { return true }
            if ["JOIN", "WHERE", "GROUP", "ORDER", "LIMIT", "UNION"].contains(where: token.is) { return false }
        }
        return false
    }

    private static func numberParameters(_ tokens: inout [SQLToken]) {
        var last = 0
        for index in tokens.indices {
            guard case .parameter(let number) = tokens[index] else { continue }
            if let number { last = max(last, number) } else { last += 1 }
            tokens[index] = .parameter(number ?? last)
        }
    }

    /// `(?1 IS NULL OR x = ?1)` becomes `(x = ?1 OR ?1 IS NULL)`: PostgreSQL learns the type of a parameter only where it
    /// is used with a value of a known type, and that must come first.
    private static func moveNullTests(_ tokens: inout [SQLToken]) {
        for index in tokens.indices.reversed() {
            guard index + 4 < tokens.count, tokens[index].isSign("("), case .parameter = tokens[index + 1],
                tokens[index + 2].is("IS"), tokens[index + 3].is("NULL"), tokens[index + 4].is("OR"),
                let end = arguments(tokens, at: index).last?.upperBound
            else { continue }
            let test = Array(tokens[(index + 1)...(index + 3)])
            tokens.replaceSubrange((index + 1)..<end, with: tokens[(index + 5)..<end] + [.word("OR")] + test)
        }
    }

    /// Gives each query in FROM a name, which PostgreSQL 15 demands.
    private static func nameSubqueries(_ tokens: inout [SQLToken]) {
        var open: [Bool] = []
        var ends: [Int] = []
        for (index, token) in tokens.enumerated() {
            if token.isSign("(") {
                let isInFrom = index > 0 && (tokens[index - 1].is("FROM") || tokens[index - 1].is("JOIN"))
                open.append(isInFrom && index + 1 < tokens.count && tokens[index + 1].is("SELECT"))
            }
            guard token.isSign(")"), open.popLast() == true else { continue }
            let next = index + 1 < tokens.count ? tokens[index + 1] : nil
            if let next, next.is("AS") { continue }
            ends.append(index)
        }
        for index in ends.reversed() {
            tokens.insert(contentsOf: [.word("AS"), .word("unnamed_\(index)")], at: index + 1)
        }
    }

    // MARK: - INSERT OR …

    private static func rewriteInserts(_ tokens: inout [SQLToken]) {
        guard let start = tokens.indices.first(where: { tokens[$0].is("INSERT") }), start + 4 < tokens.count,
            tokens[start + 1].is("OR"), case .word(let table) = tokens[start + 4]
        else { return }
        let action = tokens[start + 2]
        tokens.removeSubrange((start + 1)...(start + 2))
        var clause: [SQLToken] = ["ON", "CONFLICT"].map { .word($0) }
        if action.is("IGNORE") {
            clause += ["DO", "NOTHING"].map { .word($0) }
        } else if let shape = PostgresSchema.shapes[table] {
            clause += SQLTokens.of("(\(shape.key.joined(separator: ", "))) DO UPDATE SET ")
            let given = givenColumns(tokens, after: start + 2) ?? shape.columns
            // As SQLite does, which inserts a new row: columns that are not given get their defaults.
            let changes = shape.columns.filter { !shape.key.contains($0) }.map {
                "\($0) = \(given.contains($0) ? "excluded.\($0)" : "DEFAULT")"
            }
            clause += SQLTokens.of(
                (changes.isEmpty ? shape.key.prefix(1).map { "\($0) = excluded.\($0)" } : changes)
                    .joined(separator: ", "))
        }
        let end = tokens.lastIndex { $0.is("RETURNING") } ?? tokens.count
        tokens.insert(contentsOf: clause, at: end)
    }

    private static func givenColumns(_ tokens: [SQLToken], after table: Int) -> [String]? {
        guard table + 1 < tokens.count, tokens[table + 1].isSign("("),
            let end = tokens[table...].firstIndex(where: { $0.isSign(")") })
        else { return nil }
        return tokens[(table + 2)..<end].compactMap { if case .word(let name) = $0 { name } else { nil } }
    }

    // MARK: - Calls

    /// Functions with another name, or that PostgreSQL would take for its own with another meaning.
    private static let names = [
        "INSTR": "strpos", "CHAR": "chr", "JSON_EACH": "worker_json_each", "JSON_ARRAY": "json_build_array",
        "JSON_OBJECT": "json_build_object", "GROUP_CONCAT": "string_agg", "RANDOM": "worker_random",
        "TYPEOF": "worker_typeof", "PRINTF": "worker_printf",
        "JSON_QUOTE": "worker_json_quote", "JSON": "worker_json", "IFNULL": "coalesce",
    ]

    /// From the end, so that the calls within an argument are rewritten first.
    private static func rewriteCalls(_ tokens: inout [SQLToken]) {
        for index in tokens.indices.reversed() {
            guard index + 1 < tokens.count, tokens[index + 1].isSign("("), case .word(let word) = tokens[index],
                // A column or table of that name, as in `INSERT INTO t (`.
                index == 0 || !tokens[index - 1].isSign(".")
            else { continue }
            let name = word.uppercased()
            switch name {
            case "MIN" where arguments(tokens, at: index + 1).count > 1: tokens[index] = .word("least")
            case "MAX" where arguments(tokens, at: index + 1).count > 1: tokens[index] = .word("greatest")
            case "IIF": rewriteCondition(&tokens, at: index)
            case "CAST": rewriteCast(&tokens, at: index)
            default: if let other = names[name] { tokens[index] = .word(other) }
            }
        }
    }

    /// The ranges of a call's arguments, without the commas between them.
    private static func arguments(_ tokens: [SQLToken], at open: Int) -> [Range<Int>] {
        var depth = 0
        var start = open + 1
        var ranges: [Range<Int>] = []
        for index in open..<tokens.count {
            if tokens[index].isSign("(") { depth += 1 }
            if tokens[index].isSign(")") {
                depth -= 1
                if depth == 0 { return ranges + [start..<index] }
            }
            if depth == 1, tokens[index].isSign(",") {
                ranges.append(start..<index)
                start = index + 1
            }
        }
        return ranges
    }

    /// `iif(c, a, b)` becomes `CASE WHEN c THEN a ELSE b END`, in parentheses.
    private static func rewriteCondition(_ tokens: inout [SQLToken], at index: Int) {
        let parts = arguments(tokens, at: index + 1)
        guard parts.count == 3 else { return }
        let new: [SQLToken] =
            [.sign("("), .word("CASE"), .word("WHEN")] + tokens[parts[0]] + [.word("THEN")] + tokens[parts[1]]
            + [.word("ELSE")] + tokens[parts[2]] + [.word("END"), .sign(")")]
        tokens.replaceSubrange(index...parts[2].upperBound, with: new)
    }

    /// SQLite cuts fractions off and takes text that is no number for 0; PostgreSQL rounds and fails.
    private static func rewriteCast(_ tokens: inout [SQLToken], at index: Int) {
        guard let range = arguments(tokens, at: index + 1).first, range.count > 2 else { return }
        let type = tokens[range.upperBound - 1]
        let value = tokens[range.lowerBound..<(range.upperBound - 2)]
        if type.is("INTEGER") {
            tokens.replaceSubrange(
                index...range.upperBound, with: [.word("worker_integer"), .sign("(")] + value + [.sign(")")])
        } else if type.is("BLOB") {
            tokens.replaceSubrange(
                index...range.upperBound,
                with: [.word("convert_to"), .sign("(")] + value + [.sign(","), .literal("'UTF8'"), .sign(")")])
        } else if type.is("REAL") {
            tokens.replaceSubrange(
                (range.upperBound - 1)..<range.upperBound, with: [.word("DOUBLE"), .word("PRECISION")])
        }
    }
}
