import TestSupport
import Testing

/// Sources of jobs with avoid-decode-image, which are stored undecoded.
@Suite("Unseen sources", .timeLimit(.minutes(15)))
struct UnseenTests {
    private static let facts = """
        SELECT results.format, source_format, source_width, frames, blurhash IS NULL FROM results WHERE variant = 'original'
        """

    @Test func `An undecoded source has only a format until another job decodes it`() async throws {
        try await withWorker { w in
            let url = w.url("/1.png")
            try await w.enqueue(url, "--option", "avoid-decode-image")
            try await w.drain()
            #expect(try await w.counts("1") == "1|0|0|0|0")
            #expect(try await w.rows(Self.facts) == ["png|png|||1"])
            #expect(try w.bytes(of: try await w.path(url)) == Pictures.png(1))
            // The same again takes it as it is; a job that doesn't say so looks at what is there.
            try await w.enqueue(url, "--option", "avoid-decode-image")
            try await w.drain()
            #expect(try await w.value("\(Self.facts) AND job = 2") == "png|png|||1")
            try await w.enqueue(url)
            try await w.drain()
            #expect(try await w.value("\(Self.facts) AND job = 3") == "png|png|64|1|0")
            #expect(w.origin.requests.count == 1)
        }
    }

    @Test func `Variants of an undecoded source are made without another request`() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"), "--option", "avoid-decode-image")
            try await w.drain()
            try await w.enqueue(w.url("/1.png"), "--option", "avoid-decode-image", "--variant", "it=8x8,fill")
            try await w.drain()
            #expect(try await w.value("SELECT width FROM results WHERE job = 2 AND variant = 'it'") == "8")
            #expect(w.origin.requests.count == 1)
        }
    }

    /// A picture that is damaged behind its header is stored, and fetched again by the first job that decodes it.
    @Test func `An undecoded source that turns out to be damaged is fetched again`() async throws {
        let half = Array(Pictures.png(1).prefix(Pictures.png(1).count / 2))
        try await withWorker(script: ["/1.png": [.ok(half, headers: [("ETag", "\"a\"")]), .ok(Pictures.png(1))]]) { w in
            let url = w.url("/1.png")
            try await w.enqueue(url, "--option", "avoid-decode-image")
            try await w.drain()
            #expect(try await w.counts("1") == "1|0|0|0|0")
            try await w.enqueue(url, "--option", "from-cache-only", "--variant", "it=8x8")
            try await w.drain("--max-tries", "1", expecting: 2)
            #expect(try await w.value("SELECT class FROM items WHERE job = 2") == "truncated")
            try await w.enqueue(url, "--option", "retry-failed", "--variant", "it=8x8")
            try await w.drain()
            #expect(try await w.counts("3") == "1|0|0|0|0")
            #expect(w.origin.requests.map { $0.header("If-None-Match") } == [nil, nil])
            #expect(try w.bytes(of: try await w.path(url)) == Pictures.png(1))
        }
    }

    @Test func `A body without an image's signature is refused, and an unchanged image costs a 304`() async throws {
        try await withWorker({ request in
            if request.path == "/text" { return .ok(Array("<html>".utf8) + [UInt8](repeating: 32, count: 100)) }
            if request.header("If-None-Match") == "\"a\"" { return .status(304) }
            return .ok(Pictures.png(1), headers: [("ETag", "\"a\"")])
        }) { w in
            for _ in 0..<2 {
                try await w.enqueue(
                    w.url("/text"), w.url("/1.png"), "--option", "avoid-decode-image", "--option", "refresh-cached",
                    "--option", "retry-failed")
                try await w.drain(expecting: 2)
            }
            #expect(
                try await w.rows("SELECT class FROM items WHERE url LIKE '%/text'") == ["not-an-image", "not-an-image"])
            #expect(try await w.counts("2") == "0|1|1|0|0")
        }
    }
}
