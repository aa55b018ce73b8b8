import Download
import Glibc
import Jobs
import PrefetchWorker
import SystemPackage
import TestSupport
import Testing

@Suite("A worker in trouble", .timeLimit(.minutes(15)), .enabled(if: Workplace.isBuilt, Workplace.notBuilt))
struct WorkerFaultTests {
    /// A download that is not cancelled shows as the suite's time limit.
    private static let longerThanTheTest = Duration.seconds(290)

    @Test func `A helper killed during an image is replaced, and the image is still made`()
        async throws
    {
        // Other bytes, since what was made of the same is used again.
        let origin = try LoopbackOrigin { .ok($0.path == "/first.jpg" ? Pictures.jpeg : Pictures.png) }
        try await withWorkplace(configure: { $0.drains = false }) { place in
            let stop = StopSignal()
            let first = try await place.enqueue([origin.url("/first.jpg")], variants: "small=8x8")
            async let summary = place.run(stop)
            #expect(try await eventually { try await place.progress(first).done == 1 })
            let helper = try #require(place.helpers().first)
            // Stopped, it holds the image for as long as it takes to kill it.
            #expect(kill(helper, SIGSTOP) == 0)
            let second = try await place.enqueue([origin.url("/second.png")], variants: "small=8x8")
            #expect(await eventually { origin.requestCount("/second.png") == 1 })
            try await Task.sleep(for: .milliseconds(300))
            #expect(try await place.progress(second).active == 1)
            #expect(kill(helper, SIGKILL) == 0)
            #expect(try await eventually { try await place.progress(second).done == 1 })
            #expect(place.helpers() != [helper])
            stop.request()
            #expect(try await summary.counts.done == 2)
            #expect(try await place.history(origin.url("/second.png")).attempts == 1)
        }
    }

