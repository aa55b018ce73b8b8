import Download
import Glibc
import Jobs
import PrefetchWorker
import TestSupport
import Testing

/// Hosts that never answer, and URLs that fail by themselves.
@Suite(
    "How long hosts are waited for", .serialized, .timeLimit(.minutes(15)),
    .enabled(if: Workplace.isBuilt, Workplace.notBuilt))
struct HostPatienceTests {
    @Test func `Items of a host that never answered fail after its patience and are not blacklisted`()
        async throws
    {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        let port = try LoopbackOrigin.unusedPort()
        try await withWorkplace(configure: {
            $0.downloads.circuitBreaker.patience = .seconds(3)
            $0.downloads.circuitBreaker.time = .seconds(600)
            $0.retries.maxTries = 100
        }) { (place) async throws in
            let dead = try await place.enqueue((0..<100).map { "http://127.0.0.1:\(port)/\($0).jpg" })
            let good = try await place.enqueue((0..<20).map { "http://localhost:\(origin.port)/\($0).jpg" })
            let start = ContinuousClock.now
            _ = try await place.drain()
            #expect(ContinuousClock.now - start < .seconds(60))
            #expect(try await place.progress(dead).failed == 100)
            #expect(try await place.progress(good).failed == 0)
            let item = try await place.history("http://127.0.0.1:\(port)/99.jpg")
            #expect(item.failure == "connect")
            #expect(try await place.store.blacklist.entries().isEmpty)
            // It was probed while it was waited for, and not by each of its items.
            let failures =
                try await place.store.hosts.statuses().first { $0.host == "127.0.0.1" }?.failures["connect"] ?? 0
            #expect((8..<100).contains(failures))
        }
    }

    @Test func `A host that has answered before gets all tries`() async throws {
        let isGone = Shared(false)
        let origin = try LoopbackOrigin { _ in isGone.withLock { $0 } ? .silence : .ok(Pictures.jpeg) }
        try await withWorkplace(configure: {
            $0.downloads.circuitBreaker.patience = .milliseconds(200)
            $0.downloads.silenceTimeout = .milliseconds(500)
            $0.retries.maxTries = 3
            $0.retries.base = 1
            $0.drains = false
        }) { (place) async throws in
            let stop = StopSignal()
            async let summary = place.run(stop)
            let first = try await place.enqueue([origin.url("/a.jpg")])
            #expect(try await eventually { try await place.progress(first).done == 1 })
            isGone.withLock { $0 = true }
            let second = try await place.enqueue([origin.url("/b.jpg")])
            #expect(try await eventually { try await place.progress(second).failed == 1 })
            #expect(origin.requests.count { $0.path == "/b.jpg" } == 3)
            stop.request()
            _ = try await summary
        }
    }

    @Test func `A URL that answers 503 doesn't slow down others of its host, and its wait has a reason`() async throws {
        let origin = try LoopbackOrigin { request in
            request.path.hasPrefix("/bad") ? .status(503) : .delayed(milliseconds: 50, then: .ok(Pictures.jpeg))
        }
        try await withWorkplace(configure: {
            $0.retries.base = 200
            $0.retries.maxTries = 3
        }) { (place) async throws in
            let bad = (0..<6).map { origin.url("/bad/\($0).jpg") }
            let good = (0..<25).map { origin.url("/good/\($0).jpg") }
            let job = try await place.enqueue(zip(good, bad).flatMap { [$0, $1] } + good.dropFirst(6))
            let start = ContinuousClock.now
            _ = try await place.drain()
            #expect(ContinuousClock.now - start < .seconds(60))
            let progress = try await place.progress(job)
            #expect((progress.done + progress.cached, progress.failed) == (25, 6))
            #expect(try await place.store.hosts.memories().allSatisfy { $0.width ?? 1 >= 1 })
        }
    }

    @Test func `A waiting item is in the view with its reason within a second`() async throws {
        let isOpen = Shared(false)
        let origin = try LoopbackOrigin { request in
            while !isOpen.withLock({ $0 }) { usleep(2_000) }
            return .ok(Pictures.jpeg)
        }
        try await withWorkplace(configure: {
            $0.downloads.perHost = 2
            $0.downloads.concurrency = 4
        }) { (place) async throws in
            let job = try await place.enqueue((0..<6).map { origin.url("/\($0)") })
            async let summary = place.drain()
            #expect(await eventually { origin.requests.count == 2 })
            let seen = ContinuousClock.now
            #expect(try await eventually { try await place.store.hosts.waits(job: job).first?.items == 4 })
            // Twice what it may take: the machine of a test is busy.
            #expect(ContinuousClock.now - seen < .seconds(4))
            let wait = try #require(try await place.store.hosts.waits().first)
            #expect(wait.reason == "127.0.0.1 is at its limit of 2 requests at once (--per-host).")
            #expect(wait.until == nil)
            let status = try await place.store.hosts.statuses().first
            #expect(status?.why == wait.reason)
            isOpen.withLock { $0 = true }
            _ = try await summary
            #expect(try await place.store.hosts.waits().isEmpty)
        }
    }
}
