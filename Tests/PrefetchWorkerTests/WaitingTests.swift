import Download
import Glibc
import Jobs
import PrefetchWorker
import TestSupport
import Testing

/// Items that wait for other things than slots of their host are listed like all waiting items.
@Suite("Waiting items and their reasons", .timeLimit(.minutes(15)), .enabled(if: Workplace.isBuilt, Workplace.notBuilt))
struct WaitingTests {
    /// How long a wait may be unknown: twice what is promised, since the machine of a test is busy.
    private static let limit = Duration.seconds(4)

    /// Waits until so many items stand there, and looks at the other places where they do.
    private func check(_ place: Workplace, _ items: Int, for host: String, _ reason: String) async throws {
        let start = ContinuousClock.now
        #expect(try await eventually { try await place.store.hosts.waits().first?.items == items })
        #expect(ContinuousClock.now - start < Self.limit)
        let wait = try #require(try await place.store.hosts.waits().first)
        #expect((wait.host, wait.reason, wait.until) == (host, reason, nil))
        let status = try await place.store.hosts.statuses().first { $0.host == host }
        #expect(status?.why == reason)
        var told: [String] = []
        for item in 1...20 as ClosedRange<Int64> {
            if let wait = try await place.store.hosts.waitReason(of: item) { told.append(wait.reason) }
        }
        #expect(told == Array(repeating: reason, count: items))
    }

    @Test func `Items that wait for robots.txt have that reason within a second`() async throws {
        let isOpen = Shared(false)
        let origin = try LoopbackOrigin { request in
            guard request.path == "/robots.txt" else { return .ok(Pictures.jpeg) }
            while !isOpen.withLock({ $0 }) { usleep(2_000) }
            return .ok(Array("User-agent: *\nAllow: /\n".utf8))
        }
        try await withWorkplace { (place) async throws in
            let job = try await place.enqueue(
                (0..<5).map { origin.url("/\($0)") }, options: "respect-robots-txt")
            // However the test ends, the run has to.
            defer { isOpen.withLock { $0 = true } }
            async let summary = place.drain()
            #expect(await eventually { origin.requestCount("/robots.txt") == 1 })
            try await check(place, 5, for: "127.0.0.1", "The robots.txt of 127.0.0.1 is fetched first.")
            isOpen.withLock { $0 = true }
            _ = try await summary
            #expect(try await place.progress(job).done == 5)
            #expect(try await place.store.hosts.waits().isEmpty)
        }
    }

