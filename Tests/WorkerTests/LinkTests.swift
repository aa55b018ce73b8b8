import Glibc
import TestSupport
import Testing

/// The tree of links after deletions by hand, damage and crashes.
@Suite("The tree of links", .timeLimit(.minutes(15)))
struct LinkTests {
    private func link(_ w: TestWorker, _ path: String) async throws -> String {
        try await w.run("get", w.url(path), "--link").line
    }

    /// As it was made, so that nothing is left over.
    private func removeTree(_ w: TestWorker) async throws {
        try await w.drain("--links", "none")
        #expect(access(w.cache + "/links", F_OK) != 0)
    }

    @Test func `An incomplete tree of links is repaired by the next run, and removed as a whole`() async throws {
        try await withWorker { w in
            try await w.enqueue([w.url("/1.png"), w.url("/2.png")])
            try await w.drain("--links", "tree")
            let link = try await link(w, "/1.png")
            // It is deleted by hand.
            #expect(try ChildProcess.run("rm", ["-r", w.cache + "/links"]) == 0)
            try await w.drain("--links", "tree")
            #expect(access(link, R_OK) == 0)
            // A crash came before the first link, and its files are recorded as no one's.
            #expect(unlink(link) == 0)
            try await w.sql("DELETE FROM cache_properties WHERE name = 'links-made'")
            try await w.drain("--links", "tree")
            #expect(access(link, R_OK) == 0)
            #expect(unlink(link) == 0)
            #expect(try await w.run("cache", "verify", "--repair").output.contains("1 link was corrected"))
            #expect(access(link, R_OK) == 0)
            // A crash came before the last link was removed.
            try await w.sql("DELETE FROM cache_properties WHERE name LIKE 'links%'")
            try await removeTree(w)
        }
    }

    @Test func `The link of a file that get finds damaged is removed`() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"))
            try await w.drain("--links", "tree")
            let link = try await link(w, "/1.png")
            try w.flipByte(of: try await w.path(w.url("/1.png")))
            try await w.run("get", w.url("/1.png"), expecting: 1)
            var info = stat()
            #expect(lstat(link, &info) != 0)
            try await removeTree(w)
        }
    }

    @Test func `A folder in the tree is reported and skipped`() async throws {
        try await withWorker { w in
            try await w.enqueue([w.url("/1.png"), w.url("/2.png")])
            try await w.drain("--links", "tree")
            let links = [try await link(w, "/1.png"), try await link(w, "/2.png")]
            // One where a link should be, with something in it, and one where nothing should be.
            let shard = String(links[0].prefix(upTo: try #require(links[0].lastIndex(of: "/"))))
            let folders = [links[0], shard + "/stranger"]
            for link in links { #expect(unlink(link) == 0) }
            for folder in folders { #expect(mkdir(folder, 0o755) == 0) }
            #expect(mkdir(links[0] + "/mine", 0o755) == 0)
            let verified = try await w.run("cache", "verify", expecting: 74)
            for folder in folders {
                #expect(
                    verified.output.contains("does not belong in the cache: \(folder.dropFirst(w.cache.count + 1))"))
            }
            #expect(access(links[1], R_OK) == 0)
            try await w.drain("--links", "tree")
            try await w.drain("--links", "none")
            var info = stat()
            #expect(lstat(links[1], &info) != 0)
            #expect(fileNames(in: links[0]) == ["mine"])
            for folder in [links[0] + "/mine"] + folders { #expect(rmdir(folder) == 0) }
            try await removeTree(w)
        }
    }
}
