import Core
import GRDB
import Testing

@testable import Jobs

/// A trigger that a user has added may refuse what an item becomes: the item fails, and the others of its group end as
/// they would. `withQueue` compares the counters with the items when each test ends.
@Suite("Refused changes", .timeLimit(.minutes(15)))
struct RefusedChangeTests {
    @Test(
        arguments: ["done", "active"],
        [
            "BEGIN SELECT RAISE(ABORT, 'not this one'); END", "BEGIN SELECT RAISE(ROLLBACK, 'not this one'); END",
            "BEGIN SELECT RAISE(FAIL, 'not this one'); END", "BEGIN SELECT RAISE(IGNORE); END",
            "BEGIN INSERT INTO own (url) VALUES (NULL); END", "BEGIN SELECT json_extract('not JSON', '$'); END",
            "BEGIN SELECT zeroblob(2000000000) || 'x'; END",
        ])
    func `An item whose change a trigger refuses fails alone`(_ state: String, _ body: String) async throws {
        try await withQueue { queue in
            let job = try await queue.job(5)
            try await queue.store.database.write { db in
                try db.execute(sql: "CREATE TABLE own (url TEXT NOT NULL)")
                try db.execute(
                    sql: """
                        CREATE TRIGGER users_own BEFORE UPDATE OF state ON items
                        WHEN NEW.state = '\(state)' AND NEW.id % 2 = 0 \(body)
                        """)
            }
            let items = try await queue.claim()
            let isClaimRefused = state == "active"
            #expect(items.map(\.id) == (isClaimRefused ? [1, 3, 5] : [1, 2, 3, 4, 5]))
            let finished = try await queue.store.queue.finish(
                items.map { ($0, $0.completion(clock: queue.clock)) }, held: nil, reserved: nil)
            #expect(finished.fencedOut == [])
            #expect(finished.refused.keys.sorted() == (isClaimRefused ? [] : [2, 4]))
            let rows = try await queue.store.database.read { db in
                try String.fetchAll(
                    db, sql: "SELECT id || ' ' || state || ' ' || coalesce(class, '') FROM items ORDER BY id")
            }
            #expect(
                rows == [
                    "1 done ", "2 failed refused-by-database", "3 done ", "4 failed refused-by-database", "5 done ",
                ])
            let message = try await queue.store.database.read { db in
                try String.fetchOne(db, sql: "SELECT message FROM items WHERE id = 4") ?? ""
            }
            #expect(message.hasPrefix("The database refuses that item 4 becomes '\(state)': "), "\(message)")
            #expect(try await queue.progress(job).state == .finished)
        }
    }

    @Test func `Items behind those that can't be claimed are claimed next`() async throws {
        try await withQueue { queue in
            let job = try await queue.job(20)
            try await queue.store.database.write { db in
                try db.execute(
                    sql: """
                        CREATE TRIGGER users_own BEFORE UPDATE OF state ON items
                        WHEN NEW.state = 'active' AND NEW.id <= 10 BEGIN SELECT RAISE(ABORT, 'later'); END
                        """)
            }
            let first = try await queue.store.queue.claim(limit: 8, worker: queue.worker)
            #expect(first.items.isEmpty && first.refused.map(\.item) == Array(1...8))
            let second = try await queue.store.queue.claim(limit: 8, worker: queue.worker)
            #expect(second.items.map(\.id) == Array(11...16) && second.refused.map(\.item) == [9, 10])
            #expect(try await queue.progress(job).failed == 10)
        }
    }

    @Test func `An item that may not fail either leaves the group as it was, with an error that names it`() async throws
    {
        try await withQueue { queue in
            _ = try await queue.job(3)
            try await queue.store.database.write { db in
                try db.execute(
                    sql: """
                        CREATE TRIGGER users_own BEFORE UPDATE OF state ON items
                        WHEN OLD.state = 'active' AND NEW.id = 2 BEGIN SELECT RAISE(ABORT, 'never'); END
                        """)
            }
            let items = try await queue.claim()
            let error = await #expect(throws: JobsError.self) {
                try await queue.store.queue.finish(items.map { ($0, $0.completion(clock: queue.clock)) })
            }
            #expect(
                error?.message
                    == "The database refuses that item 2 becomes 'failed': never. Look at the triggers on its table "
                    + "'items' that aren't of this program.")
            #expect(try await queue.progress(1).active == 3)
        }
    }
}