    @Test func `A helper that can't be started uses up no try`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        try await withWorkplace(configure: { $0.helpers.executable = "/nowhere" }) { place in
            let job = try await place.enqueue([origin.url("/a.jpg")], variants: "small=8x8")
            let summary = try await place.drain()
            guard case .disk(let reason) = summary.end else {
                Issue.record("The run ended with \(summary.end).")
                return
            }
            #expect(reason.hasPrefix("A helper process can't be started: "))
            #expect(try await place.progress(job).queued == 1)
            #expect(try await place.history(origin.url("/a.jpg")).attempts == 0)
        }
    }

    @Test func `A stop releases waiting items, and finishes running downloads`() async throws {
        let isOpen = Shared(false)
        let origin = try LoopbackOrigin { _ in
            while !isOpen.withLock({ $0 }) { usleep(2_000) }
            return .ok(Pictures.jpeg)
        }
        try await withWorkplace(configure: {
            $0.downloads.concurrency = 2
            // On a slow machine it may take long until all is back.
            $0.downloads.drainPatience = .seconds(600)
            $0.downloads.silenceTimeout = .seconds(600)
            $0.downloads.totalTimeout = .seconds(600)
            $0.grace = 600_000
        }) { place in
            let stop = StopSignal()
            let job = try await place.enqueue((0..<20).map { origin.url("/\($0).jpg") })
            async let summary = place.run(stop)
            #expect(await eventually { origin.requests.count == 2 })
            stop.request()
            // Only when all that waited is back may what runs go on.
            #expect(try await eventually { try await place.progress(job).queued == 18 })
            isOpen.withLock { $0 = true }
            guard case .stopped = try await summary.end else {
                Issue.record("The run ended otherwise.")
                return
            }
            let progress = try await place.progress(job)
            #expect((progress.done, progress.queued, progress.active) == (2, 18, 0))
            #expect(origin.requests.count == 2)
            #expect(try await place.history(origin.url("/19.jpg")).attempts == 0)
        }
    }

    @Test(arguments: [1, 3])
    func `Items that are active when the grace is over are released with their tries unchanged`(_ count: Int)
        async throws
    {
        let origin = try LoopbackOrigin { _ in .silence }
        try await withWorkplace(configure: {
            $0.grace = 100
            $0.downloads.silenceTimeout = Self.longerThanTheTest
        }) { place in
            let stop = StopSignal()
            // The same URL, so that all wait for one download, whose items are all cancelled.
            let job = try await place.enqueue(Array(repeating: origin.url("/a.jpg"), count: count))
            async let summary = place.run(stop)
            #expect(await eventually { origin.requests.count == 1 })
            stop.request()
            #expect(try await summary.counts.released == count)
            #expect(try await place.progress(job).queued == count)
            #expect(try await place.history(origin.url("/a.jpg")).attempts == 0)
        }
    }

    /// Nothing but the cancelling ends a connection here: the origin waits for as long as the client stays, no timeout is
    /// shorter than the suite's limit, and the worker isn't asked to stop before.
    private static func waitForEver(_ configuration: inout WorkerConfiguration) {
        configuration.downloads.silenceTimeout = .seconds(7_200)
        configuration.downloads.totalTimeout = .seconds(7_200)
        configuration.drains = false
        configuration.grace = 100
    }

    @Test func `Cancelling a job stops its downloads`() async throws {
        let origin = try LoopbackOrigin { _ in .silence }
        try await withWorkplace(configure: Self.waitForEver) { place in
            let stop = StopSignal()
            let job = try await place.enqueue((0..<3).map { origin.url("/\($0).jpg") })
            async let summary = place.run(stop)
            #expect(await eventually { origin.requests.count == 3 && origin.openConnections == 3 })
            try await place.store.control.cancel(job: job)
            #expect(await eventually { origin.openConnections == 0 })
            #expect(try await place.progress(job).cancelled == 3)
            stop.request()
            _ = try await summary
        }
    }

    @Test func `Cancelling the last of two items of one URL ends the transfer`() async throws {
        let origin = try LoopbackOrigin { _ in .silence }
        try await withWorkplace(configure: Self.waitForEver) { place in
            let stop = StopSignal()
            let first = try await place.enqueue([origin.url("/a.jpg")])
            let second = try await place.enqueue([origin.url("/a.jpg")])
            async let summary = place.run(stop)
            #expect(
                try await eventually { try await place.progress(second).active == 1 && origin.openConnections == 1 })
            try await place.store.control.cancel(job: first)
            #expect(try await eventually { try await place.progress(first).cancelled == 1 })
            #expect(origin.openConnections == 1)
            try await place.store.control.cancel(job: second)
            #expect(await eventually { origin.openConnections == 0 })
            #expect(try await place.progress(second).cancelled == 1)
            #expect(origin.requests.count == 1)
            stop.request()
            _ = try await summary
        }
    }

    @Test func `A blob that is lost or damaged is fetched again`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        try await withWorkplace { place in
            let first = try await place.enqueue([origin.url("/a.jpg")])
            try await place.drain()
            let path = FilePath(place.configuration.cache).appending(try #require(try await place.item(first).path))
            #expect(unlink(path.string) == 0)
            let second = try await place.enqueue([origin.url("/a.jpg")])
            try await place.drain()
            #expect(try await place.progress(second).done == 1)
            #expect(origin.requests.count == 2)
            #expect(access(path.string, F_OK) == 0)
        }
    }

    @Test func `Too little disk space ends a drain before its first request`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        try await withWorkplace(configure: { $0.minimumFree = .max }) { place in
            let job = try await place.enqueue([origin.url("/a.jpg")])
            guard case .disk(let reason) = try await place.drain().end else {
                Issue.record("The run ended otherwise.")
                return
            }
            #expect(reason.contains("--min-free"))
            #expect(origin.requests.isEmpty)
            #expect(try await place.progress(job).queued == 1)
        }
    }

    @Test func `A database that can't be opened throws a clear error`() async throws {
        try await withWorkplace { place in
            let other = place.with { $0.database = place.folder.appending("nowhere/worker.db").string }
            let error = await #expect(throws: WorkerError.self) { _ = try await other.drain() }
            #expect(error?.code == .cannotCreate)
            try await place.drain()
        }
    }
}
