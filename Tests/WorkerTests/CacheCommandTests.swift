import Glibc
import SystemPackage
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15))) struct CacheCommandTests {
    @Test func pinnedFilesSurviveAnEvictionOfAllFiles() async throws {
        try await withWorker { w in
            try await w.enqueue((0..<4).map { w.url("/\($0).png") }, "--variant", "thumb=16x12,png")
            try await w.drain()
            try await w.run("cache", "pin", w.url("/0.png"))
            #expect(try await w.run("cache", "pin").line == w.url("/0.png"))
            try await w.run("cache", "gc", "--cache-max-age", "0")
            #expect(w.blobs.count == 2)
            try await w.run("get", w.url("/0.png"), "--variant", "thumb")
            try await w.run("get", w.url("/1.png"), "--variant", "thumb", expecting: 1)
            #expect(try await w.value("SELECT count(*) FROM results WHERE path IS NULL") == "6")
            try await w.run("cache", "unpin", w.url("/0.png"))
            try await w.run("cache", "unpin", w.url("/0.png"), expecting: 1)
            try await w.run("cache", "clear", "--yes")
            #expect(w.blobs == [])
            #expect(try await w.run("cache", "stats").output.contains("8 files evicted so far"))
        }
    }

    @Test func aRunStaysWithinTheCacheSizeLimit() async throws {
        try await withWorker { w in
            try await w.enqueue((0..<40).map { w.url("/\($0).png") })
            try await w.drain("--cache-max-size", "100kB", "--quiet")
            #expect(Int(try await w.value("SELECT bytes FROM cache_totals")) ?? .max <= 100_000)
            #expect(try await w.value("SELECT done FROM jobs") == "40")
        }
    }

    @Test func lostBlobsAreQueuedAgain() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"), "--variant", "thumb=16x12,png")
            try await w.drain()
            let path = try await w.path(w.url("/1.png"), variant: "thumb")
            try w.flipByte(of: path)
            let verified = try await w.run("cache", "verify", "--repair", expecting: 74)
            #expect(verified.output.contains("queued again as job 2"))
            try await w.drain()
            #expect(try await w.path(w.url("/1.png"), variant: "thumb") == path)
            try await w.run("cache", "verify", "--quick", "--sample", "3", expecting: 64)
        }
    }

    @Test func aReadOnlyCacheIsReadAfterTheMainCache() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/5.png"))
            try await w.drain()
            let other = w.place("other")
            #expect(mkdir(other, 0o755) == 0)
            _ = try ChildProcess.run("mv", [w.cache, w.database, other])
            try await w.run("init")
            try await w.run("get", w.url("/5.png"), expecting: 1)
            let found = try await w.run("get", w.url("/5.png"), "--read-only-cache", other + "/cache").line
            #expect(found.hasPrefix(other))
            try await w.enqueue(w.url("/5.png"), "--variant", "thumb=8x6,png")
            try await w.drain("--read-only-cache", other + "/cache")
            #expect(w.origin.requestCount("/5.png") == 1)
            #expect(try await w.value("SELECT cached FROM jobs") == "1")
        }
    }

    @Test func metricsCountCacheMissesAndPruneRemovesOldJobs() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/5.png"))
            try await w.drain()
            #expect(try await w.run("metrics").output.contains("worker_cache_misses_total 1\n"))
            try await w.run("prune", "--older-than", "1h", "--yes")
            #expect(try await w.value("SELECT count(*) FROM jobs") == "1")
            try await w.run("prune", "--older-than", "0", "--yes")
            #expect(try await w.value("SELECT count(*) FROM jobs") == "0")
            try await w.run("get", w.url("/5.png"))
        }
    }
}
