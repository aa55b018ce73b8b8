import Glibc
import TestSupport
import Testing

// Every hostile origin, address and image ends in its class soon, and the other items are unaffected.
// Three suites, so that they can run beside each other.

@Suite(.serialized, .timeLimit(.minutes(15))) struct HostileReplyTests {
    @Test(arguments: Hostile.replies) func aHostileReplyEndsInItsClass(_ row: Hostile) async throws {
        try await row.check()
    }

    /// `Retry-After` applies to the host, not to one URL.
    @Test func retryAfterDelaysAllRequestsToTheHost() async throws {
        try await withWorker(script: ["/busy": [.status(429, headers: [("Retry-After", "2")]), .ok(Pictures.png(7))]]) {
            w in
            try await w.enqueue(w.url("/busy"))
            let child = try w.start()
            try await w.eventually("the origin was asked") { w.origin.requestCount("/busy") == 1 }
            try await w.eventually("it is known") { try await w.value("SELECT count(*) FROM hosts") == "1" }
            try await w.sql("INSERT INTO jobs (urls) VALUES (json_array('\(w.url("/1.png"))'))")
            try await w.untilEnded("2")
            #expect(
                try await w.value("SELECT finished_at >= (SELECT not_before FROM hosts) FROM items WHERE job = 2")
                    == "1")
            try await w.untilEnded("1")
            #expect(w.origin.requests.count == 3)
            #expect(child.exit == nil)
        }
    }

    /// The wait outlives the worker that received it.
    @Test func retryAfterSurvivesARestart() async throws {
        try await withWorker(script: ["/busy": [.status(503, headers: [("Retry-After", "3")]), .ok(Pictures.png(7))]]) {
            w in
            try await w.enqueue(w.url("/busy"))
            let first = try w.start()
            try await w.eventually("it is known") { try await w.value("SELECT count(*) FROM hosts") == "1" }
            first.send(SIGTERM)
            #expect(try await first.wait() == .code(0))
            try await w.enqueue(w.url("/1.png"))
            let explained = try await w.run("explain", w.url("/1.png"))
            #expect(explained.output.contains("asked for a pause (Retry-After) until"))
            let left = try await w.value(
                "SELECT (not_before - CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)) FROM hosts")
            let clock = ContinuousClock()
            let started = clock.now
            try await w.drain()
            #expect(clock.now - started > .milliseconds((Int(left) ?? 0) - 500))
            #expect(try await w.value("SELECT sum(done) FROM jobs") == "2")
        }
    }
}

@Suite(.serialized, .timeLimit(.minutes(15))) struct HostileBodyTests {
    @Test(arguments: Hostile.bodies) func aHostileBodyEndsInItsClass(_ row: Hostile) async throws {
        try await row.check()
    }

    /// The length of the reply is that of the cut body, so only the decoder notices.
    @Test(arguments: [0.2, 0.5, 0.9]) func aTruncatedJPEGFailsAfterOneRequest(_ part: Double) async throws {
        let jpeg = try await Pictures.jpeg()
        let cut = Array(jpeg.prefix(Int(Double(jpeg.count) * part)))
        try await withWorker(script: ["/cut.jpg": [.ok(cut, type: "image/jpeg")]]) { w in
            try await w.enqueue(w.url("/cut.jpg"), w.url("/1.png"), "--variant", "t=20x")
            try await w.drain(expecting: 2)
            #expect(try await w.rows("SELECT class, attempts FROM failures") == ["truncated|1"])
            // It came whole, so that asking again would bring the same.
            #expect(w.origin.requestCount("/cut.jpg") == 1)
            #expect(try await w.counts("1") == "1|0|1|0|0")
        }
    }

    /// How a body ends that a decoder finds too short, and the number of requests until its URL is at fault.
    static let ends: [(name: String, headers: String, isChunked: Bool, requests: Int)] = [
        ("chunked", "Transfer-Encoding: chunked\r\n", true, 2),
        ("chunked, with an ETag", "Transfer-Encoding: chunked\r\nETag: \"a\"\r\n", true, 1),
        ("until the connection ends", "", false, 2),
        ("until the connection ends, with an ETag", "ETag: \"a\"\r\n", false, 2),
    ]

    @Test(arguments: ends)
    func `A body that arrives again with the same bytes is not requested a third time`(
        _ end: (name: String, headers: String, isChunked: Bool, requests: Int),
    ) async throws {
        let jpeg = try await Pictures.jpeg()
        let cut = Array(jpeg.prefix(jpeg.count / 2))
        let body =
            end.isChunked ? Array("\(String(cut.count, radix: 16))\r\n".utf8) + cut + Array("\r\n0\r\n\r\n".utf8) : cut
        let head = "HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\n\(end.headers)Connection: close\r\n\r\n"
        try await withWorker(script: ["/cut.jpg": [.raw(head, body: body)]]) { w in
            try await w.enqueue(w.url("/cut.jpg"), w.url("/1.png"), "--variant", "t=20x")
            try await w.drain(expecting: 2)
            #expect(try await w.rows("SELECT class, attempts FROM failures") == ["truncated|\(end.requests)"])
            #expect(w.origin.requestCount("/cut.jpg") == end.requests)
        }
    }
}

