import Download
import Glibc
import Jobs
import PrefetchWorker
import TestSupport
import Testing

/// Limits belong to the database: its workers keep to them together.
@Suite(
    "Limits of several workers", .serialized, .timeLimit(.minutes(15)),
    .enabled(if: Workplace.isBuilt, Workplace.notBuilt))
struct SharedLimitsTests {
    private static func slow() throws -> LoopbackOrigin {
        try LoopbackOrigin { .delayed(milliseconds: 20, then: .ok(Pictures.jpeg + Array($0.path.utf8))) }
    }

    @Test(arguments: [(2, 10), (10, 3), (1, 10)])
    func `Two workers together have no more requests in flight than the limits allow`(
        _ perHost: Int, _ concurrency: Int
    )
        async throws
    {
        let origin = try Self.slow()
        try await withWorkplace(configure: {
            $0.downloads.perHost = perHost
            $0.downloads.concurrency = concurrency
        }) { (place) async throws in
            let job = try await place.enqueue((0..<400).map { origin.url("/\($0)") })
            async let one = place.drain()
            #expect(await eventually { origin.requests.count >= 3 })
            async let two = place.drain()
            let counts = try await [one, two].map(\.counts)
            #expect(try await place.progress(job).ended == 400)
            #expect(origin.maxSimultaneous <= min(perHost, concurrency))
            #expect(counts.reduce(0) { $0 + $1.done } == 400)
        }
    }

    @Test func `A worker gets the slots of a stopped worker within seconds`() async throws {
        let origin = try Self.slow()
        try await withWorkplace(configure: {
            $0.downloads.perHost = 4
            $0.downloads.concurrency = 4
            $0.drains = false
        }) { (place) async throws in
            let stops = [StopSignal(), StopSignal()]
            async let one = place.run(stops[0])
            async let two = place.run(stops[1])
            let job = try await place.enqueue((0..<2_000).map { origin.url("/\($0)") })
            #expect(await eventually { origin.requests.count >= 40 })
            stops[0].request()
            _ = try await one
            let before = origin.requests.count
            #expect(await eventually { origin.requests.count >= before + 100 })
            #expect(origin.maxSimultaneous <= 4)
            // More than its half.
            #expect(try await eventually { try await place.store.hosts.statuses().first?.running ?? 0 > 2 })
            try await place.store.control.cancel(job: job)
            stops[1].request()
            _ = try await two
        }
    }
}
