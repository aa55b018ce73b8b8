import Core
import Jobs
import PrefetchWorker
import Synchronization
import TestSupport
import Testing

/// When the worker asks the origin, and when it takes the cached source as fresh.
@Suite("Sources in the cache", .timeLimit(.minutes(15)), .enabled(if: Workplace.isBuilt, Workplace.notBuilt))
struct CachingTests {
    /// A clock that stands still, so that a slow machine makes nothing stale.
    private let start = DatabaseGate.wallClock()

    /// Runs a job for each of these options, `after` so many milliseconds each.
    private func run(
        _ place: Workplace, _ url: String, _ options: String?, after: Int64 = 0,
    ) async throws -> RunStatistics.Counts {
        _ = try await place.enqueue([url], options: options)
        return try await place.with { configuration in
            configuration.now = { [start] in start + after }
        }.drain().counts
    }

    @Test func `A fresh source costs no request, and a stale source costs a conditional request`() async throws {
        let origin = try LoopbackOrigin { request in
            let headers = [("ETag", "\"1\""), ("Cache-Control", "max-age=60")]
            return request.header("If-None-Match") == "\"1\""
                ? .status(304, headers: headers) : .ok(Pictures.jpeg, headers: headers)
        }
        try await withWorkplace { (place) async throws in
            let url = origin.url("/a.jpg")
            #expect(try await run(place, url, "http-cache").done == 1)
            #expect(try await run(place, url, "http-cache", after: 30_000).cached == 1)
            #expect(origin.requests.count == 1)
            #expect(try await run(place, url, "http-cache", after: 90_000).cached == 1)
            #expect(origin.requests.count == 2)
            // The 304 made it fresh again.
            #expect(try await run(place, url, "http-cache", after: 120_000).cached == 1)
            #expect(origin.requests.count == 2)
        }
    }

    static let policies: [(headers: [(String, String)], asksAgain: Bool)] = [
        ([("Cache-Control", "no-cache, max-age=60")], true), ([("Cache-Control", "no-store")], true),
        ([("Cache-Control", "max-age=60"), ("Vary", "*")], true),
        ([("Cache-Control", "max-age=60"), ("Vary", "Accept, Accept-Encoding")], false),
        ([("Cache-Control", "max-age=60"), ("Age", "61")], true), ([], true),
        ([("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")], false),
    ]

