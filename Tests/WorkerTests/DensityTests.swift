import Synchronization
import TestSupport
import Testing

/// Variants for screens of several densities, and the scale in a picture's name.
@Suite("Densities and scale", .timeLimit(.minutes(15)))
struct DensityTests {
    private struct Row: Decodable {
        let url: String
        let variant: String?
        let width: Int?
        let scale: Int
    }

    private static let large = Scene.png(1, width: 1_000)

    /// What a database and a cache of its own makes of these variants: the files' hashes.
    private func made(_ variants: String) async throws -> Set<String> {
        let made = Mutex<Set<String>>([])
        try await withWorker({ _ in .ok(Self.large) }) { w in
            try await w.enqueue(w.url("/a.png"), "--variant", variants)
            try await w.drain()
            let blobs = try await w.rows("SELECT blob FROM results WHERE variant <> 'original'")
            made.withLock { $0 = Set(blobs) }
        }
        return made.withLock { $0 }
    }

    @Test func `Each density has the same bytes as a variant of its own`() async throws {
        let together = try await made("thumb=320x240,cover,webp,round:4,@1+@2+@3")
        var alone: Set<String> = []
        for variant in ["320x240,cover,webp,round:4", "640x480,cover,webp,round:8", "960x720,cover,webp,round:12"] {
            alone.formUnion(try await made("it=\(variant)"))
        }
        #expect(together == alone && alone.count == 3)
    }

    @Test func `A variant in three densities makes three files from one request`() async throws {
        try await withWorker({ _ in .ok(Self.large) }) { w in
            try await w.enqueue(w.url("/a.png"), "--variant", "thumb=320x240,cover,webp,round:4,@1+@2+@3")
            try await w.drain("--links", "tree")
            let made = try await w.rows(
                "SELECT variant, width, height FROM results WHERE variant <> 'original' ORDER BY variant")
            #expect(made == ["thumb|320|240", "thumb@2x|640|480", "thumb@3x|960|720"])
            let link = try await w.run("get", w.url("/a.png"), "--variant", "thumb@2x", "--link")
            #expect(link.line.contains("thumb@2x"))
            #expect(w.origin.requests.count == 1)
            try await w.drain("--links", "none")
        }
    }

    @Test func `SQL and JSON can name densities, and a small picture isn't enlarged`() async throws {
        try await withWorker({ _ in .ok(Scene.png(2)) }) { w in
            try await w.enqueue(
                w.url("/b.png"), "--variant", #"{"name":"small","width":200,"format":"png","densities":[1,2]}"#,
                "--variant", "other=9x")
            try await w.sql(
                """
                INSERT INTO jobs (urls, variants)
                VALUES (json_array('\(w.url("/a.png"))'), 'small=200x,png,@1+@2 big=200x,enlarge,@2')
                """)
            try await w.drain()
            let made = try await w.rows(
                "SELECT job, variant, width FROM results WHERE variant <> 'original' ORDER BY job, variant")
            #expect(
                made == ["1|other|9", "1|small|200", "1|small@2x|320", "2|big@2x|400", "2|small|200", "2|small@2x|320"])
            let refused = try await w.run("enqueue", w.url("/c.png"), "--variant", "a=9x,@1+2", expecting: 64)
            #expect(refused.errors.contains("write @1+@2+@3"))
        }
    }

    @Test func `The name of a picture gives its scale`() async throws {
        try await withWorker({ _ in .ok(Pictures.png(1)) }) { w in
            let scales = [
                "/a@2x.png": 2, "/b%402x.png": 2, "/c@3x.png": 3, "/d%403x.png?v=1": 3, "/e@2x/f.png": 1,
                "/g@4x.png": 1, "/h@2x@3x.png": 3, "/i": 1, "/folder@2x.bundle/j.png": 2,
            ]
            try await w.enqueue(scales.keys.sorted().map(w.url), "--variant", "it=9x")
            try await w.drain()
            let rows = try await w.run("results", "1", "--format", "jsonl").jsonLines(Row.self)
            #expect(rows.count == 2 * scales.count)
            for row in rows {
                let path = String(row.url.dropFirst(w.url("").count))
                #expect(row.scale == scales[path], "\(path)")
            }
            #expect(try await w.value("SELECT count(*) FROM results WHERE scale = 2 AND variant = 'original'") == "3")
        }
    }
}
