import GRDB

@testable import Jobs

extension Queue {
    /// What a person's DELETE does.
    ///
    /// - Returns: how many items went.
    func delete(_ table: String, where condition: String) async throws -> Int {
        try await store.database.write { db in
            let before = try Int.fetchOne(db, sql: "SELECT count(*) FROM items") ?? 0
            try db.execute(sql: "DELETE FROM \(table) WHERE \(condition)")
            return before - (try Int.fetchOne(db, sql: "SELECT count(*) FROM items") ?? 0)
        }
    }

    /// Does to the database what nobody should.
    func corrupt(_ sql: String) async throws {
        try await store.database.write { db in
            try db.execute(sql: "PRAGMA ignore_check_constraints = ON")
            for name in try String.fetchAll(
                db, sql: "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name IN ('jobs', 'items')")
            {
                try db.execute(sql: "DROP TRIGGER \(name)")
            }
            try db.execute(sql: sql)
        }
    }
}
