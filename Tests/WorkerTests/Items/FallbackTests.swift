import TestSupport
import Testing

/// Fallback URLs, which are requested when the URL before them has failed for good.
@Suite(.timeLimit(.minutes(15))) struct FallbackTests {
    @Test func theResultNamesTheFirstFallbackThatSucceeds() async throws {
        try await withWorker { w in
            let fallbacks = [
                "--fallback", w.url("/none"), "--fallback", w.url("/2.png"), "--fallback", w.url("/3.png"),
            ]
            try await w.run(["enqueue", w.url("/no"), w.url("/1.png")] + fallbacks)
            try await w.drain()
            #expect(try await w.counts("1") == "2|0|0|0|0")
            #expect(
                try await w.rows("SELECT url, served_url FROM results ORDER BY item") == [
                    "\(w.url("/no"))|\(w.url("/2.png"))", "\(w.url("/1.png"))|\(w.url("/1.png"))",
                ])
            #expect(w.origin.requestCount("/3.png") == 0)
            #expect(try w.bytes(of: try await w.path(w.url("/no"))) == Pictures.png(2))
            #expect(
                try await w.rows("SELECT url, class FROM blacklist ORDER BY url")
                    == [w.url("/no"), w.url("/none")].map { "\($0)|http-404" })
            // The next job asks none of them again.
            try await w.run(["enqueue", w.url("/no")] + fallbacks)
            let asked = w.origin.requests.count
            try await w.drain()
            #expect(try await w.counts("2") == "0|1|0|0|0")
            #expect(w.origin.requests.count == asked)
        }
    }

    @Test func eachFallbackHasAllItsTries() async throws {
        try await withWorker(script: ["/busy": [.status(500)], "/2.png": [.status(500), .ok(Pictures.png(2))]]) { w in
            try await w.enqueue(w.url("/busy"), "--fallback", w.url("/2.png"))
            try await w.drain("--max-tries", "2")
            #expect(w.origin.requestCount("/busy") == 2)
            #expect(w.origin.requestCount("/2.png") == 2)
            #expect(try await w.counts("1") == "1|0|0|0|0")
        }
    }

    @Test func theRulesForAddressesAndURLsHoldForFallbacks() async throws {
        try await withWorker { w in
            let path = try w.file("secret", "x")
            try await w.enqueue(w.url("/no"), "--fallback", "http://10.0.0.1/a.png", "--fallback", "file://\(path)")
            // The command refuses such a URL; SQL may write any.
            try await w.sql("UPDATE items SET fallbacks = json_insert(fallbacks, '$[#]', 'nonsense')")
            try await w.drain(expecting: 2)
            #expect(try await w.rows("SELECT class FROM failures") == ["invalid-url"])
            #expect(
                try await w.rows("SELECT class FROM tries ORDER BY at").contains("forbidden-address"))
            #expect(try await w.rows("SELECT class FROM blacklist ORDER BY 1") == ["forbidden-address", "http-404"])
        }
    }
}
