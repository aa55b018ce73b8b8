/// Migration 7: workers claim and end items in groups, and add them up once a group.
///
/// Counting them row by row cost more than everything else that was done with a row. A move that stands in `moving`, which is
/// within one transaction and never seen by anybody else, is left to whoever put it there; every other, such as one that a
/// trigger of the user's makes of it, is counted as ever.
extension Schema {
    static let groupCounters = """
        CREATE TABLE moving (id INTEGER PRIMARY KEY, item INTEGER NOT NULL, state TEXT NOT NULL);
        DROP TRIGGER items_count_update;
        CREATE TRIGGER items_count_update AFTER UPDATE OF state ON items
        WHEN OLD.state <> NEW.state AND NOT EXISTS (SELECT 1 FROM moving WHERE item = NEW.id AND state = NEW.state) BEGIN
            \(countMove)
        END;
        """
}
