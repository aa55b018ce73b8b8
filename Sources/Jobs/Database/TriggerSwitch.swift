internal import CSQLiteTriggers
internal import GRDB

/// Switches this connection's triggers off while statements of this program change many rows of `items`.
///
/// The triggers check the values of users, and count the rows. Where this program has checked the rows and counts them
/// itself, the triggers only cost time: to run them takes longer than to change the row.
enum TriggerSwitch {
    /// Whether a user has added triggers to `items`, which must see each row.
    static func hasTriggersOfUsers(_ db: Connection) throws -> Bool {
        guard db.sqlite != nil else {
            return try db.exists(
                "SELECT 1 FROM pg_trigger WHERE tgrelid = 'items'::REGCLASS AND NOT tgisinternal AND \(PostgresSchema.isForeign("tgname"))"
            )
        }
        let names = try db.rows("SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'items'")
            .map { $0["name"] as String }
        return !Schema.ownTriggers.isSuperset(of: names)
    }

    static func withTriggers<R>(_ areOn: Bool, _ db: Connection, _ body: () throws -> R) throws -> R {
        if areOn { return try body() }
        try set(on: false, db)
        // Best effort: the error of `body` is thrown. Without triggers the connection changes rows without checks and
        // counters; workers check rows, and mend counters when they start.
        defer { try? set(on: true, db) }
        let result = try body()
        try set(on: true, db)
        return result
    }

    private static func set(on isOn: Bool, _ db: Connection) throws {
        guard let sqlite = db.sqlite else {
            // The triggers of this program look at the setting; those of users run nevertheless.
            try db.run("SELECT set_config('worker.triggers', '\(isOn ? "" : "off")', true)")
            return
        }
        guard let connection = sqlite.sqliteConnection else { return }
        let code = csqlite_switch_triggers(UnsafeMutableRawPointer(connection), isOn ? 1 : 0)
        guard code == 0 else { throw DatabaseError(resultCode: ResultCode(rawValue: code)) }
    }
}
