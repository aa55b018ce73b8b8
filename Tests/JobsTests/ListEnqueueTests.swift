import Core
import Testing

@testable import Jobs

/// Jobs whose rows come one by one.
@Suite(.timeLimit(.minutes(15))) struct ListEnqueueTests {
    private func enqueue(_ queue: Queue, _ rows: [ListRows.Row]) async throws -> JobID? {
        try await queue.store.queue.enqueue(NewJob(urls: []), fallbacks: ["https://b.example/"], rows: ListRows(rows))
    }

    private static let rows: [ListRows.Row] = [
        ("https://a.example/1.jpg", #"{"sku":7}"#), ("https://a.example/2.jpg", nil),
    ]

    @Test func `All rows of a list are added and counted, and the triggers are on again afterwards`() async throws {
        try await withQueue { queue in
            let job = try #require(try await enqueue(queue, Self.rows))
            #expect(try await queue.store.maintenance.inconsistencies() == [])
            let progress = try await queue.store.reports.progress(job: job)
            #expect(progress?.total == 2 && progress?.queued == 2 && progress?.state == .queued)
            let items = try await queue.claim()
            #expect(items.map(\.own?.meta) == [#"{"sku":7}"#, nil])
            #expect(items.map(\.own?.fallbacks) == [["https://b.example/"], ["https://b.example/"]])
            // Triggers are on again.
            await #expect(throws: JobsError.self) {
                try await queue.store.database.write { db in
                    try db.run("INSERT INTO items (job, url, meta) VALUES (?, 'https://a.example/', 'x')", [job])
                }
            }
        }
    }

    private struct Broken: Error {}

    @Test func `An error among the rows adds nothing`() async throws {
        try await withQueue { queue in
            await #expect(throws: JobsError.self) {
                _ = try await queue.store.queue.enqueue(
                    NewJob(urls: []), rows: ListRows(Self.rows) { if $0 == 1 { throw Broken() } })
            }
            let jobs = try await queue.store.reports.progress()
            #expect(jobs.isEmpty)
            #expect(try await queue.store.database.read { try $0.integer("SELECT count(*) FROM spreading") } == 0)
            #expect(try await enqueue(queue, Self.rows) != nil)
        }
    }

    @Test(.onSQLite) func `A user's own trigger sees each row`() async throws {
        try await withTemporaryQueue { queue in
            try await queue.store.database.write { db in
                try db.script("CREATE TABLE seen (url TEXT)")
                try db.script(
                    "CREATE TRIGGER mine AFTER INSERT ON items BEGIN INSERT INTO seen VALUES (NEW.url); END")
            }
            _ = try await enqueue(queue, Self.rows)
            #expect(try await queue.store.database.read { try $0.integer("SELECT count(*) FROM seen") } == 2)
            #expect(try await queue.store.maintenance.inconsistencies() == [])
            try await queue.store.database.write { db in try db.script("DROP TRIGGER mine; DROP TABLE seen") }
        }
    }
}
