import SystemPackage
import TestSupport
import Testing

/// `scale-down-large-images` on a job that asks for no variants.
@Suite("Reduced pictures", .timeLimit(.minutes(15)))
struct ReducedTests {
    /// 5250×3450 pixels in one colour: more than 60 MiB as RGBA, and SDWebImage's own example.
    private static func withLarge(_ body: (TestWorker) async throws -> Void) async throws {
        let large = try withTemporaryDirectory { folder in
            let path = folder.appending("large.jpg").string
            #expect(try ChildProcess.run("convert", ["-size", "5250x3450", "xc:#336699", path]) == 0)
            return try #require(ProcessTable.contents(of: path))
        }
        let small = Pictures.png(1)
        try await withWorker({ $0.path == "/large.jpg" ? .ok(large) : .ok(small) }, body)
    }

    private static let rows = """
        SELECT substr(url, -9), variant, format, width, height FROM results ORDER BY url, variant
        """

    @Test func `A large picture is stored reduced beside its source, and a small picture as it is`() async throws {
        try await Self.withLarge { w in
            try await w.enqueue(w.url("/large.jpg"), w.url("/small.png"), "--option", "scale-down-large-images")
            try await w.drain()
            #expect(
                try await w.rows(Self.rows) == [
                    "large.jpg|original|jpeg|5250|3450", "large.jpg|reduced|jpeg|4892|3214",
                    "small.png|original|png|64|48", "small.png|reduced|png|64|48",
                ])
            // The same file under both names.
            let small = try await w.rows("SELECT DISTINCT blob FROM results WHERE url LIKE '%small.png'")
            #expect(small.count == 1)
        }
    }

    @Test func `The reduced picture is stored in place of a source that isn't kept`() async throws {
        try await Self.withLarge { w in
            try await w.enqueue(
                w.url("/large.jpg"), w.url("/small.png"), "--option", "scale-down-large-images", "--option",
                "discard-original")
            try await w.drain()
            #expect(
                try await w.rows(Self.rows) == ["large.jpg|reduced|jpeg|4892|3214", "small.png|reduced|png|64|48"])
            #expect(try w.bytes(of: try await w.path(w.url("/small.png"), variant: "reduced")) == Pictures.png(1))
            // Another job finds both.
            try await w.sql(
                """
                INSERT INTO jobs (urls, options)
                VALUES (json_array('\(w.url("/large.jpg"))', '\(w.url("/small.png"))'),
                    'scale-down-large-images,discard-original')
                """)
            try await w.drain()
            #expect(w.origin.requests.count == 2)
        }
    }

    @Test func `A job with variants gets no reduced picture`() async throws {
        try await withWorker { w in
            try await w.enqueue(
                w.url("/1.png"), "--option", "scale-down-large-images", "--variant", "thumb=9x,webp")
            try await w.drain()
            #expect(try await w.rows("SELECT variant FROM results ORDER BY variant") == ["original", "thumb"])
        }
    }
}
