import Testing

@testable import Download

/// The scheduler's instructions for the transfer thread, without a thread.
@Suite(.timeLimit(.minutes(15))) struct ExchangeTests {
    private func withExchange(
        _ configure: (inout DownloadConfiguration) -> Void, _ body: (DownloadScheduler) throws -> Void,
    ) throws {
        var configuration = DownloadConfiguration()
        configure(&configuration)
        let scheduler = DownloadScheduler(configuration: configuration, bell: nil)
        try body(scheduler)
        scheduler.close()
        scheduler.closed()
    }

    private func queued(_ id: UInt64, _ host: String) throws -> QueuedTransfer {
        let url = try DownloadURL("http://\(host)/\(id)", maxBytes: 100)
        return QueuedTransfer(
            id: id, request: DownloadRequest(url: url.text), hop: Hop(url: url), beginning: url, onRedirect: { _ in },
            answer: { _ in })
    }

    /// Asks for work at times that a test makes up, all after what an idle queue gathers for.
    private func work(_ scheduler: DownloadScheduler, after seconds: Double, _ start: ContinuousClock.Instant)
        -> DownloadScheduler.Work
    {
        let now = start + .seconds(seconds)
        let work = scheduler.takeWork(now: now)
        if let next = work.nextRelease { #expect(next > now) }
        return work
    }

    @Test func aHeldHostWakesTheThreadOnceIfAllSlotsAreTaken() throws {
        try withExchange {
            $0.concurrency = 2
            $0.rate = 5
            $0.burst = 1
        } _: { scheduler in
            for id in UInt64(1)...8 { scheduler.submit(try queued(id, "a.example"), isCancelled: { false }) }
            let start = ContinuousClock.now
            #expect(work(scheduler, after: 1, start).starts.count == 1)
            #expect(work(scheduler, after: 1.1, start).nextRelease != nil)
            #expect(work(scheduler, after: 1.3, start).starts.count == 1)
            // Both run: the pause after the second is over, and nothing can start.
            #expect(work(scheduler, after: 2, start).nextRelease == nil)
            #expect(work(scheduler, after: 3, start).starts.isEmpty)
        }
    }

    @Test func aRetryAfterThatEndsWakesTheThreadOnceIfAllSlotsAreTaken() throws {
        try withExchange {
            $0.concurrency = 2
        } _: { scheduler in
            for id in UInt64(1)...2 { scheduler.submit(try queued(id, "slow.example"), isCancelled: { false }) }
            let start = ContinuousClock.now
            #expect(work(scheduler, after: 1, start).starts.count == 2)
            scheduler.submit(try queued(3, "b.example"), isCancelled: { false })
            scheduler.block("b.example", until: start + .seconds(5), .retryAfter)
            #expect(work(scheduler, after: 2, start).nextRelease == start + .seconds(5))
            #expect(work(scheduler, after: 6, start).nextRelease == nil)
            #expect(scheduler.blocked("b.example") == nil)
        }
    }
}
