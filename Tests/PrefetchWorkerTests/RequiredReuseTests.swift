import Core
import Jobs
import PrefetchWorker
import TestSupport
import Testing

/// The rules of RFC 9111 for a shared cache that show only over several requests: which response may be used for
/// which request, and what a 304 and an interim response change.
@Suite(.timeLimit(.minutes(15)), .enabled(if: Workplace.isBuilt, Workplace.notBuilt))
struct RequiredReuseTests {
    typealias Headers = [(name: String, value: String)]

    /// A clock that stands still, so that a slow machine makes nothing stale.
    private let start = DatabaseGate.wallClock()

    /// Runs a job `after` so many milliseconds.
    private func run(
        _ place: Workplace, _ url: String, _ options: String = "http-cache", headers: [String: String] = [:],
        after: Int64 = 0,
    ) async throws -> RunStatistics.Counts {
        _ = try await place.store.queue.enqueue(NewJob(urls: [url], options: options, headers: headers))
        return try await place.with { configuration in
            configuration.now = { [start] in start + after }
        }.drain().counts
    }

    // MARK: Interim responses

    static let interim: [(early: String, final: String, requests: Int)] = [
        ("103 Early Hints\r\nLink: </a.css>; rel=preload", "Cache-Control: max-age=600", 1),
        ("103 Early Hints\r\nCache-Control: no-store\r\nAge: 900", "Cache-Control: max-age=600", 1),
        ("103 Early Hints\r\nCache-Control: max-age=600", "X: y", 2),
        ("102 Processing", "Cache-Control: max-age=600", 1),
    ]

