import Core
import Download
import Glibc
import Jobs
import PrefetchWorker
import TestSupport
import Testing

/// How a worker treats hosts, over restarts and beside other workers.
@Suite(
    "A worker and its hosts", .serialized, .timeLimit(.minutes(15)), .enabled(if: Workplace.isBuilt, Workplace.notBuilt)
)
struct HostTests {
    @Test func `The circuit of an unreachable host opens, and its items show the reason and end`() async throws {
        let port = try LoopbackOrigin.unusedPort()
        try await withWorkplace(configure: {
            $0.downloads.circuitBreaker.failures = 3
            $0.downloads.circuitBreaker.time = .seconds(60)
            $0.downloads.circuitBreaker.patience = .seconds(600)
            $0.drains = false
        }) { (place) async throws in
            let stop = StopSignal()
            let job = try await place.enqueue((0..<50).map { "http://127.0.0.1:\(port)/\($0).jpg" })
            async let summary = place.run(stop)
            #expect(try await eventually { try await place.progress(job).delayed == 50 })
            let status = try await eventually {
                try await place.store.hosts.statuses().first?.reason == "circuit-open"
            }
            #expect(status)
            let item = try await place.history("http://127.0.0.1:\(port)/49.jpg")
            #expect(item.failure == "connect")
            #expect(try #require(item.runAt) > place.store.database.currentTime + 20_000)
            // Who only waited has not failed at the host: no more were asked for than its places, and probes.
            let failures = try await place.store.hosts.statuses().first?.failures["connect"] ?? 0
            #expect((1..<20).contains(failures))
            stop.request()
            _ = try await summary
            // Another worker reads it from the database, and sends no request.
            let again = try await place.with {
                $0.retries.maxTries = 1
                $0.drains = true
            }.run(stop)
            #expect(again.counts.ended == 0)
        }
    }

    @Test func `A job with a silent host doesn't keep another job's items from being claimed`() async throws {
        let silence = try LoopbackOrigin { _ in .silence }
        let origin = try LoopbackOrigin { .ok(Pictures.jpeg + Array($0.path.utf8)) }
        try await withWorkplace(configure: { configuration in
            configuration.drains = false
            configuration.grace = 0
            configuration.downloads.silenceTimeout = .seconds(600)
            configuration.downloads.totalTimeout = .seconds(600)
        }) { (place) async throws in
            let stop = StopSignal()
            let silent = try await place.enqueue((0..<1_000).map { silence.url("/\($0)") })
            let healthy = try await place.enqueue(
                (0..<400).map { origin.url("/\($0)").replacing("127.0.0.1", with: "localhost") })
            async let summary = place.run(stop)
            var least = 1_000
            let hasEnded = try await eventually {
                let left = try await place.progress(silent).queued
                let progress = try await place.progress(healthy)
                if progress.queued > 0 { least = min(least, left) }
                return progress.ended == 400
            }
            #expect(hasEnded)
            // Where both seem stuck on a slow machine, they are claimed in turn.
            #expect(least >= 500)
            stop.request()
            _ = try await summary
        }
    }

    @Test func `A Retry-After holds after a restart and for the whole host`() async throws {
        let origin = try LoopbackOrigin(script: [
            "/a": [.status(429, headers: [("Retry-After", "600")]), .ok(Pictures.jpeg)], "/b": [.ok(Pictures.png)],
        ])
        try await withWorkplace(configure: { $0.drains = false }) { (place) async throws in
            let stop = StopSignal()
            let job = try await place.enqueue([origin.url("/a")])
            async let first = place.run(stop)
            #expect(try await eventually { try await place.progress(job).delayed == 1 })
            stop.request()
            _ = try await first
            let (second, secondStop) = (try await place.enqueue([origin.url("/b")]), StopSignal())
            async let run = place.run(secondStop)
            #expect(try await eventually { try await place.progress(second).delayed == 1 })
            let waiting = try await place.history(origin.url("/b"))
            #expect(waiting.message == "127.0.0.1 asked for a pause (Retry-After).")
            #expect(waiting.attempts == 0)
            #expect(origin.requestCount("/b") == 0)
            secondStop.request()
            _ = try await run
        }
    }

    @Test(arguments: [-86_400_000, 86_400_000] as [Int64])
    func `A clock that jumps by a day loses no item`(_ jump: Int64) async throws {
        let offset = Shared(Int64(0))
        let origin = try LoopbackOrigin { request in
            if request.path == "/5" { offset.withLock { $0 = jump } }
            return .delayed(milliseconds: 20, then: request.path == "/7" ? .status(503) : .ok(Pictures.jpeg))
        }
        try await withWorkplace(configure: { configuration in
            configuration.downloads.concurrency = 1
            configuration.now = { DatabaseGate.wallClock() + offset.withLock { $0 } }
        }) { (place) async throws in
            let job = try await place.enqueue((0..<20).map { origin.url("/\($0)") })
            let summary = try await place.drain()
            #expect((summary.counts.done + summary.counts.cached, summary.counts.failed) == (19, 1))
            #expect(try await place.progress(job).ended == 20)
        }
    }