    @Test(arguments: policies.indices)
    func `HTTP's caching headers are obeyed with http-cache only`(_ index: Int) async throws {
        let (headers, asksAgain) = Self.policies[index]
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg, headers: headers.map { (name: $0.0, value: $0.1) }) }
        try await withWorkplace { (place) async throws in
            _ = try await run(place, origin.url("/a.jpg"), "http-cache")
            _ = try await run(place, origin.url("/a.jpg"), "http-cache")
            #expect(origin.requests.count == (asksAgain ? 2 : 1))
            // Without the option it is the worker's own rule.
            _ = try await run(place, origin.url("/a.jpg"), nil)
            #expect(origin.requests.count == (asksAgain ? 2 : 1))
        }
    }

    @Test func `A response that varies by a header is not reused for a job with another value`() async throws {
        let origin = try LoopbackOrigin { request in
            .ok(
                request.header("X-Size") == "2" ? Pictures.png : Pictures.jpeg,
                headers: [("Vary", "X-Size"), ("Cache-Control", "max-age=600")])
        }
        try await withWorkplace { (place) async throws in
            for size in ["1", "1", "2"] {
                _ = try await place.store.queue.enqueue(
                    NewJob(urls: [origin.url("/a")], options: "http-cache", headers: ["X-Size": size]))
                try await place.drain()
            }
            #expect(origin.requests.compactMap { $0.header("X-Size") } == ["1", "2"])
        }
    }

    @Test func `A job's max-age is used, and a max-age of -1 never asks again`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        try await withWorkplace { (place) async throws in
            let url = origin.url("/a.jpg")
            _ = try await run(place, url, "max-age=10s")
            _ = try await run(place, url, "max-age=10s", after: 5_000)
            #expect(origin.requests.count == 1)
            _ = try await run(place, url, "max-age=10s", after: 11_000)
            #expect(origin.requests.count == 2)
            _ = try await run(place, url, "max-age=-1", after: 900_000_000)
            #expect(origin.requests.count == 2)
        }
    }

    @Test(arguments: ["http-cache", "max-age=30d"])
    func `A clock that is set costs one request, and a source never counts as fresh for years`(
        _ options: String
    ) async throws {
        let origin = try LoopbackOrigin { request in
            let headers = [("ETag", "\"1\""), ("Cache-Control", "max-age=2592000")]
            return request.header("If-None-Match") == "\"1\""
                ? .status(304, headers: headers) : .ok(Pictures.jpeg, headers: headers)
        }
        try await withWorkplace { (place) async throws in
            let (url, years) = (origin.url("/a.jpg"), 10 * 365 * 86_400_000 as Int64)
            _ = try await run(place, url, options)
            for (after, requests) in [(-years, 2), (60_000 - years, 2), (years, 3), (years + 60_000, 3)] {
                #expect(try await run(place, url, options, after: after).cached == 1)
                #expect(origin.requests.count == requests, "\(after)")
            }
        }
    }

    @Test func `refresh-cached twice in a row never fails`() async throws {
        let origin = try LoopbackOrigin { request in
            request.header("If-None-Match") == nil ? .ok(Pictures.jpeg, headers: [("ETag", "\"1\"")]) : .status(304)
        }
        try await withWorkplace { (place) async throws in
            for _ in 0..<3 { #expect(try await run(place, origin.url("/a.jpg"), "refresh-cached").failed == 0) }
            #expect(origin.requests.count == 3)
        }
    }

    @Test func `A stale source is used for a failing origin with stale-if-error only`() async throws {
        let isBroken = Shared(false)
        let origin = try LoopbackOrigin { _ in isBroken.withLock { $0 } ? .status(500) : .ok(Pictures.jpeg) }
        try await withWorkplace(configure: { $0.retries.maxTries = 1 }) { (place) async throws in
            let url = origin.url("/a.jpg")
            _ = try await run(place, url, nil)
            isBroken.withLock { $0 = true }
            #expect(try await run(place, url, "refresh-cached").failed == 1)
            #expect(try await run(place, url, "refresh-cached stale-if-error").cached == 1)
            #expect(try await run(place, origin.url("/b.jpg"), "stale-if-error").failed == 1)
        }
    }

    @Test func `must-revalidate is obeyed when the origin fails`() async throws {
        let isBroken = Shared(false)
        let origin = try LoopbackOrigin { _ in
            isBroken.withLock { $0 }
                ? .status(503) : .ok(Pictures.jpeg, headers: [("Cache-Control", "max-age=0, must-revalidate")])
        }
        try await withWorkplace(configure: { $0.retries.maxTries = 1 }) { (place) async throws in
            _ = try await run(place, origin.url("/a.jpg"), "http-cache")
            isBroken.withLock { $0 = true }
            #expect(try await run(place, origin.url("/a.jpg"), "http-cache stale-if-error").failed == 1)
        }
    }

    @Test func `A cache-key rule makes one picture of many signatures`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        try await withWorkplace { (place) async throws in
            for signature in 1...3 {
                _ = try await run(place, origin.url("/a.jpg?sig=\(signature)"), "cache-key=drop-query")
            }
            #expect(origin.requests.map(\.path) == ["/a.jpg?sig=1"])
            // What a rule has put under another key is found by the URL as it was enqueued.
            let url = origin.url("/a.jpg?sig=2")
            #expect(try await place.store.cache.keys(ofURL: url) == [url, origin.url("/a.jpg")])
            #expect(try await place.store.cache.entry(ofURL: url, variant: "original")?.key == origin.url("/a.jpg"))
            #expect(try await place.store.cache.entry(ofURL: origin.url("/a.jpg?sig=8"), variant: "original") == nil)
            try await place.store.cache.pin([url])
            #expect(try await place.store.cache.pinned() == [url])
            #expect(try await place.store.cache.unpin([url]) == 1)
            #expect(try await place.store.cache.pinned().isEmpty)
            #expect(try await run(place, origin.url("/a.jpg?sig=9"), nil).done == 1)
        }
    }

    @Test func `A 401 for one job's credentials blocks no other job`() async throws {
        let origin = try LoopbackOrigin { request in
            request.header("Authorization") == "Bearer right" ? .ok(Pictures.jpeg) : .status(401)
        }
        try await withWorkplace { (place) async throws in
            func ended(_ path: String, _ secret: String?) async throws -> String? {
                let job = try #require(
                    try await place.store.queue.enqueue(
                        NewJob(
                            urls: [origin.url(path)], options: "from-loader-only",
                            headers: secret.map { ["Authorization": "Bearer \($0)"] } ?? [:])))
                try await place.drain()
                return try await place.item(job).failure
            }
            #expect(try await ended("/a.jpg", "wrong") == "http-401")
            #expect(try await place.store.blacklist.entries().isEmpty)
            #expect(try await ended("/a.jpg", "right") == nil)
            // Who says nothing of himself is listed, and no others for it.
            #expect(try await ended("/b.jpg", nil) == "http-401")
            #expect(try await place.store.blacklist.entries().map(\.url) == [origin.url("/b.jpg")])
            #expect(try await ended("/b.jpg", nil) == "http-401")
            #expect(origin.requestCount("/b.jpg") == 1)
            #expect(try await ended("/b.jpg", "right") == nil)
        }
    }

    @Test func `The blacklist uses the cache key, too`() async throws {
        let origin = try LoopbackOrigin { _ in .status(404) }
        try await withWorkplace { (place) async throws in
            for signature in 1...3 {
                _ = try await run(place, origin.url("/a.jpg?sig=\(signature)"), "cache-key=drop-query")
            }
            #expect(origin.requests.count == 1)
            #expect(try await place.store.blacklist.entries().map(\.url) == [origin.url("/a.jpg")])
        }
    }
}
