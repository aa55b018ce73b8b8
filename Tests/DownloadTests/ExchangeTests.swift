import Testing

@testable import Download

/// What the thread is told to do, without a thread.
@Suite(.timeLimit(.minutes(15))) struct ExchangeTests {
    private func withExchange(
        _ configure: (inout DownloadConfiguration) -> Void, _ body: (Exchange) throws -> Void,
    ) throws {
        var configuration = DownloadConfiguration()
        configure(&configuration)
        let exchange = Exchange(configuration: configuration, bell: nil)
        try body(exchange)
        exchange.close()
        exchange.closed()
    }

    private func ticket(_ id: UInt64, _ host: String) throws -> Ticket {
        let url = try DownloadURL("http://\(host)/\(id)", maxBytes: 100)
        return Ticket(
            id: id, request: DownloadRequest(url: url.text), hop: Hop(url: url), beginning: url, onRedirect: { _ in },
            answer: { _ in })
    }

    /// Asks for work at times that a test makes up, all after what an idle queue gathers for.
    private func work(_ exchange: Exchange, after seconds: Double, _ start: ContinuousClock.Instant) -> Exchange.Work {
        let now = start + .seconds(seconds)
        let work = exchange.takeWork(now: now)
        if let next = work.nextRelease { #expect(next > now) }
        return work
    }

    @Test func aHeldHostWakesTheThreadOnceAlthoughAllPlacesAreTaken() throws {
        try withExchange {
            $0.concurrency = 2
            $0.rate = 5
            $0.burst = 1
        } _: { exchange in
            for id in UInt64(1)...8 { exchange.submit(try ticket(id, "a.example"), isCancelled: { false }) }
            let start = ContinuousClock.now
            #expect(work(exchange, after: 1, start).starts.count == 1)
            #expect(work(exchange, after: 1.1, start).nextRelease != nil)
            #expect(work(exchange, after: 1.3, start).starts.count == 1)
            // Both run: the pause after the second is over, and nothing can start.
            #expect(work(exchange, after: 2, start).nextRelease == nil)
            #expect(work(exchange, after: 3, start).starts.isEmpty)
        }
    }

    @Test func aRetryAfterThatRunsOutWakesTheThreadOnceAlthoughAllPlacesAreTaken() throws {
        try withExchange {
            $0.concurrency = 2
        } _: { exchange in
            for id in UInt64(1)...2 { exchange.submit(try ticket(id, "slow.example"), isCancelled: { false }) }
            let start = ContinuousClock.now
            #expect(work(exchange, after: 1, start).starts.count == 2)
            exchange.submit(try ticket(3, "b.example"), isCancelled: { false })
            exchange.block("b.example", until: start + .seconds(5), .asked)
            #expect(work(exchange, after: 2, start).nextRelease == start + .seconds(5))
            #expect(work(exchange, after: 6, start).nextRelease == nil)
            #expect(exchange.blocked("b.example") == nil)
        }
    }
}
