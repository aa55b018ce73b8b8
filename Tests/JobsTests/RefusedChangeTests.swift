import Core
import Testing

@testable import Jobs

/// A trigger that a user has added may refuse what an item becomes: the item fails, and the others of its group end as
/// they would. `withQueue` compares the counters with the items when each test ends.
@Suite("Refused changes", .timeLimit(.minutes(15)), .onSQLite)
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
                try db.script("CREATE TABLE own (url TEXT NOT NULL)")
                try db.script(
                    """
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
                try db.texts(
                    "SELECT id || ' ' || state || ' ' || coalesce(class, '') FROM items ORDER BY id")
            }
            #expect(
                rows == [
                    "1 done ", "2 failed refused-by-database", "3 done ", "4 failed refused-by-database", "5 done ",
                ])
            let message = try await queue.store.database.read { db in
                try db.text("SELECT message FROM items WHERE id = 4") ?? ""
            }
            #expect(message.hasPrefix("The database refuses that item 4 becomes '\(state)': "), "\(message)")
            #expect(try await queue.progress(job).state == .finished)
        }
    }

    @Test func `Items behind those that can't be claimed are claimed next`() async throws {
        try await withQueue { queue in
            let job = try await queue.job(20)
            try await queue.store.database.write { db in
                try db.script(
                    """
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

    @Test(arguments: ["RAISE(ABORT, 'never')", "RAISE(ROLLBACK, 'never')", "RAISE(IGNORE)"])
    func `An item that a trigger won't let out of any state fails all the same`(_ refusal: String) async throws {
        try await withQueue { queue in
            for place in ["queued", "active", "delayed", "dead"] {
                let job = try await queue.job(3, name: place)
                let guarded = try await queue.store.database.read { db in
                    try db.integer("SELECT max(id) - 1 FROM items")
                }
                let bar = "OLD.state = '\(place == "dead" ? "active" : place)'"
                let create = """
                    CREATE TRIGGER users_own BEFORE UPDATE OF state ON items WHEN NEW.id = \(guarded ?? 0) AND \(bar) BEGIN
                        SELECT \(refusal); END
                    """
                try await queue.store.database.write { try $0.script(create) }
                var items = try await queue.claim()
                if place == "delayed" {
                    try await queue.store.queue.finish(
                        items.map {
                            ($0, .retry(at: queue.clock.now + 10, Failure(.timeout, "Late."), blockingHost: false))
                        })
                    queue.clock.advance(1_000)
                    #expect(try await queue.store.queue.promoteDue() == 3)
                    items = try await queue.claim()
                } else if place == "dead" {
                    try await queue.store.workers.unregister(worker: queue.worker)
                    #expect(try await queue.progress(job).failed == 1)
                    items = try await queue.claim()
                }
                try await queue.store.queue.finish(items.map { ($0, $0.completion(clock: queue.clock)) })
                let counts = try await queue.progress(job)
                #expect([counts.done, counts.failed] == [2, 1], "\(place)")
                #expect(counts.state == .finished, "\(place)")
                let logged = try await queue.store.database.read { db in
                    try db.int("SELECT count(*) FROM events WHERE item = ?", [guarded])
                }
                #expect(logged == 1, "\(place)")
                try await queue.store.database.write { try $0.script("DROP TRIGGER users_own") }
            }
        }
    }

    @Test func `A trigger on the renditions of one item refuses that item alone`() async throws {
        try await withQueue { queue in
            let job = try await queue.job(3)
            try await queue.store.database.write { db in
                try db.script(
                    """
                    CREATE TRIGGER users_own AFTER INSERT ON renditions WHEN NEW.item = 2 BEGIN
                        SELECT RAISE(ABORT, 'not this picture'); END
                    """)
            }
            let items = try await queue.claim()
            try await queue.store.queue.finish(items.map { ($0, $0.completion(clock: queue.clock)) })
            let counts = try await queue.progress(job)
            #expect([counts.done, counts.failed] == [2, 1])
        }
    }
}
