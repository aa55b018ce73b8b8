import Core
import Testing

@testable import Jobs

/// Counters that are added up once a group say the same as those that were counted item by item. `withQueue` compares them
/// with the items when each test ends.
@Suite("Counters of groups", .timeLimit(.minutes(15)), .onSQLite)
struct GroupCounterTests {
    @Test func `A group with items of several jobs is counted, and jobs without open items are finished`() async throws
    {
        try await withQueue { queue in
            let clock = queue.clock
            let (mixed, done) = (try await queue.job(6, name: "mixed"), try await queue.job(2, name: "done"))
            let items = try await queue.claim()
            let failure = Failure(.timeout, "It took too long.")
            let some: [ItemEnding] = [
                items[0].completion(clock: clock, bytes: 30), items[1].completion(cached: true, clock: clock),
                .failed(failure), .retry(at: clock.now + 1_000, failure, blockingHost: false),
                .wait(until: clock.now + 1_000), .release,
            ]
            let endings = some + items[6...].map { $0.completion(clock: clock) }
            #expect(try await queue.store.queue.finish(Array(zip(items, endings))) == [])
            let counts = try await queue.progress(mixed)
            #expect([counts.queued, counts.active, counts.delayed, counts.done, counts.cached] == [1, 0, 2, 1, 1])
            #expect([counts.failed, counts.blacklisted, Int(counts.bytes)] == [1, 0, 30])
            #expect(counts.state == .running)
            #expect(try await queue.progress(done).state == .finished)
        }
    }

    @Test func `The finish of cancelled items is not counted`() async throws {
        try await withQueue { queue in
            let job = try await queue.job(3)
            let items = try await queue.claim()
            _ = try await queue.store.control.cancel(job: job)
            #expect(
                try await queue.store.queue.finish(items.map { ($0, $0.completion(clock: queue.clock)) })
                    == Set(items.map(\.id)))
            #expect(try await queue.progress(job).done == 0)
        }
    }

    @Test(arguments: [
        // Sends a failed item back at once.
        """
        AFTER UPDATE OF state ON items WHEN NEW.state = 'failed' BEGIN
            UPDATE items SET state = 'queued', class = NULL, finished_at = NULL WHERE id = NEW.id; END
        """,
        // Takes a job's other items away with the first that ends.
        """
        AFTER UPDATE OF state ON items WHEN NEW.state IN ('done', 'failed') BEGIN
            UPDATE items SET state = 'cancelled', lease = NULL, finished_at = 1
                WHERE job = NEW.job AND state IN ('queued', 'active'); END
        """,
        // Asks for more.
        """
        AFTER UPDATE OF state ON items WHEN NEW.state = 'done' AND NEW.url NOT LIKE '%more' BEGIN
            INSERT INTO items (job, url) VALUES (NEW.job, NEW.url || '/more'); END
        """,
        // Removes what has ended.
        "AFTER UPDATE OF state ON items WHEN NEW.state = 'done' BEGIN DELETE FROM items WHERE id = NEW.id; END",
        // Won't have some items claimed.
        "BEFORE UPDATE OF state ON items WHEN NEW.state = 'active' AND NEW.id % 2 = 0 BEGIN SELECT RAISE(IGNORE); END",
    ])
    func `Counters stay right when a user's trigger moves items, too`(_ trigger: String) async throws {
        try await withQueue { queue in
            _ = try await queue.job(5)
            _ = try await queue.job(5, name: "other")
            try await queue.store.database.write { try $0.script("CREATE TRIGGER users_own \(trigger)") }
            for _ in 0..<3 {
                let items = try await queue.claim(4)
                let endings: [(item: ClaimedItem, ending: ItemEnding)] = items.enumerated().map {
                    ($1, $0 == 1 ? .failed(.transform) : $1.completion(clock: queue.clock))
                }
                try await queue.store.queue.finish(endings)
                #expect(try await queue.store.maintenance.inconsistencies() == [])
            }
        }
    }
}
