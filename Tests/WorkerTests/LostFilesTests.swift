import Glibc
import TestSupport
import Testing

/// Files that were found missing or damaged, and the commands that have them fetched again.
@Suite("Lost files", .timeLimit(.minutes(15)))
struct LostFilesTests {
    @Test func `A lost file that an earlier command found is queued by a later repair`() async throws {
        try await withWorker { w in
            try await w.enqueue([w.url("/1.png"), w.url("/2.png")], "--variant", "thumb=8x6,png")
            try await w.drain()
            // A verification finds one, a request the other.
            try w.flipByte(of: try await w.path(w.url("/1.png"), variant: "thumb"))
            let found = try await w.run("cache", "verify", expecting: 74)
            #expect(found.output.contains("lost, not restored yet: \(w.url("/1.png")) (thumb)"))
            try w.flipByte(of: try await w.path(w.url("/2.png")))
            try await w.run("get", w.url("/2.png"), expecting: 1)
            let told = try await w.run("cache", "verify", expecting: 74)
            #expect(told.output.contains(w.url("/2.png")) && told.output.contains("worker cache verify --repair"))
            let repaired = try await w.run("cache", "verify", "--repair", expecting: 74)
            #expect(repaired.output.contains("queued again as job 2") && !repaired.output.contains("not restored yet"))
            #expect(
                try await w.rows("SELECT url FROM items WHERE job = 2 ORDER BY url") == [
                    w.url("/1.png"), w.url("/2.png"),
                ])
            // On its way, it isn't queued once more.
            let onTheWay = try await w.run("cache", "verify", "--repair")
            #expect(onTheWay.output.contains("3 lost files are being fetched again"), "\(onTheWay.output)")
            try await w.drain()
            #expect(try await w.value("SELECT count(*) FROM lost_files") == "0")
            _ = try await w.path(w.url("/1.png"), variant: "thumb")
            _ = try await w.path(w.url("/2.png"))
            try await w.run("cache", "verify")
        }
    }

    @Test func `Lost files that a killed verification found are reported by the verification that resumes`()
        async throws
    {
        try await withWorker { w in
            try await w.enqueue((0..<300).map { w.url("/\($0).png") })
            try await w.drain("--quiet")
            // The first of the first page of 200.
            let first = try await w.value("SELECT min(hash) FROM blobs")
            try w.flipByte(of: "\(w.cache)/blobs/sha256/\(first.prefix(2))/\(first)")
            // As slow as it takes to come upon it and to be killed before the second page ends.
            let bytes = try #require(Int(try await w.value("SELECT sum(size) FROM blobs")))
            let child = try RunningProgram(
                TestWorker.binary,
                ["cache", "verify", "--db", w.database, "--cache", w.cache, "--rate", "\(bytes / 4)B"],
                files: ChildProcess.Files(output: w.place("out"), errors: w.place("err")), environment: [:])
            try await w.eventually("it has written down what it found") {
                try await w.value("SELECT count(*) FROM lost_files") != "0"
            }
            child.send(SIGKILL)
            _ = try await child.wait()
            let rest = try await w.run("cache", "verify", "--resume", expecting: 74)
            #expect(rest.output.contains("lost, not restored yet"), "\(rest.output)")
            #expect(
                try await w.run("cache", "verify", "--repair", expecting: 74).output.contains("queued again as job 2"))
            try await w.drain("--quiet")
            try await w.run("cache", "verify")
        }
    }

    @Test func `Lost files are queued again by the URLs of their items, with fragment and query`() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png#left"))
            try await w.enqueue(w.url("/2.png?token=7&size=3"), "--option", "cache-key=drop-query")
            try await w.enqueue(w.url("/3.png?token=7&size=3"), "--option", "cache-key=keep:size")
            try await w.drain()
            let blobs = w.blobs
            #expect(blobs.count == 3)
            for blob in blobs { unlink("\(w.cache)/blobs/sha256/\(blob)") }
            let repaired = try await w.run("cache", "verify", "--repair", expecting: 74)
            #expect(!repaired.output.contains("can't be queued again"), "\(repaired.output)")
            #expect(
                try await w.rows("SELECT url FROM items WHERE job > 3 ORDER BY url") == [
                    w.url("/1.png#left"), w.url("/2.png?token=7&size=3"), w.url("/3.png?token=7&size=3"),
                ])
            try await w.drain()
            #expect(w.blobs.sorted() == blobs.sorted())
            try await w.run("cache", "verify")
        }
    }

    @Test func `Lost files without a job or an entry leave the list`() async throws {
        try await withWorker { w in
            try await w.enqueue([w.url("/1.png"), w.url("/2.png"), w.url("/3.png")])
            try await w.drain()
            for blob in w.blobs { unlink("\(w.cache)/blobs/sha256/\(blob)") }
            try await w.run("cache", "verify", expecting: 74)
            // Its job is gone: that is told once.
            try await w.sql("DELETE FROM items WHERE url = '\(w.url("/1.png"))'; UPDATE jobs SET total = 2, done = 2")
            let repaired = try await w.run("cache", "verify", "--repair", expecting: 74)
            #expect(repaired.output.contains("1 URL can't be queued again"), "\(repaired.output)")
            try await w.run("cancel", "2")
            // A job that ended without it hasn't brought it back.
            #expect(try await w.run("cache", "verify", "--json", expecting: 74).output.contains("\"lost\":[{"))
            try await w.run("cache", "clear", "--yes")
            try await w.run("cache", "verify")
        }
    }

    @Test func `A lost variant of an older job is queued again as that job defined it`() async throws {
        try await withWorker { w in
            let url = w.url("/1.png")
            try await w.enqueue(url, "--variant", "thumb=8x6,png")
            try await w.drain()
            try await w.enqueue(url, "--variant", "card=16x12,png")
            try await w.drain()
            #expect(unlink(try await w.path(url, variant: "thumb")) == 0)
            try await w.run("cache", "verify", "--repair", expecting: 74)
            try await w.drain()
            _ = try await w.path(url, variant: "thumb")
            try await w.run("cache", "verify")
        }
    }

    @Test func `Concurrent repairs queue each lost file once`() async throws {
        try await withWorker { w in
            try await w.enqueue((0..<40).map { w.url("/\($0).png") })
            try await w.drain("--quiet")
            for blob in w.blobs { unlink("\(w.cache)/blobs/sha256/\(blob)") }
            try await withThrowingTaskGroup { group in
                for _ in 0..<3 {
                    group.addTask { _ = try await w.run("cache", "verify", "--repair", expecting: nil) }
                }
                try await group.waitForAll()
            }
            #expect(try await w.value("SELECT count(*), count(DISTINCT url) FROM items WHERE job > 1") == "40|40")
            try await w.drain("--quiet")
            try await w.run("cache", "verify")
        }
    }

    @Test func `Lost files of blacklisted URLs are reported and not queued again`() async throws {
        try await withWorker(script: ["/1.png": [.ok(Pictures.png(1)), .status(404)]]) { w in
            try await w.enqueue(w.url("/1.png"))
            try await w.drain()
            for blob in w.blobs { unlink("\(w.cache)/blobs/sha256/\(blob)") }
            try await w.run("cache", "verify", "--repair", expecting: 74)
            try await w.drain(expecting: 2)
            let again = try await w.run("cache", "verify", "--repair", expecting: 74)
            #expect(again.output.contains("stay lost while their URLs are on the blacklist"), "\(again.output)")
            #expect(!again.output.contains("queue the lost files"), "\(again.output)")
            #expect(try await w.value("SELECT count(*) FROM jobs") == "2")
            try await w.run("blacklist", "clear", "--yes")
            #expect(try await w.run("cache", "verify", "--repair", expecting: 74).output.contains("again as job 3"))
            try await w.drain(expecting: 2)
        }
    }
}
