import Download
import Jobs
import PrefetchWorker
import TestSupport
import Testing

/// The cases that tests of prefetchers on phones have, for a worker without a screen.
@Suite("The downloads' checklist", .timeLimit(.minutes(15)), .enabled(if: Workplace.isBuilt, Workplace.notBuilt))
struct DownloadChecklistTests {
    @Test func `The progress of three URLs goes 1, 2, 3`() async throws {
        let turn = Shared(0)
        let origin = try LoopbackOrigin { request in
            // Each is let go when the one before it has been seen to end.
            let number = Int(request.path.dropFirst()) ?? 0
            for _ in 0..<10_000 where turn.withLock({ $0 }) < number { usleepMilliseconds(2) }
            return .ok(Pictures.jpeg)
        }
        try await withWorkplace { place in
            let job = try await place.enqueue((0..<3).map { origin.url("/\($0)") })
            async let summary = place.drain()
            for ended in 1...3 {
                #expect(try await eventually { try await place.progress(job).ended >= ended })
                #expect(try await place.progress(job).ended == ended)
                turn.withLock { $0 = ended }
            }
            _ = try await summary
            #expect(try await place.progress(job).failed == 0)
        }
    }

    @Test func `Two overlapping jobs complete, and their common URLs are fetched once`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        try await withWorkplace { place in
            let other = try JobStore(path: place.configuration.database)
            let first = try await place.enqueue((0..<20).map { origin.url("/\($0)") })
            let second = try #require(
                try await other.queue.enqueue(NewJob(urls: (10..<30).map { origin.url("/\($0)") })))
            try await other.close()
            try await place.drain()
            #expect(origin.requests.count == 30)
            for job in [first, second] {
                let progress = try await place.progress(job)
                #expect((progress.ended, progress.failed) == (20, 0))
            }
        }
    }

    @Test func `The totals of two thousand URLs agree in counts, progress, results and hosts`() async throws {
        let origin = try LoopbackOrigin { request in
            // Different bytes, so that they are not all one picture.
            request.path.hasSuffix("7") ? .status(404) : .ok(Pictures.jpeg + Array(request.path.utf8))
        }
        try await withWorkplace { place in
            let job = try await place.enqueue((0..<2_000).map { origin.url("/\($0)") })
            let counts = try await place.drain().counts
            let progress = try await place.progress(job)
            #expect((counts.ended, counts.failed) == (2_000, 200))
            #expect((progress.total, progress.ended, progress.failed) == (2_000, 2_000, 200))
            #expect(try await place.store.reports.results(job: job, after: 0, limit: 3_000).count == 2_000)
            #expect(try await place.store.hosts.statuses().first?.failures == ["http-404": 200])
        }
    }

    static let wrong: [(reply: LoopbackReply, failure: String, isListed: Bool)] = [
        (.status(404), "http-404", true), (.status(401), "http-401", true), (.status(500), "http-500", false),
        (.ok(Array("<html>".utf8), type: "image/jpeg"), "not-an-image", true), (.ok([]), "bad-image", true),
        (.ok(Array(Pictures.png.prefix(16)) + [0, 0, 0, 0, 0, 0, 0, 0] + Pictures.png[24...]), "bad-image", true),
        (.noReply, "connection-lost", false), (.silence, "timeout", false),
    ]

    @Test(arguments: wrong.indices)
    func `A failed URL has a class and no blob, and is blacklisted if its class says so`(_ index: Int) async throws {
        let (reply, failure, isListed) = Self.wrong[index]
        let origin = try LoopbackOrigin { _ in reply }
        try await withWorkplace(configure: {
            $0.retries.maxTries = 1
            $0.downloads.silenceTimeout = .milliseconds(500)
        }) { place in
            let job = try await place.enqueue([origin.url("/a")], variants: "small=8x8")
            try await place.drain()
            let item = try await place.item(job)
            #expect((item.failure, item.blob) == (failure, nil))
            #expect(try await place.store.blacklist.entries().count == (isListed ? 1 : 0))
        }
    }

    /// The accepted types are compared with the origin's Content-Type, whatever the bytes are.
    @Test func `A Content-Type that the job doesn't accept is refused`() async throws {
        let types = [
            "/jpeg": "image/jpeg", "/png": "Image/PNG; charset=x", "/text": "text/html", "/webp": "image/webp",
        ]
        let origin = try LoopbackOrigin {
            .ok(Pictures.png, type: types[String($0.path.prefix { $0 != "?" })] ?? "imagepng")
        }
        try await withWorkplace { place in
            let paths = ["/jpeg", "/png", "/text", "/webp", "/other"]
            let some = try await place.enqueue(
                paths.map { origin.url($0) }, options: "content-types=image/jpeg+image/png")
            try await place.drain()
            let failures = try await place.store.reports.results(job: some, after: 0, limit: 10).map(\.failure)
            #expect(failures == [nil, nil, "not-an-image", "not-an-image", "not-an-image"])
            let all = try await place.enqueue(
                paths.map { origin.url($0 + "?again") }, options: "content-types=image/*")
            try await place.drain()
            let others = try await place.store.reports.results(job: all, after: 0, limit: 10).map(\.failure)
            #expect(others == [nil, nil, "not-an-image", nil, "not-an-image"])
        }
    }

    @Test func `Failures to connect or to resolve a name are not blacklisted`() async throws {
        let port = try LoopbackOrigin.unusedPort()
        try await withWorkplace(configure: { $0.retries.maxTries = 1 }) { place in
            let job = try await place.enqueue(["http://127.0.0.1:\(port)/a", "http://nowhere.invalid/a"])
            try await place.drain()
            let results = try await place.store.reports.results(job: job, after: 0, limit: 9)
            #expect(results.map(\.failure) == ["connect", "dns"])
            #expect(try await place.store.blacklist.entries() == [])
        }
    }

    @Test func `Ten sizes of one URL at once share one fetch`() async throws {
        let origin = try LoopbackOrigin { _ in .delayed(milliseconds: 100, then: .ok(Pictures.jpeg)) }
        try await withWorkplace { place in
            var jobs: [JobID] = []
            for size in 1...10 {
                jobs.append(try await place.enqueue([origin.url("/a")], variants: "v=\(size)x\(size),fill"))
            }
            try await place.drain()
            #expect(origin.requests.count == 1)
            for (size, job) in zip(1...10, jobs) {
                let widths = try await place.store.reports.results(job: job, after: 0, limit: 9).filter {
                    $0.variant == "v"
                }
                #expect(widths.map(\.width) == [size])
            }
        }
    }

    @Test(arguments: [true, false]) func `Two hundred jobs of one URL, enqueued one after the other, all end`(
        _ isGood: Bool
    ) async throws {
        let origin = try LoopbackOrigin { _ in .delayed(milliseconds: 300, then: isGood ? .ok(Pictures.jpeg) : .ok([]))
        }
        try await withWorkplace(configure: { $0.drains = false }) { place in
            let stop = StopSignal()
            async let run = place.run(stop)
            for _ in 0..<200 {
                _ = try await place.enqueue([origin.url("/a")])
                try await Task.sleep(for: .milliseconds(10))
            }
            #expect(try await eventually { try await place.store.reports.backlog().isEmpty })
            stop.request()
            let counts = try await run.counts
            #expect(counts.ended == 200)
            #expect(counts.done + counts.cached == (isGood ? 200 : 0))
        }
    }

    @Test func `URLs with odd paths are fetched`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        let names = [
            "", "..", "%2e%2e/%2e%2e/etc/passwd", "a b", "%00", "\u{1F600}", String(repeating: "x", count: 4_000),
            "a?b=c&d",
            "CON", ".hidden", "a\\b", "'; DROP TABLE items; --",
        ]
        try await withWorkplace { place in
            let job = try await place.enqueue(names.map { origin.url("/\($0)") })
            try await place.drain()
            #expect(try await place.progress(job).failed == 0)
        }
    }
}
