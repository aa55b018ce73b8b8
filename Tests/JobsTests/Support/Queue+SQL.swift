import GRDB
import GRDBSQLite

@testable import Jobs

extension Queue {
    /// What a person's DELETE does.
    ///
    /// - Returns: how many items went.
    func delete(_ table: String, where condition: String) async throws -> Int {
        try await store.database.write { db in
            let before = try db.int("SELECT count(*) FROM items") ?? 0
            try db.script("DELETE FROM \(table) WHERE \(condition)")
            return before - (try db.int("SELECT count(*) FROM items") ?? 0)
        }
    }

    /// Writes to the database past its triggers.
    func corrupt(_ sql: String) async throws {
        try await store.database.write { db in
            try db.script("PRAGMA ignore_check_constraints = ON")
            for name in try db.texts(
                "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name IN ('jobs', 'items')")
            {
                try db.script("DROP TRIGGER \(name)")
            }
            try db.script(sql)
        }
    }

    /// How many thousand steps SQLite's virtual machine takes for `body`: the same on any machine, however busy.
    func steps(_ body: () async throws -> Void) async throws -> Int32 {
        let count = UnsafeMutablePointer<Int32>.allocate(capacity: 1)
        defer { count.deallocate() }
        count.initialize(to: 0)
        let (database, address) = (store.database, UInt(bitPattern: count))
        try await database.read { db in
            sqlite3_progress_handler(
                db.sqlite?.sqliteConnection, 1_000,
                { pointer in
                    pointer?.assumingMemoryBound(to: Int32.self).pointee += 1
                    return 0
                }, UnsafeMutableRawPointer(bitPattern: address))
        }
        try await body()
        try await database.read { db in sqlite3_progress_handler(db.sqlite?.sqliteConnection, 0, nil, nil) }
        return count.pointee
    }
}
