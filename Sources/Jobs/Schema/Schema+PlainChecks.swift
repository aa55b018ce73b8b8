/// Migration 10: conditions that SQLite checks without making a table for them.
///
/// It keeps the values of `x IN (…)`, where they are three and more, in a table of its own, which it makes anew for each
/// statement and each run of a trigger: a fifth of what a download cost. Written one by one they cost next to nothing.
extension Schema {
    /// The text of the tables is changed and not the tables: the same rows pass as before, and there may be millions
    /// (https://www.sqlite.org/lang_altertable.html, at its end). The triggers' change tells other programs to read it anew.
    static let plainChecks = """
        PRAGMA writable_schema = ON;
        UPDATE sqlite_schema SET sql = replace(replace(sql,
            \(quoted("state IN (\(list(ItemState.self)))")), \(quoted(oneOf(ItemState.self)))),
            \(quoted("state NOT IN ('done', 'failed', 'cancelled')")),
            \(quoted("state = 'queued' OR state = 'active' OR state = 'delayed'")))
            WHERE type = 'table' AND name = 'items';
        UPDATE sqlite_schema SET sql = replace(sql,
            \(quoted("state IN (\(list(JobState.self)))")), \(quoted(oneOf(JobState.self))))
            WHERE type = 'table' AND name = 'jobs';
        PRAGMA writable_schema = RESET;
        \(judgedMoves)
        """

    /// The trigger that judges moves of items. SQLite runs the latest trigger first: what is refused costs nothing else.
    static let judgedMoves = """
        DROP TRIGGER items_state_moves;
        CREATE TRIGGER items_state_moves BEFORE UPDATE OF state ON items
        WHEN \(illegal(ItemState.self) { $0.canMove(to: $1) }) BEGIN
            SELECT RAISE(ABORT, 'an item can''t move between these states; docs/job-life.md shows the moves it can make');
        END;
        """

    private static func quoted(_ text: String) -> String { "'" + text.replacing("'", with: "''") + "'" }

    private static func oneOf<S: CaseIterable & RawRepresentable>(_: S.Type) -> String where S.RawValue == String {
        S.allCases.map { "state = '\($0.rawValue)'" }.joined(separator: " OR ")
    }

    /// The moves that are not legal, as a condition on OLD.state and NEW.state.
    private static func illegal<S>(_: S.Type, _ canMove: (S, S) -> Bool) -> String
    where S: CaseIterable & RawRepresentable & Equatable, S.RawValue == String {
        let cases = S.allCases.map { from in
            let legal = S.allCases.filter { from != $0 && canMove(from, $0) }.map { "NEW.state = '\($0.rawValue)'" }
            return "WHEN '\(from.rawValue)' THEN \(legal.isEmpty ? "0" : legal.joined(separator: " OR "))"
        }
        return "OLD.state <> NEW.state AND NOT CASE OLD.state \(cases.joined(separator: " ")) ELSE 0 END"
    }
}
