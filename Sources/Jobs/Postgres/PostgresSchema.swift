/// The schema on PostgreSQL: that of SQLite, translated, with functions in place of triggers' bodies.
///
/// SQLite runs triggers in the reverse order of their creation, and PostgreSQL in the order of their names; so names
/// begin with a number that counts down (`w042_…`).
enum PostgresSchema {
    /// The columns of a table, and those of its primary key.
    struct Shape {
        let columns: [String]
        let key: [String]
    }

    /// The statements that make the schema in an empty database.
    static let statements: [String] = {
        let parts = (Schema.parts + [announcements]).flatMap { split(PostgresDialect.tokens(of: $0)) }
        var left = parts.count { $0[1].is("TRIGGER") }
        let translated = parts.flatMap { part -> [String] in
            if part[1].is("TRIGGER") {
                left -= 1
                return PostgresTrigger(part).map { $0.statements(number: left) } ?? []
            }
            return [
                PostgresDialect.text(of: part[1].is("TABLE") ? table(part) : index(PostgresDialect.rewritten(part)))
            ]
        }
        return [PostgresFunctions.all] + translated + [PostgresCounters.triggers] + turns + notifications
    }()

    /// See `FileAnnouncements.swift`. until: by the server's clock.
    private static let announcements = """
        CREATE TABLE announced_files (
            hash TEXT NOT NULL, owner INTEGER NOT NULL, until INTEGER NOT NULL, PRIMARY KEY (hash, owner)
        );
        CREATE TABLE removed_files (hash TEXT PRIMARY KEY, until INTEGER NOT NULL);
        """

    /// Tables in which only workers write, about what they are doing now. After a crash of the server workers write all
    /// of it again, so PostgreSQL need not log these rows.
    private static let unlogged: Set = [
        "host_load", "held_items", "transfer_progress", "spreading", "moving", "replacing", "announced_files",
    ]

    /// Tables to which users write. A trigger takes the write lock for each such statement.
    private static let shared = [
        "jobs", "items", "limits", "blacklist_entries", "recipes", "schedules", "cache_entries", "sources", "blobs",
        "suspension",
    ]

    private static let turns = shared.map { table in
        """
        CREATE TRIGGER a_turn BEFORE INSERT OR UPDATE OR DELETE ON \(table) FOR EACH STATEMENT
            WHEN (coalesce(current_setting('worker.session', true), '') <> 'on') EXECUTE FUNCTION worker_turn()
        """
    }

    /// The beginning of the name of a channel; the number of the table `jobs` follows, since a database may have several
    /// queues.
    static let channel = "worker_"

    /// Changes that a worker without work waits for: see ``QueueChanges``.
    private static let notifications = ["jobs", "items", "suspension", "schedules", "limits"].map { table in
        """
        CREATE TRIGGER z_changed AFTER INSERT OR UPDATE OR DELETE ON \(table) FOR EACH STATEMENT
            EXECUTE FUNCTION worker_changed()
        """
    }

    /// A condition on a trigger's name: this program has not made it.
    static func isForeign(_ name: String) -> String {
        "\(name) !~ '^w[0-9]{3}_' AND \(name) NOT IN ('a_turn', 'a_url', 'b_check_id', 'z_note_id', 'z_changed', 'items_count_insert', "
            + "'items_count_update', 'items_count_delete')"
    }

    /// By the names of the tables.
    static let shapes: [String: Shape] = {
        var shapes: [String: Shape] = [:]
        for part in (Schema.parts + [announcements]).flatMap({ split(SQLTokens.of($0)) }) where part[1].is("TABLE") {
            guard case .word(let name) = part[2] else { continue }
            shapes[name] = shape(part)
        }
        return shapes
    }()

    /// PostgreSQL keeps 63 bytes of a constraint's name, which is a sentence here.
    static func sentence(of constraint: String) -> String {
        sentences.first { $0.hasPrefix(constraint) } ?? constraint
    }

