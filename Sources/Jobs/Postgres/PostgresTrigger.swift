/// A trigger of SQLite, as a function and a trigger of PostgreSQL.
struct PostgresTrigger {
    private let name: String
    /// BEFORE, AFTER or INSTEAD OF
    private let time: String
    /// Such as `UPDATE OF state`.
    private let event: String
    private let table: String
    private let condition: [SQLToken]
    private let body: [SQLToken]

    /// - Returns: nil for a trigger that PostgreSQL does not need, or has in another form: see ``PostgresCounters``.
    init?(_ part: [SQLToken]) {
        name = part[2].text
        guard !Self.replaced.contains(name), let on = part.firstIndex(where: { $0.is("ON") }),
            let begin = part.firstIndex(where: { $0.is("BEGIN") })
        else { return nil }
        let head = part[3..<on]
        table = part[on + 1].text
        let written = head.first.map { $0.is("INSTEAD") ? "INSTEAD OF" : $0.text } ?? "AFTER"
        let rowids: Set<SQLToken> = [.word("rowid"), .word("oid"), .word("_rowid_")]
        var events = head.dropFirst(written == "INSTEAD OF" ? 2 : 1).filter { !rowids.contains($0) }
        // The commas of the names that were removed.
        events = events.enumerated().filter { index, token in
            !token.isSign(",") || (index + 1 < events.count && !events[index + 1].isSign(","))
        }.map(\.element)
        event = PostgresDialect.text(of: events)
        // These only refuse changes. A trigger before the change would make the server lock each row first, and log that.
        time = written == "BEFORE" && event.hasPrefix("UPDATE") && table == "items" ? "AFTER" : written
        condition = part[on + 2].is("WHEN") ? Array(part[(on + 3)..<begin]) : []
        body = Array(part[(begin + 1)..<(part.count - 1)])
    }

    /// Their work is done by ``PostgresCounters``, or PostgreSQL needs it not: it has no `INSERT OR REPLACE`, and a new
    /// row has its id before triggers see it.
    private static let replaced: Set = [
        "event_log_refuse_ids", "jobs_note_replaced", "jobs_refuse_replacing", "items_refuse_replacing",
        "items_end_without_url", "items_count_insert", "items_count_update", "items_count_delete", "items_delete",
        "items_delete_tries", "blobs_count_insert", "blobs_count_delete",
    ]

    func statements(number: Int) -> [String] {
        let isView = time == "INSTEAD OF"
        // Neither a condition with a query nor one of a view's trigger may stand at the trigger.
        let isInside = isView || condition.contains { $0.is("SELECT") }
        let test = PostgresDialect.text(of: PostgresDialect.rewritten(condition))
        let leave = time == "AFTER" ? "RETURN NULL;" : event.hasPrefix("DELETE") ? "RETURN OLD;" : "RETURN NEW;"
        let guardLine = isInside && !condition.isEmpty ? "IF NOT coalesce((\(test)), false) THEN \(leave) END IF;" : ""
        let trigger = "w\(String(1_000 + number).dropFirst())_\(name)"
        let whens: [String] =
            (isView ? [] : ["coalesce(current_setting('worker.triggers', true), '') <> 'off'"])
            + (isInside || condition.isEmpty ? [] : ["(\(test))"])
        return [
            """
            CREATE FUNCTION \(trigger)() RETURNS trigger LANGUAGE plpgsql AS $worker$ BEGIN
            \(guardLine)
            \(steps.joined(separator: "\n"))
            \(leave)
            END $worker$
            """,
            """
            CREATE TRIGGER \(trigger) \(time) \(event) ON \(table) FOR EACH ROW
            \(whens.isEmpty ? "" : "WHEN (\(whens.joined(separator: " AND ")))") EXECUTE FUNCTION \(trigger)()
            """,
        ]
    }

    private var steps: [String] { body.split { $0.isSign(";") }.map { Self.step(Array($0)) } }

    private static func step(_ tokens: [SQLToken]) -> String {
        guard tokens.count > 3, tokens[0].is("SELECT"), tokens[1].is("RAISE") else {
            return PostgresDialect.text(of: PostgresDialect.rewritten(tokens)) + ";"
        }
        let end = tokens.firstIndex { $0.isSign(")") } ?? 3
        let action =
            tokens[3].is("IGNORE") ? "RETURN NULL;" : "RAISE EXCEPTION USING MESSAGE = \(tokens[end - 1].text);"
        guard let start = tokens.firstIndex(where: { $0.is("WHERE") }) else { return action }
        let condition = PostgresDialect.text(of: PostgresDialect.rewritten(Array(tokens[(start + 1)...])))
        return "IF (\(condition)) THEN \(action) END IF;"
    }
}
