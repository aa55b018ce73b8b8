import Testing

@testable import Jobs

/// The cost of a feed that is enqueued whole each time.
@Suite("The cost of only-new", .timeLimit(.minutes(5)), .onSQLite)
struct OnlyNewCostTests {
    @Test func `A known URL costs a look-up, however many items are done`() async throws {
        try await withQueue { queue in
            let old = try await queue.job()
            let triggers = try await queue.store.database.read { db in
                try db.texts(
                    "SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name IN ('jobs', 'items')")
            }
            // The triggers refuse a new item that is done, so they are dropped for this statement.
            try await queue.corrupt(
                """
                WITH RECURSIVE numbers (n) AS (VALUES (0) UNION ALL SELECT n + 1 FROM numbers WHERE n < 99999)
                INSERT INTO items (job, url, state, finished_at)
                    SELECT \(old), 'https://a.example/' || n, 'done', 1 FROM numbers;
                UPDATE jobs SET done = done + 100000, total = total + 100000 WHERE id = \(old);
                """)
            try await queue.store.database.write { db in for sql in triggers { try db.script(sql) } }
            let feed = try await queue.store.queue.enqueue(NewJob(urls: ["https://a.example/0"], options: "only-new"))
            let job = try #require(feed)
            #expect(try await queue.store.reports.progress(job: job)?.notNew == 1)
            func add(_ from: Int, _ count: Int) async throws {
                try await queue.store.database.write { db in
                    for n in from..<from + count {
                        try db.run("INSERT INTO items (job, url) VALUES (?, ?)", [job, "https://a.example/\(n)"])
                    }
                }
            }
            #expect(try await queue.steps { try await add(1, 1_000) } < 500)
            #expect(try await queue.steps { try await add(100_000, 1_000) } < 500)
            let progress = try #require(try await queue.store.reports.progress(job: job))
            #expect(progress.notNew == 1_001 && progress.total == 1_000)
        }
    }
}
