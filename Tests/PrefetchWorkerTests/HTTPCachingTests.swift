import Core
import Download
import Jobs
import PrefetchWorker
import TestSupport
import Testing

/// Which requests a stored response answers (RFC 9111), and which response a 304 confirms.
@Suite("HTTP's word on what is cached", .timeLimit(.minutes(15)), .enabled(if: Workplace.isBuilt, Workplace.notBuilt))
struct HTTPCachingTests {
    private static let fresh = [(name: "Cache-Control", value: "max-age=600")]

    /// Runs a job to its end.
    private func run(
        _ place: Workplace, _ url: String, _ options: String? = "http-cache", variants: String? = nil,
        headers: [String: String] = [:],
    ) async throws -> RunStatistics.Counts {
        _ = try await place.store.queue.enqueue(
            NewJob(urls: [url], variants: variants, options: options, headers: headers))
        return try await place.drain().counts
    }

    @Test func `A response varies by the run's own headers, too`() async throws {
        let origin = try LoopbackOrigin { request in
            .ok(Pictures.jpeg, headers: Self.fresh + [("Vary", "X-Tenant")])
        }
        try await withWorkplace { (place) async throws in
            for (tenant, requests) in [("a", 1), ("a", 1), ("b", 2)] {
                let place = place.with { $0.downloads.headers = [("X-Tenant", tenant)] }
                _ = try await run(place, origin.url("/a.jpg"))
                #expect(origin.requests.count == requests, "\(tenant)")
            }
        }
    }

    @Test func `A response that varies by cookies is not reused for a job with a cookie jar`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg, headers: Self.fresh + [("Vary", "Cookie")]) }
        try await withWorkplace { (place) async throws in
            for (options, requests) in [("http-cache", 1), ("http-cache", 1), ("http-cache handle-cookies", 2)] {
                _ = try await run(place, origin.url("/a.jpg"), options)
                #expect(origin.requests.count == requests)
            }
        }
    }

    @Test func `A response to a delegate's credentials is not reused for another job`() async throws {
        struct Signer: WorkerDelegate {
            func request(_ request: DelegatedRequest, item: DelegatedItem) async -> DelegatedRequest {
                DelegatedRequest(url: request.url, headers: ["Authorization": "Bearer of job \(item.job)"])
            }
        }
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg, headers: Self.fresh) }
        try await withWorkplace(configure: { $0.delegate = Signer() }) { (place) async throws in
            for _ in 0..<2 { _ = try await run(place, origin.url("/a.jpg")) }
            #expect(
                origin.requests.compactMap { $0.header("Authorization") } == ["Bearer of job 1", "Bearer of job 2"])
        }
    }

    @Test func `A temporarily redirected source is revalidated each time`() async throws {
        let origin = try LoopbackOrigin { request in
            if request.path == "/now.jpg" { return .redirect(to: "/a.jpg") }
            let headers = Self.fresh + [("ETag", "\"1\"")]
            return request.header("If-None-Match") == "\"1\""
                ? .status(304, headers: headers) : .ok(Pictures.jpeg, headers: headers)
        }
        try await withWorkplace { (place) async throws in
            #expect(try await run(place, origin.url("/now.jpg")).done == 1)
            #expect(try await run(place, origin.url("/now.jpg")).cached == 1)
            #expect(origin.requestCount("/a.jpg") == 2)
            #expect(try await run(place, origin.url("/a.jpg")).done == 1)
            #expect(try await run(place, origin.url("/a.jpg")).cached == 1)
            #expect(origin.requestCount("/a.jpg") == 3)
        }
    }

    @Test func `A 304 with another tag does not confirm the stored source`() async throws {
        let isNew = Shared(false)
        let origin = try LoopbackOrigin { request in
            guard isNew.withLock({ $0 }) else { return .ok(Pictures.jpeg, headers: [("ETag", "\"1\"")]) }
            return request.header("If-None-Match") == nil
                ? .ok(Pictures.png, headers: [("ETag", "\"2\"")]) : .status(304, headers: [("ETag", "\"2\"")])
        }
        try await withWorkplace { (place) async throws in
            let url = origin.url("/a")
            _ = try await run(place, url, nil)
            isNew.withLock { $0 = true }
            #expect(try await run(place, url, "refresh-cached").done == 1)
            let source = try #require(try await place.store.cache.source(key: url))
            #expect((source.format, source.etag) == ("png", "\"2\""))
            #expect(try await run(place, url, "refresh-cached").cached == 1)
        }
    }

    @Test func `A job with discard-original revalidates with a conditional request`() async throws {
        let origin = try LoopbackOrigin { request in
            request.header("If-None-Match") == "\"1\"" ? .status(304) : .ok(Pictures.jpeg, headers: [("ETag", "\"1\"")])
        }
        try await withWorkplace { (place) async throws in
            let (url, options) = (origin.url("/a.jpg"), "discard-original refresh-cached")
            #expect(try await run(place, url, options, variants: "t=2x2").done == 1)
            #expect(try await run(place, url, options, variants: "t=2x2").cached == 1)
            #expect(origin.requests.last?.header("If-None-Match") == "\"1\"")
            // What isn't there has to be made of bytes.
            #expect(try await run(place, url, options, variants: "t=2x2; u=1x1").done == 1)
            #expect(origin.requests.last?.header("If-None-Match") == nil)
        }
    }

    @Test func `A stale response replaces an error only for requests that it answers`() async throws {
        let isBroken = Shared(false)
        let origin = try LoopbackOrigin { _ in
            isBroken.withLock { $0 }
                ? .status(503) : .ok(Pictures.jpeg, headers: [("Cache-Control", "max-age=0"), ("Vary", "X-Size")])
        }
        try await withWorkplace(configure: { $0.retries.maxTries = 1 }) { (place) async throws in
            let (url, options) = (origin.url("/a.jpg"), "http-cache stale-if-error")
            _ = try await run(place, url, options, headers: ["X-Size": "1"])
            isBroken.withLock { $0 = true }
            #expect(try await run(place, url, options, headers: ["X-Size": "2"]).failed == 1)
            #expect(try await run(place, url, options, headers: ["X-Size": "1"]).cached == 1)
            // The failure was not reported, and counts against the host all the same.
            #expect(try await place.store.hosts.statuses().first?.failures == ["http-503": 2])
        }
    }

    @Test func `A source that one job's filter refuses is fetched for another job`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg, headers: [("Content-Type", "image/jpeg")]) }
        try await withWorkplace { (place) async throws in
            let url = origin.url("/a.jpg")
            #expect(try await run(place, url, "content-types=image/png").failed == 1)
            #expect(try await place.store.blacklist.entries().isEmpty)
            #expect(try await run(place, url, nil).done == 1)
        }
    }

    @Test func `The Retry-After of a last try is stored for the next worker`() async throws {
        let origin = try LoopbackOrigin { _ in .status(503, headers: [("Retry-After", "600")]) }
        try await withWorkplace(configure: { $0.retries.maxTries = 1 }) { (place) async throws in
            #expect(try await run(place, origin.url("/a.jpg"), nil).failed == 1)
            let status = try #require(try await place.store.hosts.statuses().first)
            #expect(status.reason == "retry-after")
            let notBefore = try #require(status.notBefore)
            #expect(notBefore - place.store.database.currentTime > 300_000)
        }
    }
}
