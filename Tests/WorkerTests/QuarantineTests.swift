import Glibc
import TestSupport
import Testing

/// What stays in a cache beside its blobs, and for how long.
@Suite("Quarantine and other leftovers", .timeLimit(.minutes(15)))
struct QuarantineTests {
    @Test func `Damaged bytes are told of, stay for their time, and can be removed`() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"))
            try await w.drain()
            try w.flipByte(of: try await w.path(w.url("/1.png")))
            let found = try await w.run("cache", "verify", "--repair", expecting: 74)
            #expect(found.output.contains("1 files are in quarantine"), "\(found.output)")
            try await w.run("cache", "gc")
            try await w.run("cache", "gc", "--quarantine-age", "never")
            try await w.run("cache", "clear")
            #expect(fileNames(in: w.cache + "/quarantine").count == 1)
            #expect(try await w.run("cache", "stats").output.contains("1 files in quarantine"))
            let cleared = try await w.run("cache", "clear", "--quarantine")
            #expect(cleared.output.contains("1 files removed from quarantine"))
            #expect(fileNames(in: w.cache + "/quarantine") == [])
            // By its age, as every run does it.
            try w.write([1, 2, 3], to: w.cache + "/quarantine/bytes")
            try await w.drain("--quarantine-age", "0")
            #expect(fileNames(in: w.cache + "/quarantine") == [])
        }
    }

    @Test func `A marker that a kill kept from its name goes when it is old`() async throws {
        try await withWorker { w in
            try await w.run("init")
            let draft = w.cache + "/CACHE_VERSION.7.8"
            try w.write(Array("prefetch".utf8), to: draft)
            try await w.run("cache", "gc")
            #expect(access(draft, F_OK) == 0)
            unlink(draft)
        }
    }

    @Test func `A sample of nothing and a pin of nothing are refused`() async throws {
        try await withWorker { w in
            try await w.run("init")
            for percent in ["0", "-1", "101", "nan"] {
                try await w.run("cache", "verify", "--sample=\(percent)", expecting: 64)
            }
            try await w.run("cache", "verify", "--sample", "0.5")
            try await w.run("cache", "pin", "", expecting: 64)
            try await w.run("cache", "pin", w.url("/1.png"), " ", expecting: 64)
            #expect(try await w.run("cache", "pin").output == "")
        }
    }
}