    @Test func `Items that wait for a helper process have that reason within a second`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        try await withWorkplace(configure: { $0.drains = false }) { (place) async throws in
            let stop = StopSignal()
            let first = try await place.enqueue([origin.url("/first")], variants: "t=2x2")
            async let summary = place.run(stop)
            #expect(try await eventually { try await place.progress(first).done == 1 })
            let helpers = place.helpers()
            #expect(helpers.count == 1)
            for helper in helpers { kill(helper, SIGSTOP) }
            // One is in the helper's hands. The others are of the same bytes, and so one waits for the other.
            let job = try await place.enqueue((0..<5).map { origin.url("/\($0)") }, variants: "t=3x3")
            let others = try await place.enqueue([origin.url("/a")], variants: "u=4x4")
            try await check(
                place, 5, for: "helper processes", "The helper process is at work on another picture (--transforms).")
            for helper in helpers { kill(helper, SIGCONT) }
            #expect(try await eventually { try await place.progress(job).done + place.progress(others).done == 6 })
            #expect(try await eventually { try await place.store.hosts.waits().isEmpty })
            stop.request()
            _ = try await summary
        }
    }

    @Test func `Items that wait for transforms do not have the reason of downloads`() async throws {
        let origin = try LoopbackOrigin { .ok(Pictures.jpeg + Array($0.path.utf8)) }
        try await withWorkplace(configure: { $0.drains = false }) { (place) async throws in
            let stop = StopSignal()
            let first = try await place.enqueue([origin.url("/first")], variants: "t=2x2")
            async let summary = place.run(stop)
            #expect(try await eventually { try await place.progress(first).done == 1 })
            for helper in place.helpers() { kill(helper, SIGSTOP) }
            let job = try await place.enqueue((0..<40).map { origin.url("/\($0)") }, variants: "t=3x3")
            func isTold() async throws -> Bool {
                for item in 2...41 as ClosedRange<Int64> {
                    let reason = try await place.store.hosts.waitReason(of: item)?.reason
                    if reason?.hasPrefix("Too many fetched pictures wait for helpers (--transforms)") == true {
                        return true
                    }
                }
                return false
            }
            #expect(try await eventually { try await isTold() })
            let status = try await place.store.hosts.statuses().first { $0.host == "127.0.0.1" }
            #expect(status?.why?.contains("--transforms") == true)
            for helper in place.helpers() { kill(helper, SIGCONT) }
            #expect(try await eventually { try await place.progress(job).done == 40 })
            stop.request()
            _ = try await summary
        }
    }

    @Test func `Items that wait for decoders' memory have that reason, even if a helper is free`() async throws {
        // Each takes many seconds: AVIF at its greatest effort.
        let pictures = (0..<3).map { TestImages.gif(1_400, 1_000 + $0) }
        let origin = try LoopbackOrigin { .ok(pictures[Int($0.path.dropFirst()) ?? 0]) }
        try await withWorkplace(configure: {
            $0.helpers.count = 2
            $0.helpers.decoderBytes = 1
        }) { (place) async throws in
            let job = try await place.enqueue((0..<3).map { origin.url("/\($0)") }, variants: "t=1400x,avif,effort:9")
            async let summary = place.drain()
            let reason = "Large pictures are at work, and use the memory that all decoders together may use."
            try await check(place, 2, for: "helper processes", reason)
            try await place.store.control.cancel(job: job)
            _ = try await summary
        }
    }

    @Test func `Items that wait for a loader of the program have that reason within a second`() async throws {
        let isOpen = Shared(false)
        try await withWorkplace(configure: {
            $0.downloads.concurrency = 1
            $0.loaders = [Gated(isOpen: isOpen)]
        }) { (place) async throws in
            let job = try await place.enqueue((0..<4).map { "box:\($0)" })
            // However the test ends, the run has to.
            defer { isOpen.withLock { $0 = true } }
            async let summary = place.drain()
            try await check(
                place, 3, for: "loaders of the program",
                "The slot for a loader is taken by another picture (--concurrency).")
            isOpen.withLock { $0 = true }
            _ = try await summary
            #expect(try await place.progress(job).done == 4)
        }
    }

    /// Serves a picture for every `box:` URL, once it may.
    private struct Gated: ImageLoader {
        let isOpen: Shared<Bool>

        func canLoad(_ url: String) -> Bool { url.hasPrefix("box:") }

        func load(_ request: LoaderRequest, into body: any LoaderBody) async throws -> LoaderResponse {
            while !isOpen.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(10)) }
            try await body.write(Pictures.jpeg)
            return LoaderResponse()
        }
    }

    @Test func `Items whose files wait for space in the cache have that reason within a second`() async throws {
        let body = Pictures.jpeg + [UInt8](repeating: 7, count: 300_000)
        let origin = try LoopbackOrigin { request in
            request.path == "/0" ? .slowly(body, pieces: 3, pause: 2_000) : .ok(body)
        }
        try await withWorkplace(configure: {
            $0.cachePolicy.maxBytes = 400_000
            $0.drains = false
        }) { (place) async throws in
            let stop = StopSignal()
            _ = try await place.enqueue([origin.url("/0")], options: "avoid-decode-image")
            async let summary = place.run(stop)
            #expect(await eventually { origin.requestCount("/0") == 1 })
            _ = try await place.enqueue([origin.url("/1")], options: "avoid-decode-image")
            let start = ContinuousClock.now
            #expect(
                try await eventually {
                    let reason = try await place.store.hosts.waitReason(of: 2)?.reason
                    let first = try await place.store.hosts.waits().first
                    return reason?.contains("--cache-max-size") == true && first?.host == "space in the cache"
                })
            #expect(ContinuousClock.now - start < Self.limit)
            let hosts = try await place.store.hosts.statuses()
            #expect(hosts.first { $0.host == "space in the cache" }?.why?.contains("--cache-max-size") == true)
            // Its turn comes when the other has ended, which is evicted for it.
            #expect(try await eventually { try await place.store.reports.backlog().isEmpty })
            stop.request()
            _ = try await summary
        }
    }

    @Test func `A queue that waits for disk space has that reason with the numbers`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        try await withWorkplace(configure: {
            $0.minimumFree = .max
            $0.drains = false
        }) { (place) async throws in
            let stop = StopSignal()
            _ = try await place.enqueue((0..<3).map { origin.url("/\($0)") })
            async let summary = place.run(stop)
            #expect(try await eventually { try await place.store.hosts.waits().first?.items == 3 })
            let wait = try #require(try await place.store.hosts.waits().first)
            #expect(wait.host == "the disk of the cache" && wait.reason.contains("--min-free"))
            #expect(try await place.store.hosts.waitReason(of: 2)?.reason == wait.reason)
            let status = try await place.store.hosts.statuses().first { $0.host == wait.host }
            #expect(status?.waiting == 3 && status?.why == wait.reason)
            #expect(origin.requests.isEmpty)
            stop.request()
            _ = try await summary
            #expect(try await place.store.hosts.waits().isEmpty)
        }
    }
}