    @Test(arguments: interim.indices) func `An interim response is neither kept nor part of the final one`(
        _ index: Int
    ) async throws {
        let (early, final, requests) = Self.interim[index]
        let length = Pictures.jpeg.count
        let head = "HTTP/1.1 \(early)\r\n\r\nHTTP/1.1 200 OK\r\n\(final)\r\nContent-Length: \(length)\r\n\r\n"
        let origin = try LoopbackOrigin { _ in .raw(head, body: Pictures.jpeg) }
        try await withWorkplace { (place) async throws in
            for _ in 0..<2 { #expect(try await run(place, origin.url("/a.jpg")).failed == 0) }
            #expect(origin.requests.count == requests)
            #expect(try await place.store.cache.source(key: origin.url("/a.jpg"))?.size == Int64(length))
        }
    }

    // MARK: What a 304 changes

    struct Confirmed: Sendable {
        let first: Headers
        let confirming: Headers
        /// Whether another job 30 s after the 304 has to ask.
        let asksAgain: Bool
    }

    private static let tag = (name: "ETag", value: "\"1\"")
    private static func control(_ value: String) -> (name: String, value: String) { ("Cache-Control", value) }

    static let confirmed = [
        // What it says replaces what was stored, and what it leaves out is as it was.
        Confirmed(first: [tag, control("max-age=1")], confirming: [tag, control("max-age=600")], asksAgain: false),
        Confirmed(first: [tag, control("max-age=60")], confirming: [tag], asksAgain: false),
        Confirmed(first: [tag, control("max-age=60")], confirming: [], asksAgain: false),
        Confirmed(first: [tag, control("max-age=60")], confirming: [tag, control("max-age=1")], asksAgain: true),
        Confirmed(first: [tag, control("max-age=60")], confirming: [tag, control("no-store")], asksAgain: true),
        Confirmed(first: [tag, control("max-age=60")], confirming: [tag, control("no-cache")], asksAgain: true),
        Confirmed(first: [tag, control("max-age=60")], confirming: [tag, ("Vary", "*")], asksAgain: true),
        Confirmed(first: [tag, control("max-age=60")], confirming: [tag, ("Age", "59")], asksAgain: true),
        Confirmed(first: [tag, control("max-age=60"), ("Age", "59")], confirming: [tag], asksAgain: false),
        Confirmed(
            first: [tag, ("Expires", "Thu, 01 Jan 1970 00:00:00 GMT")],
            confirming: [tag, ("Expires", "Sat, 01 Jan 2050 00:00:00 GMT")], asksAgain: false),
        // Of the length and the coding of a body that it hasn't got it says nothing.
        Confirmed(
            first: [tag, control("max-age=60")],
            confirming: [tag, ("Content-Length", "5"), ("Content-Encoding", "gzip"), ("Content-Range", "bytes 0-4/9")],
            asksAgain: false),
        Confirmed(
            first: [tag, control("max-age=60")], confirming: [tag, ("Content-Type", "text/html")], asksAgain: false),
    ]

    @Test(arguments: confirmed.indices) func `A 304 updates the headers that it has and leaves the others`(
        _ index: Int
    ) async throws {
        let given = Self.confirmed[index]
        let origin = try LoopbackOrigin { request in
            guard request.header("If-None-Match") != nil else { return .ok(Pictures.jpeg, headers: given.first) }
            let lines = given.confirming.map { "\($0.name): \($0.value)\r\n" }.joined()
            return .raw("HTTP/1.1 304 Not Modified\r\n\(lines)\r\n")
        }
        try await withWorkplace { (place) async throws in
            let url = origin.url("/a.jpg")
            #expect(try await run(place, url).done == 1)
            #expect(try await run(place, url, after: 100_000).cached == 1)
            #expect(origin.requests.count == 2)
            #expect(origin.requests.last?.header("If-None-Match") == "\"1\"")
            #expect(try await run(place, url, after: 130_000).cached == 1)
            #expect(origin.requests.count == (given.asksAgain ? 3 : 2))
            let source = try #require(try await place.store.cache.source(key: url))
            #expect((source.size, source.etag, source.format) == (Int64(Pictures.jpeg.count), "\"1\"", "jpeg"))
        }
    }

    // MARK: Whose answer it is

    struct Asked: Sendable {
        let vary: [String]
        let first: [String: String]
        let second: [String: String]
        let isReused: Bool
    }

    static let asked = [
        Asked(vary: ["A"], first: ["A": "1"], second: ["A": "1"], isReused: true),
        Asked(vary: ["A"], first: ["A": "1"], second: ["a": "1"], isReused: true),
        Asked(vary: ["A"], first: ["A": "1"], second: ["A": "2"], isReused: false),
        Asked(vary: ["A"], first: ["A": "1"], second: [:], isReused: false),
        Asked(vary: ["A"], first: [:], second: ["A": "1"], isReused: false),
        Asked(vary: ["A"], first: ["A": "1", "Z": "1"], second: ["A": "1", "Z": "2"], isReused: true),
        Asked(vary: ["A, B"], first: ["A": "1", "B": "x"], second: ["A": "1", "B": "x"], isReused: true),
        Asked(vary: ["A, B"], first: ["A": "1", "B": "x"], second: ["A": "2", "B": "x"], isReused: false),
        Asked(vary: ["A, B"], first: ["A": "1", "B": "x"], second: [:], isReused: false),
        Asked(vary: ["A", "B"], first: ["A": "1", "B": "x"], second: ["A": "1", "B": "y"], isReused: false),
        Asked(
            vary: ["A, B, C"], first: ["A": "1", "B": "x", "C": "7"], second: ["C": "7", "B": "xy", "A": "1"],
            isReused: false),
        Asked(vary: ["A, B, C"], first: ["A": "1", "C": "7"], second: ["A": "1", "C": "7"], isReused: true),
        Asked(vary: ["*"], first: ["A": "1"], second: ["A": "1"], isReused: false),
        Asked(vary: ["*, *"], first: ["A": "1"], second: ["A": "1"], isReused: false),
        Asked(vary: ["*", "*"], first: ["A": "1"], second: ["A": "1"], isReused: false),
        Asked(vary: [", *"], first: ["A": "1"], second: ["A": "1"], isReused: false),
        Asked(vary: ["", "*"], first: ["A": "1"], second: ["A": "1"], isReused: false),
        Asked(vary: ["*, A"], first: ["A": "1"], second: ["A": "1"], isReused: false),
        Asked(vary: ["A, *"], first: ["A": "1"], second: ["A": "1"], isReused: false),
        // To a request with credentials, whether or not that is said.
        Asked(vary: [], first: ["Authorization": "Basic YTpi"], second: [:], isReused: false),
        Asked(vary: [], first: [:], second: ["Authorization": "Basic YTpi"], isReused: false),
    ]

    @Test(arguments: asked.indices) func `A stored response is reused only for matching requests`(
        _ index: Int
    ) async throws {
        let given = Self.asked[index]
        let headers = given.vary.map { (name: "Vary", value: $0) } + [Self.control("max-age=600")]
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg, headers: headers) }
        try await withWorkplace { (place) async throws in
            _ = try await run(place, origin.url("/a.jpg"), headers: given.first)
            _ = try await run(place, origin.url("/a.jpg"), headers: given.second)
            #expect(origin.requests.count == (given.isReused ? 1 : 2))
            _ = try await run(place, origin.url("/a.jpg?other"), headers: given.first)
            #expect(origin.requestCount("/a.jpg?other") == 1)
        }
    }

    @Test func `A conditional request has the headers that the response varies by`() async throws {
        let origin = try LoopbackOrigin { request in
            request.header("If-None-Match") == nil
                ? .ok(Pictures.jpeg, headers: [Self.tag, Self.control("max-age=1"), ("Vary", "X-Size")]) : .status(304)
        }
        try await withWorkplace { (place) async throws in
            let (url, headers) = (origin.url("/a.jpg"), ["X-Size": "9"])
            _ = try await run(place, url, headers: headers)
            #expect(try await run(place, url, headers: headers, after: 60_000).cached == 1)
            #expect(origin.requests.last?.header("X-Size") == "9")
            #expect(origin.requests.last?.header("If-None-Match") == "\"1\"")
        }
    }

    /// The date is that of another representation, which may be older; a tag belongs to one representation only.
    @Test(arguments: ["http-cache", "refresh-cached"])
    func `The date of a response to another request is not used for revalidation`(_ options: String) async throws {
        let dates = ["1": "Mon, 07 Nov 1994 08:49:37 GMT", "2": "Sun, 06 Nov 1994 08:49:37 GMT"]
        let origin = try LoopbackOrigin { request in
            let size = request.header("X-Size") ?? ""
            if request.header("If-Modified-Since") != nil { return .status(304) }
            return .ok(
                size == "1" ? Pictures.jpeg : Pictures.png,
                headers: [("Vary", "X-Size"), ("Last-Modified", dates[size] ?? "")])
        }
        try await withWorkplace { (place) async throws in
            let url = origin.url("/a")
            _ = try await run(place, url, options, headers: ["X-Size": "1"])
            _ = try await run(place, url, options, headers: ["X-Size": "2"])
            #expect(try await place.store.cache.source(key: url)?.format == "png")
            #expect(origin.requests.last?.header("If-Modified-Since") == nil)
            _ = try await run(place, url, options, headers: ["X-Size": "2"], after: 90 * 86_400_000)
            #expect(origin.requests.last?.header("If-Modified-Since") == dates["2"])
        }
    }

    @Test func `A 304 from a redirect's new target does not confirm the source of its old target`() async throws {
        let target = Shared("/one")
        let origin = try LoopbackOrigin { request in
            if request.path == "/now" { return .redirect(to: target.withLock { $0 }) }
            if request.header("If-Modified-Since") != nil { return .status(304) }
            return .ok(
                request.path == "/one" ? Pictures.jpeg : Pictures.png,
                headers: [("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")])
        }
        try await withWorkplace { (place) async throws in
            let url = origin.url("/now")
            _ = try await run(place, url, "refresh-cached")
            #expect(try await run(place, url, "refresh-cached").cached == 1)
            target.withLock { $0 = "/two" }
            #expect(try await run(place, url, "refresh-cached").done == 1)
            #expect(try await place.store.cache.source(key: url)?.format == "png")
        }
    }

    // MARK: What is stale

    @Test(arguments: ["must-revalidate", "proxy-revalidate", "no-cache", "s-maxage=2", "no-store"])
    func `A directive that forbids stale use is obeyed when the origin hangs up`(_ directive: String) async throws {
        let isBroken = Shared(false)
        let origin = try LoopbackOrigin { _ in
            isBroken.withLock { $0 } ? .noReply : .ok(Pictures.jpeg, headers: [Self.control("max-age=2, \(directive)")])
        }
        try await withWorkplace(configure: { $0.retries.maxTries = 1 }) { (place) async throws in
            _ = try await run(place, origin.url("/a.jpg"), "http-cache stale-if-error")
            isBroken.withLock { $0 = true }
            #expect(
                try await run(place, origin.url("/a.jpg"), "http-cache stale-if-error", after: 60_000).failed == 1)
        }
    }

    static let errors: [(answer: String, request: String?, after: Int64, isUsed: Bool)] = [
        ("max-age=0", nil, 60_000, true), ("max-age=0, stale-if-error=90", nil, 60_000, true),
        ("max-age=0, stale-if-error=1", nil, 60_000, false), ("max-age=0", "stale-if-error=1", 60_000, false),
        ("max-age=0", "stale-if-error=90", 60_000, true),
    ]

    @Test(arguments: errors.indices) func `A stale response replaces an error for as long as both sides allow`(
        _ index: Int
    ) async throws {
        let (answer, request, after, isUsed) = Self.errors[index]
        let isBroken = Shared(false)
        let origin = try LoopbackOrigin { _ in
            isBroken.withLock { $0 } ? .status(500) : .ok(Pictures.jpeg, headers: [Self.control(answer)])
        }
        let headers = request.map { ["Cache-Control": $0] } ?? [:]
        try await withWorkplace(configure: { $0.retries.maxTries = 1 }) { (place) async throws in
            let (url, options) = (origin.url("/a.jpg"), "http-cache stale-if-error")
            _ = try await run(place, url, options, headers: headers)
            isBroken.withLock { $0 = true }
            let counts = try await run(place, url, options, headers: headers, after: after)
            #expect((counts.cached, counts.failed) == (isUsed ? 1 : 0, isUsed ? 0 : 1))
        }
    }

    @Test func `A source with must-revalidate is revalidated once it is stale, and not before`() async throws {
        let headers: Headers = [Self.tag, Self.control("max-age=2, must-revalidate")]
        let origin = try LoopbackOrigin { request in
            request.header("If-None-Match") == nil
                ? .ok(Pictures.jpeg, headers: headers) : .status(304, headers: headers)
        }
        try await withWorkplace { (place) async throws in
            for (after, requests) in [(0, 1), (1_000, 1), (60_000, 2)] as [(Int64, Int)] {
                _ = try await run(place, origin.url("/a.jpg"), after: after)
                #expect(origin.requests.count == requests)
            }
            #expect(origin.requests.last?.header("If-None-Match") == "\"1\"")
        }
    }
}
