import TestSupport
import Testing

/// Files that were stored under the key of a rule, looked up by their URLs.
@Suite("Cache keys by a rule", .timeLimit(.minutes(15)))
struct KeyRuleTests {
    @Test func `Files stored by a cache-key rule are found by their URLs after their job is pruned`() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png?token=7"), "--option", "cache-key=drop-query")
            try await w.enqueue(w.url("/2.png?token=7&size=3"), "--option", "cache-key=keep:size")
            // The URL is its own key, whatever becomes of the others.
            try await w.enqueue(w.url("/3.png"))
            try await w.drain()
            try await w.run("prune", "--older-than", "0", "--yes")
            #expect(try await w.value("SELECT count(*) FROM items") == "0")
            for found in ["/1.png?token=7", "/1.png?token=8", "/2.png?token=9&size=3", "/3.png"] {
                _ = try await w.path(w.url(found))
            }
            let explained = try await w.run("explain", w.url("/1.png?token=7"))
            #expect(!explained.output.contains("not cached"), "\(explained.output)")
            // No rule has made a key of these.
            for missing in ["/2.png?size=4", "/3.png?token=7", "/2.png"] {
                try await w.run("get", w.url(missing), expecting: 1)
            }
            // A pin holds, and can be taken off.
            try await w.run("cache", "pin", w.url("/1.png?token=7"))
            try await w.run("cache", "gc", "--cache-max-age", "0")
            #expect(w.blobs.count == 1)
            #expect(try await w.value("SELECT count(*) FROM key_rules") == "1")
            try await w.run("cache", "unpin", w.url("/1.png?token=7"))
            try await w.run("cache", "gc", "--cache-max-age", "0")
            #expect(w.blobs.isEmpty)
            #expect(try await w.value("SELECT (SELECT count(*) FROM key_rules) + (SELECT count(*) FROM pins)") == "0")
        }
    }

    @Test func `A pin holds for files that are stored later, and while one URL of the key is pinned`() async throws {
        try await withWorker { w in
            let urls = (1...3).map { w.url("/1.png?token=\($0)") }
            try await w.run("init")
            // Before anything is known of it.
            try await w.run("cache", "pin", urls[0])
            try await w.enqueue(Array(urls[0..<2]), "--option", "cache-key=drop-query")
            try await w.drain()
            try await w.run("cache", "pin", urls[1])
            #expect(try await w.run("cache", "pin", "--show-credentials").lines == Array(urls[0..<2]))
            try await w.run("cache", "unpin", urls[2], expecting: 1)
            try await w.run("cache", "unpin", urls[0])
            try await w.run("prune", "--older-than", "0", "--yes")
            try await w.run("cache", "gc", "--cache-max-age", "0")
            #expect(w.blobs.count == 1)
            try await w.run("cache", "unpin", urls[1])
            #expect(try await w.run("cache", "pin").output == "")
            try await w.run("cache", "gc", "--cache-max-age", "0")
            #expect(w.blobs.isEmpty)
        }
    }
}
