import Glibc
import SystemPackage
import TestSupport
import Testing

/// The batches in `jobs/`, run as a user would.
@Suite(.serialized, .timeLimit(.minutes(15))) struct RecipeTests {
    private static let root = FilePath(#filePath).removingLastComponent().removingLastComponent()
        .removingLastComponent()

    /// A recipe with its example's host replaced by the test's origin.
    private func recipe(_ name: String, _ w: TestWorker) async throws -> String {
        let text = try await w.run(Self.root.appending("jobs/\(name)").string, program: "/bin/cat").output
        return text.replacing("https://example.com", with: w.url(""))
    }

    private func run(_ name: String, _ w: TestWorker) async throws -> TestWorker.Finished {
        try await w.run(["-batch", w.database], program: "sqlite3", input: try await recipe(name, w))
    }

    private static func picture(_ request: LoopbackOrigin.Request) -> LoopbackReply { .ok(TestImages.png(64, 48)) }

    @Test func theListBatchEnqueuesEachURL() async throws {
        try await withWorker(Self.picture) { w in
            try await w.run("init")
            #expect(try await run("list.sql", w).output == "1|list|queued|3\n")
            // While it is unfinished, a second one is kept out.
            #expect(try await run("list.sql", w).output == "1|list|queued|3\n")
            try await w.drain()
            #expect(try await w.counts("1") == "3|0|0|0|0")
            #expect(try await w.value("SELECT count(*) FROM results WHERE variant IN ('thumb', 'card')") == "6")
        }
    }

    @Test func theTableBatchEnqueuesTheRowsWithAURL() async throws {
        try await withWorker(Self.picture) { w in
            try await w.run("init")
            try await w.sql(
                """
                CREATE TABLE products (id INTEGER PRIMARY KEY, image_url TEXT);
                INSERT INTO products (image_url) VALUES ('\(w.url("/a.png"))'), (NULL), (''), ('\(w.url("/b.png"))');
                """)
            #expect(try await run("from-table.sql", w).output == "1|products|queued|2\n")
            try await w.drain()
            #expect(try await w.counts("1") == "2|0|0|0|0")
        }
    }

    @Test func theUrgentBatchOvertakesALongBatch() async throws {
        try await withWorker({ .delayed(milliseconds: 100, then: Self.picture($0)) }) { w in
            try await w.run("init")
            let long = (0..<40).map { w.url("/long/\($0).png") }
            try await w.enqueue(long)
            _ = try await w.startRegistered("--concurrency", "1")
            try await w.eventually("the long batch has begun") { w.origin.requests.count >= 2 }
            _ = try await run("urgent.sql", w)
            try await w.untilEnded("2")
            #expect(w.origin.requests.count < 30, "the urgent batch came before the rest of the long batch")
        }
    }

    @Test func theRewarmBatchRevalidatesAndMakesNoVariantAgain() async throws {
        let picture = TestImages.png(64, 48)
        let origin: @Sendable (LoopbackOrigin.Request) -> LoopbackReply = { request in
            request.headers.contains { $0.name.lowercased() == "if-none-match" }
                ? .status(304) : .ok(picture, headers: [("ETag", "\"1\"")])
        }
        try await withWorker(origin) { w in
            try await w.enqueue([w.url("/a.png"), w.url("/b.png")], "--variant", "thumb=16x16")
            try await w.drain()
            // Nothing is a day old yet.
            #expect(try await run("rewarm.sql", w).output == "")
            try await w.sql("UPDATE sources SET fetched_at = fetched_at - 2 * 86400000")
            #expect(try await run("rewarm.sql", w).output == "2|rewarm|queued|2\n")
            try await w.drain()
            #expect(try await w.counts("2") == "0|2|0|0|0")
            #expect(w.origin.requests.count == 4)
            #expect(try await w.value("SELECT count(*) FROM variants") == "1")
        }
    }
}
