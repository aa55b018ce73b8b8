import GRDB
import SystemPackage
import TestSupport
import Testing

@testable import Jobs

/// The tables' conditions after they were written anew.
@Suite struct PlainChecksTests {
    @Test func `No condition on items and jobs makes a table of its own for each row`() throws {
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

    /// What each says was checked before, in an older version's words.
    @Test(arguments: [
        "UPDATE items SET state = 'lost'", "UPDATE items SET state = NULL",
        "UPDATE items SET state = 'done', lease = NULL",
        "UPDATE items SET state = 'failed', finished_at = 1", "UPDATE items SET state = 'active'",
        "UPDATE items SET state = 'active', lease = 1, finished_at = 1; UPDATE items SET state = 'cancelled', lease = NULL, finished_at = NULL",
        "UPDATE jobs SET state = 'lost'", "UPDATE jobs SET state = NULL",
    ])
    func `What may not be is refused as ever`(_ statement: String) throws {
        try withTemporaryDirectory { folder in
            let path = folder.appending("worker.db").string
            for version in ["9-steady-hosts", "10-plain-checks"] {
                let database = try DatabaseQueue(path: path + version)
                try Schema.migrator.migrate(database, upTo: version)
                try database.write { db in
                    try db.execute(sql: #"INSERT INTO jobs (urls) VALUES ('["https://a.example/1.jpg"]')"#)
                }
                #expect(throws: DatabaseError.self, "\(version)") {
                    try database.write { db in try db.execute(sql: statement) }
                }
            }
        }
    }

    @Test func `Each move between states is allowed or refused as before`() throws {
        try withTemporaryDirectory { folder in
            func moves(_ version: String) throws -> Set<String> {
                let database = try DatabaseQueue(path: folder.appending(version).string)
                try Schema.migrator.migrate(database, upTo: version)
                var allowed: Set<String> = []
                for from in ItemState.allCases {
                    for to in ItemState.allCases {
                        let change = """
                            UPDATE items SET state = '\(to.rawValue)', lease = \(to == .active ? "1" : "NULL"),
                                run_at = \(to == .delayed ? "1" : "NULL"), class = 'dns', finished_at = 1
                            """
                        try database.inDatabase { db in
                            try db.execute(sql: "SAVEPOINT a")
                            try db.execute(sql: #"INSERT INTO jobs (urls) VALUES ('["https://a.example/1.jpg"]')"#)
                            for step in Self.way(to: from) { try db.execute(sql: step) }
                            if (try? db.execute(sql: change)) != nil { allowed.insert("\(from)>\(to)") }
                            try db.execute(sql: "ROLLBACK TO a; RELEASE a")
                        }
                    }
                }
                return allowed
            }
            let before = try moves("9-steady-hosts")
            #expect(try moves("10-plain-checks") == before)
            #expect(before.count > 12 && before.count < 36)
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