    private static let sentences: [String] = Schema.parts.flatMap(SQLTokens.of).compactMap { token -> String? in
        guard case .literal(let text) = token, text.hasPrefix("\"") else { return nil }
        return String(text.dropFirst().dropLast()).replacing("\"\"", with: "\"")
    }

    /// Splits a text into statements. A trigger's statements belong to it.
    private static func split(_ tokens: [SQLToken]) -> [[SQLToken]] {
        var parts: [[SQLToken]] = []
        var current: [SQLToken] = []
        var depth = 0
        for token in tokens {
            if token.is("BEGIN") || token.is("CASE") { depth += 1 }
            if token.is("END") { depth -= 1 }
            guard token.isSign(";"), depth == 0 else {
                current.append(token)
                continue
            }
            if current.count > 2 { parts.append(current) }
            current = []
        }
        return parts
    }

    /// Appends the id to an index of items: SQLite's have it, and the next items of a job are found in its order.
    private static func index(_ part: [SQLToken]) -> [SQLToken] {
        guard part[1].is("INDEX"), part.count > 5, part[4] == .word("items"), !part.contains(.word("id")),
            let end = part.firstIndex(where: { $0.isSign(")") })
        else { return part }
        return part[..<end] + [.sign(","), .word("id")] + part[end...]
    }

    // MARK: - Tables

    private static func table(_ part: [SQLToken]) -> [SQLToken] {
        guard case .word(let name) = part[2] else { return part }
        let isOfOneRow = name == "cache_totals" || name == "suspension"
        var result: [SQLToken] = []
        var index = 0
        let tokens = PostgresDialect.rewritten(part)
        while index < tokens.count {
            let token = tokens[index]
            index += 1
            if token.is("TABLE"), result.count == 1, unlogged.contains(name) { result.append(.word("UNLOGGED")) }
            if token.is("WITHOUT") || token.is("VIRTUAL") {
                // WITHOUT ROWID; and PostgreSQL 15 has only columns that are stored.
                if token.is("VIRTUAL") { result.append(.word("STORED")) } else { index += 1 }
            } else if token.is("ON"), tokens[index].is("CONFLICT") {
                index += 2
            } else if token.is("AUTOINCREMENT") {
                continue
            } else if token.is("AS"), tokens[index].isSign("(") {
                result += [.word("GENERATED"), .word("ALWAYS"), .word("AS")]
            } else if token.is("KEY"), !isOfOneRow, result.count > 2, result[result.count - 3] == .word("id") {
                result += [.word("KEY")] + SQLTokens.of("GENERATED BY DEFAULT AS IDENTITY")
            } else if let type = types[token.text] {
                result += type
            } else {
                result.append(token)
            }
        }
        return result
    }

    private static let types: [String: [SQLToken]] = [
        "INTEGER": [.word("BIGINT")],
        "REAL": [.word("DOUBLE"), .word("PRECISION")],
        "BLOB": [.word("BYTEA")],
        // SQLite compares bytes.
        "TEXT": [.word("TEXT"), .word("COLLATE"), .literal("\"C\"")],
    ]

    private static func shape(_ part: [SQLToken]) -> Shape {
        var columns: [String] = []
        var key: [String] = []
        var depth = 0
        var start = 4
        for index in 3..<part.count {
            if part[index].isSign("(") { depth += 1 }
            if part[index].isSign(")") { depth -= 1 }
            guard (depth == 1 && part[index].isSign(",")) || depth == 0 else { continue }
            let clause = Array(part[start..<index])
            start = index + 1
            if clause.first?.is("PRIMARY") == true {
                key = clause.dropFirst(2).compactMap { if case .word(let name) = $0 { name } else { nil } }
            } else if let first = clause.first, case .word(let name) = first, !first.is("CONSTRAINT"),
                // A generated column has no value of its own.
                !clause.contains(where: { $0.is("VIRTUAL") })
            {
                columns.append(name)
                if clause.contains(where: { $0.is("PRIMARY") }) { key = [name] }
            }
            if depth == 0 { break }
        }
        return Shape(columns: columns, key: key)
    }
}