    @Test func `Changed limits take effect while a worker runs`() async throws {
        let isOpen = Shared(false)
        let origin = try LoopbackOrigin { _ in
            while !isOpen.withLock({ $0 }) { usleep(2_000) }
            return .ok(Pictures.jpeg)
        }
        try await withWorkplace(configure: { $0.downloads.concurrency = 2 }) { (place) async throws in
            _ = try await place.enqueue((0..<20).map { origin.url("/\($0)") })
            async let summary = place.drain()
            #expect(await eventually { origin.requests.count == 2 })
            try await place.store.hosts.setLimits(LimitsRecord(host: "*", concurrency: 9, perHost: 9))
            #expect(await eventually { origin.requests.count == 9 })
            isOpen.withLock { $0 = true }
            #expect(try await summary.counts.done + summary.counts.cached == 20)
        }
    }

    @Test func `A rate limit spaces the requests to its host`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        try await withWorkplace { (place) async throws in
            try await place.store.hosts.setLimits(LimitsRecord(host: "127.0.0.1", rate: 10, burst: 2))
            _ = try await place.enqueue((0..<7).map { origin.url("/\($0)") })
            let started = ContinuousClock.now
            #expect(try await place.drain().counts.failed == 0)
            #expect(ContinuousClock.now - started >= .milliseconds(500))
        }
    }

    /// Counted by requests in flight together, since a busy machine has no reliable speed.
    @Test func `A stalled host takes no slot from a host that answers`() async throws {
        let stalling = try LoopbackOrigin { _ in .silence }
        let healthy = try LoopbackOrigin { _ in .delayed(milliseconds: 100, then: .ok(Pictures.jpeg)) }
        try await withWorkplace(configure: { $0.downloads.silenceTimeout = .seconds(280) }) { (place) async throws in
            let stop = StopSignal()
            let slow = try await place.enqueue((0..<300).map { stalling.url("/\($0)") })
            async let run = place.run(stop)
            #expect(await eventually { stalling.requests.count == 6 })
            let quick = try await place.enqueue(
                (0..<60).map { "http://localhost:\(healthy.port)/\($0)" })
            #expect(try await eventually { try await place.progress(quick).ended == 60 })
            #expect(healthy.maxSimultaneous == 6)
            try await place.store.control.cancel(job: slow)
            stop.request()
            _ = try await run
        }
    }

    @Test func `Thousands of items of a stalled host don't block the items of another host`() async throws {
        let stalling = try LoopbackOrigin { _ in .silence }
        let healthy = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        try await withWorkplace(configure: { $0.downloads.silenceTimeout = .seconds(280) }) { (place) async throws in
            let stop = StopSignal()
            let urls = (0..<4_500).map { stalling.url("/\($0)") }
            let job = try await place.enqueue(urls + ["http://localhost:\(healthy.port)/last"])
            async let run = place.run(stop)
            #expect(try await eventually { try await place.progress(job).done == 1 })
            let waiting = try await place.store.hosts.statuses().first { $0.host == "127.0.0.1" }
            #expect(waiting?.waiting ?? 0 > 0)
            try await place.store.control.cancel(job: job)
            stop.request()
            _ = try await run
        }
    }

    @Test func `Two workers on one database fetch a URL once`() async throws {
        let origin = try LoopbackOrigin { _ in .delayed(milliseconds: 400, then: .ok(Pictures.jpeg)) }
        try await withWorkplace { (place) async throws in
            let first = try await place.enqueue([origin.url("/a.jpg")], variants: "small=8x8")
            async let one = place.drain()
            #expect(await eventually { origin.requests.count == 1 })
            let second = try await place.enqueue([origin.url("/a.jpg")], variants: "large=12x12")
            async let two = place.drain()
            _ = try await (one, two)
            #expect(origin.requests.count == 1)
            #expect(try await place.progress(first).ended == 1)
            #expect(try await place.item(second).variant == "large")
            #expect(try await place.progress(second).failed == 0)
        }
    }

    @Test func `If the first of two items of one URL is cancelled, the second still gets the URL`() async throws {
        let isOpen = Shared(false)
        let origin = try LoopbackOrigin { _ in
            while !isOpen.withLock({ $0 }) { usleep(2_000) }
            return .ok(Pictures.jpeg)
        }
        try await withWorkplace { (place) async throws in
            let first = try await place.enqueue([origin.url("/a.jpg")])
            let second = try await place.enqueue([origin.url("/a.jpg")])
            async let summary = place.drain()
            #expect(await eventually { origin.requests.count == 1 })
            try await place.store.control.cancel(job: first)
            try await Task.sleep(for: .milliseconds(800))
            isOpen.withLock { $0 = true }
            _ = try await summary
            #expect(try await place.progress(first).cancelled == 1)
            #expect(try await place.progress(second).done == 1)
            #expect(origin.requests.count == 1)
        }
    }
}
