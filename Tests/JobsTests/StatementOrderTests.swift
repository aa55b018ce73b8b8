import Core
import TestSupport
import Testing

@testable import Jobs

/// PostgreSQL gets a statement with the next one whose answer is needed. What a transaction does must not depend on that.
@Suite("Statements whose answers are not needed", .timeLimit(.minutes(5)))
struct StatementOrderTests {
    private static func set(_ name: String, _ value: String, in db: Connection) throws {
        try db.run("INSERT INTO cache_properties VALUES (?, ?)", [name, value])
    }

    private func properties(of queue: Queue) async throws -> [String] {
        try await queue.store.database.read { db in
            try db.texts("SELECT value FROM cache_properties WHERE name LIKE 'test-%' ORDER BY name")
        }
    }

    @Test func `They run in order, before a query and before the commit`() async throws {
        try await withQueue { queue in
            let seen = try await queue.store.database.write { db in
                try Self.set("test-a", "1", in: db)
                try db.run("UPDATE cache_properties SET value = '2' WHERE name = 'test-a'")
                let seen = try db.text("SELECT value FROM cache_properties WHERE name = 'test-a'")
                try db.run("UPDATE cache_properties SET value = '3' WHERE name = 'test-a'")
                try Self.set("test-b", "4", in: db)
                return seen
            }
            #expect(seen == "2")
            #expect(try await properties(of: queue) == ["3", "4"])
        }
    }

    @Test(arguments: 0..<4) func `The error of one undoes the transaction, wherever it stands`(place: Int) async throws
    {
        try await withQueue { queue in
            let error = await #expect(throws: JobsError.self) {
                try await queue.store.database.write { db in
                    for step in 0..<4 {
                        // The second row of a name breaks the primary key.
                        if step == place {
                            try Self.set("test-a", "1", in: db)
                            try Self.set("test-a", "2", in: db)
                        }
                        if step == 1 { _ = try db.text("SELECT value FROM cache_properties WHERE name = 'test-a'") }
                        try Self.set("test-\(step)", "\(step)", in: db)
                    }
                }
            }
            #expect(error?.code == .refused || error?.code == .internalError)
            #expect(try await properties(of: queue) == [])
            // The connection is as good as before.
            try await queue.store.database.write { db in try Self.set("test-a", "1", in: db) }
            #expect(try await properties(of: queue) == ["1"])
        }
    }

    @Test func `A count is that of its statement`() async throws {
        try await withQueue { queue in
            let counts = try await queue.store.database.write { db in
                for number in 0..<5 { try Self.set("test-\(number)", "\(number)", in: db) }
                let some = try db.change("DELETE FROM cache_properties WHERE name IN ('test-1', 'test-2')")
                try db.run("DELETE FROM cache_properties WHERE name = 'test-3'")
                let none = try db.change("DELETE FROM cache_properties WHERE name = 'test-3'")
                return [some, none]
            }
            #expect(counts == [2, 0])
            #expect(try await properties(of: queue) == ["0", "4"])
        }
    }

    @Test func `A change that a trigger refuses is told with its item, and not those before it`() async throws {
        try await withQueue { queue in
            _ = try await queue.job(2)
            let ids = try await queue.claim().map(\.id)
            let error = await #expect(throws: JobsError.self) {
                try await queue.store.database.write { db in
                    try Self.set("test-a", "1", in: db)
                    try Self.set("test-a", "2", in: db)
                    try JobQueue.change(group: [ids[0]], to: .done, in: db) {
                        try db.run("UPDATE items SET state = 'done' WHERE id = ?", [ids[0]])
                    }
                }
            }
            #expect(error?.refused == nil)
            let refused = await #expect(throws: JobsError.self) {
                try await queue.store.database.write { db in
                    try JobQueue.change(group: [ids[0]], to: .done, in: db) {
                        try db.run("UPDATE items SET state = 'nonsense' WHERE id = ?", [ids[0]])
                    }
                }
            }
            guard case .item(ids[0])? = refused?.refused else {
                Issue.record("\(refused as Any)")
                return
            }
        }
    }

    @Test func `Megabytes of values are stored whole`() async throws {
        try await withQueue { queue in
            let long = (0..<6).map { String(repeating: "\($0)", count: 700_000) }
            try await queue.store.database.write { db in
                for (number, value) in long.enumerated() { try Self.set("test-\(number)", value, in: db) }
            }
            #expect(try await properties(of: queue) == long)
        }
    }

    @Test func `A transaction that reads nothing, or fails, leaves the next one alone`() async throws {
        struct Stop: Error {}
        try await withQueue { queue in
            for number in 0..<20 {
                let nothing = try await queue.store.database.read { _ in number }
                #expect(nothing == number)
                await #expect(throws: JobsError.self) {
                    try await queue.store.database.read { db in
                        _ = try db.text("SELECT value FROM cache_properties WHERE name = 'none'")
                        throw Stop()
                    }
                }
                await #expect(throws: JobsError.self) {
                    try await queue.store.database.read { db in _ = try db.text("SELECT nothing FROM nowhere") }
                }
                try await queue.store.database.write { db in try Self.set("test-\(10 + number)", "\(number)", in: db) }
            }
            #expect(try await properties(of: queue) == (0..<20).map { "\($0)" })
        }
    }
}
