import Foundation
import TestSupport
import Testing

/// The output of `worker cache stats` and `worker cache verify`, and that no command returns damaged files.
@Suite(.timeLimit(.minutes(15))) struct CacheReportTests {
    private struct Stats: Decodable {
        struct Totals: Decodable {
            let blobs, hits, misses: Int
            let bytes, revalidatedBytes, dedupedBytes: Int64
        }
        struct Share: Decodable {
            let name: String
            let files: Int
            let bytes: Int64
        }
        let totals: Totals
        let formats, variants, hosts, ages: [Share]
        let pinned, quarantinedFiles: Int
    }

    private struct Verified: Decodable {
        let good: Int
        let missing, damaged: [String]
    }

    /// Two URLs have the same bytes, and an origin says that nothing has changed.
    private static func origin(_ request: LoopbackOrigin.Request) -> LoopbackReply {
        guard request.header("If-None-Match") == nil else { return .status(304) }
        return .ok(Pictures.png(request.path == "/other.png" ? 2 : 1), headers: [(name: "ETag", value: "\"1\"")])
    }

    private func stats(_ w: TestWorker) async throws -> Stats {
        try await w.run("cache", "stats", "--json").json(Stats.self)
    }

    @Test func `The cache's statistics have its parts and the bytes that it has saved`() async throws {
        try await withWorker(Self.origin) { w in
            let size = Int64(Pictures.png(1).count)
            try await w.enqueue(w.url("/one.png"), "--variant", "thumb=16x12,webp")
            try await w.drain()
            try await w.enqueue(w.url("/same.png"))
            try await w.enqueue("http://localhost:\(w.origin.port)/other.png")
            try await w.drain()
            let first = try await stats(w)
            #expect((first.totals.hits, first.totals.misses, first.totals.blobs) == (0, 3, 3))
            #expect(first.totals.dedupedBytes == size)
            #expect(first.totals.revalidatedBytes == 0)
            try await w.enqueue(w.url("/one.png"))
            try await w.drain()
            try await w.enqueue(w.url("/one.png"), "--option", "refresh-cached")
            try await w.drain()
            try await w.run("cache", "pin", w.url("/one.png"))
            let last = try await stats(w)
            #expect((last.totals.hits, last.totals.misses, last.totals.blobs) == (2, 3, 3))
            #expect(last.totals.revalidatedBytes == size)
            #expect(last.pinned == 1)
            #expect(last.formats.map(\.name).sorted() == ["png", "webp"])
            #expect(last.formats.first { $0.name == "png" }?.files == 2)
            #expect(last.variants.map(\.name).sorted() == ["original", "thumb"])
            #expect(last.hosts.map(\.name).sorted() == ["127.0.0.1", "localhost"])
            #expect(last.hosts.first { $0.name == "localhost" }?.bytes == Int64(Pictures.png(2).count))
            #expect(last.ages.reduce(0) { $0 + $1.files } == 3)
            #expect(last.formats.reduce(0) { $0 + $1.bytes } == last.totals.bytes)
        }
    }

    @Test func `Results and metrics show the origin of each source`() async throws {
        try await withWorker { w in
            let url = w.url("/1.png")
            let data = "data:image/png;base64," + Data(Pictures.png(3)).base64EncodedString()
            try await w.enqueue(url)
            try await w.enqueue(data)
            try await w.enqueue(w.url("/none"), "--option", "from-cache-only")
            try await w.drain("--allow-data", expecting: 2)
            // One process reads the source twice, first from the disk: one job has ended before the other begins.
            let running = try w.start()
            for variant in ["a=10x,png", "b=12x,png"] {
                let job = try await w.enqueue(url, "--variant", variant)
                try await w.run("wait", job, "--timeout", "60s")
            }
            running.send(SIGTERM)
            #expect(try await running.wait() == .code(0))
            let rows = try await w.rows("SELECT DISTINCT job, ifnull(bytes_from, '-') FROM results ORDER BY job")
            #expect(rows == ["1|network", "2|file", "3|-", "4|disk", "5|memory"])
            let metrics = try await w.run("metrics").output
            for (origin, count) in [("network", 1), ("loader", 0), ("file", 1), ("disk", 1), ("memory", 1)] {
                #expect(metrics.contains("worker_sources_total{from=\"\(origin)\"} \(count)\n"))
            }
            #expect(try await w.run("results", "4", "--format", "jsonl").output.contains(#""bytes_from":"disk""#))
        }
    }

    @Test func `A verification finds damaged files and quarantines them, and get does not return them`() async throws {
        try await withWorker { w in
            try await w.enqueue((0..<3).map { w.url("/\($0).png") })
            try await w.drain()
            try w.flipByte(of: try await w.path(w.url("/1.png")))
            try await w.run("cache", "verify", "--sample", "0", expecting: 64)
            #expect(try await w.run("cache", "verify", "--quick", "--json").json(Verified.self).good == 3)
            let found = try await w.run("cache", "verify", "--sample", "100", "--json", expecting: 74)
                .json(Verified.self)
            #expect((found.good, found.damaged.count, found.missing.count) == (2, 1, 0))
            #expect(try await stats(w).quarantinedFiles == 1)
            try await w.run("get", w.url("/1.png"), expecting: 1)
            try await w.run("cache", "verify", "--sample", "100", expecting: 74)
            // The next job that needs it fetches it again.
            try await w.enqueue(w.url("/1.png"))
            try await w.drain()
            #expect(try w.bytes(of: try await w.path(w.url("/1.png"))) == Pictures.png(1))
            #expect(w.origin.requestCount("/1.png") == 2)
            try await w.run("cache", "verify", "--sample", "100")
        }
    }

    @Test func `A damaged file that get finds is quarantined, too`() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"))
            try await w.drain()
            let path = try await w.path(w.url("/1.png"))
            try w.flipByte(of: path)
            let answer = try await w.run("get", w.url("/1.png"), expecting: 1)
            #expect(answer.output == "")
            #expect(try await stats(w).quarantinedFiles == 1)
        }
    }

    @Test func `A killed verification resumes where it stopped`() async throws {
        try await withWorker { w in
            try await w.enqueue((0..<450).map { w.url("/\($0).png") })
            try await w.drain()
            let all = try await w.run("cache", "verify", "--json").json(Verified.self).good
            // As one leaves it that is killed after its first page; the whole of it takes no time here.
            try await w.sql(
                """
                INSERT INTO cache_properties (name, value)
                    SELECT 'verify', hash FROM blobs ORDER BY hash LIMIT 1 OFFSET 199
                """)
            let rest = try await w.run("cache", "verify", "--resume", "--json").json(Verified.self).good
            #expect(rest == all - 200)
            #expect(try await w.run("cache", "verify", "--resume", "--json").json(Verified.self).good == all)
        }
    }
}
