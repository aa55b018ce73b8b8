import Core
import TestSupport
import Testing

@testable import Download

/// If other hosts hold all slots for long, a host without one gets a guest slot.
@Suite(.timeLimit(.minutes(15))) struct GuestTests {
    private func withExchange(
        concurrency: Int, unconsumed: Int = 32, _ body: (DownloadScheduler) throws -> Void,
    ) rethrows {
        var configuration = DownloadConfiguration()
        configuration.concurrency = concurrency
        configuration.maxUnconsumedBodies = unconsumed
        let scheduler = DownloadScheduler(configuration: configuration, bell: nil)
        try body(scheduler)
        scheduler.close()
        scheduler.closed()
    }

    private func submit(_ ids: ClosedRange<UInt64>, to host: String, _ scheduler: DownloadScheduler) throws {
        for id in ids {
            let url = try DownloadURL("http://\(host)/\(id)", maxBytes: 100)
            let queued = QueuedTransfer(
                id: id, request: DownloadRequest(url: url.text, rank: Int64(id)), hop: Hop(url: url), beginning: url,
                onRedirect: { _ in }, answer: { _ in })
            scheduler.submit(queued, isCancelled: { false })
        }
    }

    /// What starts at a time that a test makes up, all after what an idle queue gathers for.
    private func starts(_ scheduler: DownloadScheduler, at seconds: Double, _ start: ContinuousClock.Instant)
        -> [UInt64]
    {
        scheduler.takeWork(now: start + .seconds(1 + seconds)).starts.map(\.id)
    }

    @Test func guestSlotsOpenAfterASecondAndAreHalfAsMany() throws {
        try withExchange(concurrency: 4) { scheduler in
            let start = ContinuousClock.now
            try submit(1...20, to: "slow.example", scheduler)
            #expect(starts(scheduler, at: 0, start) == [1, 2, 3, 4])
            for host in UInt64(1)...4 { try submit((100 * host)...(100 * host + 1), to: "\(host).example", scheduler) }
            #expect(starts(scheduler, at: 0.9, start) == [])
            // One each, and no more of the host that keeps them waiting.
            #expect(starts(scheduler, at: 1, start) == [100, 200])
            #expect(starts(scheduler, at: 2, start) == [])
            // The host that comes after a guest does not wait again.
            scheduler.finished(100, .answered, withBody: false)
            #expect(starts(scheduler, at: 2.1, start) == [101])
            scheduler.finished(200, .answered, withBody: false)
            scheduler.finished(101, .answered, withBody: false)
            #expect(starts(scheduler, at: 2.2, start) == [201, 300])
            // A place that comes free ends it: there are as many as before, and who has waited is first.
            for id in [1, 201, 300] as [UInt64] { scheduler.finished(id, .answered, withBody: false) }
            #expect(starts(scheduler, at: 2.3, start) == [301])
            #expect(starts(scheduler, at: 3.2, start) == [])
            #expect(starts(scheduler, at: 3.3, start) == [400])
        }
    }

    @Test func noGuestSlotOpensWhileSlotsBecomeFree() throws {
        try withExchange(concurrency: 2) { scheduler in
            let start = ContinuousClock.now
            try submit(1...20, to: "a.example", scheduler)
            #expect(starts(scheduler, at: 0, start) == [1, 2])
            try submit(21...40, to: "b.example", scheduler)
            #expect(starts(scheduler, at: 0.6, start) == [])
            scheduler.finished(1, .answered, withBody: false)
            #expect(starts(scheduler, at: 0.9, start) == [21])
            try submit(41...41, to: "c.example", scheduler)
            #expect(starts(scheduler, at: 1.5, start) == [])
            scheduler.finished(2, .answered, withBody: false)
            #expect(starts(scheduler, at: 1.8, start).count == 1)
        }
    }

    @Test func guestsCountAgainstUnconsumedBodies() throws {
        try withExchange(concurrency: 2, unconsumed: 3) { scheduler in
            let start = ContinuousClock.now
            try submit(1...2, to: "a.example", scheduler)
            #expect(starts(scheduler, at: 0, start) == [1, 2])
            try submit(3...4, to: "b.example", scheduler)
            #expect(starts(scheduler, at: 1, start) == [3])
            scheduler.finished(3, .answered, withBody: true)
            #expect(starts(scheduler, at: 2, start) == [])
            scheduler.consumed()
            #expect(starts(scheduler, at: 3, start) == [4])
        }
    }

    /// Endless slow bodies in all slots, and a host that answers.
    @Test func aTricklingHostDelaysNoOtherHost() async throws {
        let origin = try LoopbackOrigin { request in
            request.path.hasPrefix("/slow") ? .drip(bytesPerSecond: 400, of: 10_000_000) : .ok([1])
        }
        try await withDownloader(configure: { $0.concurrency = 2 }) { downloader in
            let slow = (0..<4).map { number in
                Task { await downloader.download(DownloadRequest(url: origin.url("/slow\(number)"), priority: 9)) }
            }
            #expect(await eventually { origin.requests.count == 2 })
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<10 {
                    let url = "http://localhost:\(origin.port)/\(number)"
                    group.addTask { #expect(await downloader.download(DownloadRequest(url: url)).file != nil) }
                }
            }
            #expect(origin.maxSimultaneous(under: "/slow") == 2)
            for task in slow { task.cancel() }
            for task in slow { #expect(await task.value.code == .cancelled) }
        }
    }
}
