import Glibc
import TestSupport
import Testing

/// Pictures that are removed by name.
@Suite(.timeLimit(.minutes(15))) struct CacheRemoveTests {
    private func cached(_ w: TestWorker, _ paths: [String], _ arguments: String...) async throws {
        try await w.run(["enqueue"] + paths.map(w.url) + ["--variant", "v=8x,png", "--variant", "w=4x,png"])
        try await w.run(["run", "--drain"] + TestWorker.quick + arguments)
    }

    @Test func removingAURLRemovesItsVariantsAndFiles() async throws {
        try await withWorker { w in
            try await cached(w, ["/1.png", "/2.png"])
            #expect(w.blobs.count == 6)
            #expect(
                try await w.run("cache", "remove", w.url("/1.png")).line.hasPrefix(
                    "3 pictures removed; 3 files deleted"))
            #expect(w.blobs.count == 3)
            #expect(try await w.run("get", w.url("/1.png"), expecting: 1).output == "")
            #expect(try await w.run("get", w.url("/2.png"), "--variant", "v").line.contains("/blobs/"))
            #expect(try await w.value("SELECT count(*) FROM results WHERE job = 1 AND path IS NULL") == "3")
            #expect(try await w.run("cache", "remove", w.url("/1.png"), expecting: 1).line.hasPrefix("0 pictures"))
            // It comes back when it is asked for.
            try await cached(w, ["/1.png"])
            #expect(try await w.counts("2") == "1|0|0|0|0")
            #expect(w.origin.requestCount("/1.png") == 2)
        }
    }

    /// The URL stays pinned, so that its next files are kept.
    @Test(arguments: ["cache remove", "DELETE"])
    func theFilesOfAPinnedURLAreRemovedToo(_ way: String) async throws {
        try await withWorker { w in
            try await cached(w, ["/1.png", "/2.png"])
            try await w.run("cache", "pin", w.url("/1.png"))
            if way == "DELETE" {
                try await w.sql("DELETE FROM entries WHERE url = '\(w.url("/1.png"))'")
                try await w.run("cache", "gc")
            } else {
                try await w.run("cache", "remove", w.url("/1.png"))
            }
            #expect(w.blobs.count == 3)
            try await cached(w, ["/1.png"])
            try await w.run("cache", "clear", "--yes")
            #expect(w.blobs.count == 3)
            #expect(try await w.run("get", w.url("/1.png"), "--variant", "v").line.contains("/blobs/"))
        }
    }

    @Test func filesThatAnotherURLNeedsStay() async throws {
        try await withWorker({ _ in .ok(Pictures.png(1)) }) { w in
            try await cached(w, ["/a", "/b"])
            #expect(w.blobs.count == 3)
            #expect(try await w.run("cache", "remove", w.url("/a")).line.hasPrefix("3 pictures removed; 0 files"))
            #expect(w.blobs.count == 3)
            #expect(try w.bytes(of: try await w.path(w.url("/b"))) == Pictures.png(1))
            try await w.run("cache", "remove", w.url("/b"))
            #expect(w.blobs.isEmpty)
        }
    }

    @Test func aRemovedVariantIsMadeAnewFromTheSource() async throws {
        try await withWorker { w in
            try await cached(w, ["/1.png"])
            #expect(
                try await w.run("cache", "remove", w.url("/1.png"), "--variant", "v").line.hasPrefix(
                    "1 picture removed"))
            #expect(w.blobs.count == 2)
            try await cached(w, ["/1.png"])
            #expect(w.origin.requests.count == 1)
            #expect(w.blobs.count == 3)
        }
    }

    @Test func entriesAreRemovedByHostOrPattern() async throws {
        try await withWorker { w in
            try await cached(w, ["/1.png", "/2.png", "/3.png?a=1"])
            let list = try await w.run("cache", "remove", "--match", "*/[12].png", "--variant", "v", "--dry-run").lines
            #expect(list == ["v  \(w.url("/1.png"))", "v  \(w.url("/2.png"))"])
            #expect(w.blobs.count == 9)
            try await w.run("cache", "remove", "--match", "*a=1")
            #expect(w.blobs.count == 6)
            try await w.run("cache", "remove", "--host", "other.example", expecting: 1)
            try await w.run("cache", "remove", "--host", "127.0.0.1")
            #expect(w.blobs.isEmpty)
            try await w.run("cache", "remove", expecting: 64)
        }
    }

    @Test func aDELETEOfEntriesRemovesThemLikeTheCommand() async throws {
        try await withWorker { w in
            try await cached(w, ["/1.png", "/2.png"])
            try await w.sql("DELETE FROM entries WHERE url = '\(w.url("/1.png"))'")
            #expect(try await w.value("SELECT count(*) FROM entries") == "3")
            #expect(try await w.run("get", w.url("/1.png"), expecting: 1).output == "")
            try await w.run("cache", "gc")
            #expect(w.blobs.count == 3)
        }
    }

    @Test func aDELETEKeepsBytesThatAnotherURLNeeds() async throws {
        try await withWorker({ _ in .ok(Pictures.png(1)) }) { w in
            try await cached(w, ["/a", "/b"])
            try await w.sql("DELETE FROM entries WHERE url = '\(w.url("/a"))'")
            try await w.run("cache", "gc")
            #expect(w.blobs.count == 3)
            #expect(try await w.run("get", w.url("/a"), expecting: 1).output == "")
            #expect(try w.bytes(of: try await w.path(w.url("/b"))) == Pictures.png(1))
            try await w.sql("DELETE FROM entries WHERE url = '\(w.url("/b"))'")
            try await w.run("cache", "gc")
            #expect(w.blobs.isEmpty)
        }
    }

    @Test func aRunningWorkerRemovesTheFilesAndLinksOfDeletedEntries() async throws {
        try await withWorker { w in
            try await cached(w, ["/1.png", "/2.png"], "--links", "tree")
            let link = try await w.run("get", w.url("/1.png"), "--variant", "v", "--link").line
            _ = try await w.startRegistered("--links", "tree", "--collect-every", "1h")
            // Past the collection that a run begins with.
            try await Task.sleep(for: .seconds(1))
            try await w.sql("DELETE FROM entries WHERE url = '\(w.url("/1.png"))'")
            try await w.eventually("the link and the files are gone") {
                var info = stat()
                return lstat(link, &info) != 0 && w.blobs.count == 3
            }
            try await w.run(["-rf", w.cache + "/links"], program: "/bin/rm")
            try await w.sql("DELETE FROM cache_properties WHERE name LIKE 'links%'")
        }
    }

    @Test func removingAURLRemovesItsLinks() async throws {
        try await withWorker { w in
            try await cached(w, ["/1.png"], "--links", "tree")
            let link = try await w.run("get", w.url("/1.png"), "--variant", "v", "--link").line
            #expect(access(link, F_OK) == 0)
            try await w.run("cache", "remove", w.url("/1.png"))
            var info = stat()
            #expect(lstat(link, &info) != 0)
            try await w.run(["-rf", w.cache + "/links"], program: "/bin/rm")
            try await w.sql("DELETE FROM cache_properties WHERE name LIKE 'links%'")
        }
    }
}
