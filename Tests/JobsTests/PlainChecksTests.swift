import GRDB
import SystemPackage
import TestSupport
import Testing

@testable import Jobs

/// The conditions of the tables and triggers, at the speed that they are meant to have.
@Suite(.onSQLite) struct PlainChecksTests {
    @Test func `No check of items and jobs builds a temporary table for each row`() throws {
        try withTemporaryDirectory { folder in
            let path = folder.appending("worker.db").string
            let store = try JobStore(path: path)
            withExtendedLifetime(store) {}
            let database = try DatabaseQueue(path: path)
            try database.read { db in
                for statement in [
                    "UPDATE items SET state = 'active', lease = 1 WHERE id = 1",
                    "UPDATE items SET state = 'done', lease = NULL, finished_at = 1 WHERE id = 1",
                ] {
                    let steps = try Row.fetchAll(db, sql: "EXPLAIN \(statement)").map { $0["opcode"] as String }
                    // The statement itself and the trigger that judges the move. The others' own statements come after them,
                    // and run only where something has to be counted.
                    let programs = steps.split(separator: "Init")
                    let makesTables = programs.prefix(2).contains { $0.contains("OpenEphemeral") }
                    #expect(programs.count > 2 && !makesTables, "\(statement)")
                }
                #expect(try String.fetchAll(db, sql: "PRAGMA integrity_check") == ["ok"])
                #expect(try Int.fetchOne(db, sql: "PRAGMA writable_schema") == 0)
            }
        }
    }

    @Test(arguments: [
        "UPDATE items SET state = 'lost'", "UPDATE items SET state = NULL",
        "UPDATE items SET state = 'done', lease = NULL",
        "UPDATE items SET state = 'failed', finished_at = 1", "UPDATE items SET state = 'active'",
        "UPDATE items SET state = 'active', lease = 1, finished_at = 1; UPDATE items SET state = 'cancelled', lease = NULL, finished_at = NULL",
        "UPDATE jobs SET state = 'lost'", "UPDATE jobs SET state = NULL",
    ])
    func `A state without the columns that it needs is refused`(_ statement: String) throws {
        try withTemporaryDirectory { folder in
            let path = folder.appending("worker.db").string
            let database = try DatabaseQueue(path: path)
            try Schema.migrator.migrate(database)
            try database.write { db in
                try db.execute(sql: #"INSERT INTO jobs (urls) VALUES ('["https://a.example/1.jpg"]')"#)
            }
            #expect(throws: DatabaseError.self) {
                try database.write { db in try db.execute(sql: statement) }
            }
        }
    }

    @Test func `The schema lets items make the moves of canMove and no other`() throws {
        try withTemporaryDirectory { folder in
            let database = try DatabaseQueue(path: folder.appending("worker.db").string)
            try Schema.migrator.migrate(database)
            for from in ItemState.allCases {
                for to in ItemState.allCases where from != to {
                    let change = """
                        UPDATE items SET state = '\(to.rawValue)', lease = \(to == .active ? "1" : "NULL"),
                            run_at = \(to == .delayed ? "1" : "NULL"), class = 'dns', finished_at = 1
                        """
                    let isAllowed = try database.inDatabase { db in
                        try db.execute(sql: "SAVEPOINT a")
                        try db.execute(sql: #"INSERT INTO jobs (urls) VALUES ('["https://a.example/1.jpg"]')"#)
                        for step in Self.way(to: from) { try db.execute(sql: step) }
                        let isAllowed = (try? db.execute(sql: change)) != nil
                        try db.execute(sql: "ROLLBACK TO a; RELEASE a")
                        return isAllowed
                    }
                    #expect(isAllowed == from.canMove(to: to), "\(from) to \(to)")
                }
            }
        }
    }

    /// How a new item comes to a state.
    private static func way(to state: ItemState) -> [String] {
        let active = "UPDATE items SET state = 'active', lease = 1"
        switch state {
        case .queued: return []
        case .active: return [active]
        case .cancelled: return ["UPDATE items SET state = 'cancelled', finished_at = 1"]
        case .delayed: return [active, "UPDATE items SET state = 'delayed', lease = NULL, run_at = 1"]
        case .done: return [active, "UPDATE items SET state = 'done', lease = NULL, finished_at = 1"]
        case .failed:
            return [active, "UPDATE items SET state = 'failed', lease = NULL, class = 'dns', finished_at = 1"]
        }
    }
}