@Suite(.serialized, .timeLimit(.minutes(15))) struct HostileConnectionTests {
    @Test(arguments: Hostile.connections) func aHostileConnectionEndsInItsClass(_ row: Hostile) async throws {
        try await row.check()
    }

    @Test(arguments: [
        ("not a url", "invalid-url"), ("ftp://x/y", "invalid-url"), ("http://", "invalid-url"),
        ("http://10.0.0.1/a.png", "forbidden-address"),
        ("http://127.0.0.1:1/a.png", "forbidden-address"), ("http://[::1]/a.png", "forbidden-address"),
        ("http://169.254.169.254/latest/meta-data/", "forbidden-address"), ("http://0x7f.1/", "forbidden-address"),
        ("http://[::ffff:10.0.0.1]/", "forbidden-address"), ("http://localhost/", "forbidden-address"),
    ])
    func aForbiddenOrInvalidURLGetsNoConnection(_ url: String, _ failure: String) async throws {
        try await withWorker { w in
            // By SQL, since the command refuses what is no URL.
            try await w.run("init")
            try await w.sql("INSERT INTO jobs (urls) VALUES (json_array('\(url)'))")
            try await w.run("run", "--drain", "--min-free", "0", expecting: 2, within: .seconds(5))
            #expect(try await w.value("SELECT class, attempts FROM failures") == "\(failure)|1")
            #expect(try await w.value("SELECT count(*) FROM blacklist") == (failure == "invalid-url" ? "0" : "1"))
        }
    }

    /// The operator may allow them later, so they are not blacklisted.
    @Test(arguments: ["file:///etc/passwd", "FILE:///etc/passwd", "data:image/png;base64,AAAA"])
    func fileAndDataURLsAreDeniedByDefault(_ url: String) async throws {
        try await withWorker { w in
            try await w.enqueue(url)
            try await w.run("run", "--drain", "--min-free", "0", expecting: 2)
            #expect(try await w.value("SELECT class, attempts FROM failures") == "denied|1")
            #expect(try await w.value("SELECT count(*) FROM blacklist") == "0")
        }
    }

    /// 8192 bytes are the limit, and one more is over it.
    @Test func aURLOfUpTo8192BytesIsFetched() async throws {
        try await withWorker({ $0.path.hasPrefix("/long") ? .ok(Pictures.png(1)) : .status(404) }) { w in
            let start = w.url("/long?")
            let longest = start + String(repeating: "x", count: 8192 - start.utf8.count)
            try await w.enqueue(longest)
            let refused = try await w.run("enqueue", longest + "x", expecting: 64)
            #expect(refused.errors.contains("has 8193 bytes; a URL has at most 8192"))
            // SQL takes it, and its item fails.
            try await w.sql("INSERT INTO items (job, url) SELECT 1, url || 'x' FROM items")
            try await w.drain(expecting: 2)
            #expect(
                try await w.rows("SELECT length(url), state, class FROM items") == [
                    "8192|done|", "8193|failed|invalid-url",
                ])
            #expect(try w.bytes(of: try await w.path(longest)) == Pictures.png(1))
        }
    }

    @Test func aDrainThatReachesNoHostEndsWith69() async throws {
        try await withWorker { w in
            let port = try LoopbackOrigin.unusedPort()
            try await w.enqueue("http://127.0.0.1:\(port)/a", "http://127.0.0.1:\(port)/b")
            try await w.drain(expecting: 69, within: .seconds(10))
            #expect(
                try await w.rows("SELECT class, attempts, blacklisted FROM failures") == ["connect|4|0", "connect|4|0"])
            #expect(try await w.value("SELECT count(*) FROM blacklist") == "0")
        }
    }
}

extension Hostile {
    fileprivate static let limits = [
        "--silence-timeout", "400ms", "--total-timeout", "2s", "--connect-timeout", "1s", "--max-body", "1MiB",
        "--retry-delay", "20ms",
    ]

    /// Lets it happen to a running worker, which must end the item as it should and go on working.
    fileprivate func check() async throws {
        try await withWorker(script: ["/bad": script]) { w in
            try await w.enqueue(w.url("/bad"))
            let child = try w.start(["--allow-addresses", "loopback", "--min-free", "0"] + Self.limits)
            let clock = ContinuousClock()
            let started = clock.now
            try await w.untilEnded("1", within: atMost)
            #expect(clock.now - started >= atLeast)
            #expect(try await w.value("SELECT state, class, attempts FROM items") == end)
            #expect(w.origin.requestCount("/bad") == requests)
            try await stillWorks(w, child)
            let memory = try #require(child.peakMemory)
            #expect(memory < 150, "MiB")
            let isOnList = try await w.value("SELECT count(*) FROM blacklist WHERE url = '\(w.url("/bad"))'") == "1"
            #expect(isOnList == isBlacklisted)
        }
    }

    private func stillWorks(_ w: TestWorker, _ child: RunningProgram) async throws {
        try await w.sql("INSERT INTO jobs (urls) VALUES (json_array('\(w.url("/1.png"))'))")
        try await w.eventually("a good image is done") {
            try await w.value("SELECT count(*) FROM items WHERE url LIKE '%/1.png' AND state = 'done'") == "1"
        }
        #expect(child.exit == nil)
    }
}
