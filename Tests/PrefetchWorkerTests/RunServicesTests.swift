import ServiceLifecycle
import Testing

@testable import PrefetchWorker

/// How the services of a run end.
@Suite(.timeLimit(.minutes(1))) struct RunServicesTests {
    private let log = Shared<[String]>([])

    /// A service that ends when it is asked to.
    private func patient(_ name: String) -> @Sendable () async -> Void {
        { [log] in
            try? await gracefulShutdown()
            log.withLock { $0.append(Task.isCancelled ? "\(name) was cancelled" : name) }
        }
    }

    @Test func `Services end from the last to the first`() async {
        await RunServices([patient("first"), patient("second"), { [log] in log.withLock { $0.append("last") } }]).run()
        #expect(log.withLock { $0 } == ["last", "second", "first"])
    }

    @Test func `A service that ends before its turn cancels no other service`() async {
        let (signal, end) = AsyncStream<Void>.makeStream()
        let early: @Sendable () async -> Void = { [log] in
            for await _ in signal { break }
            log.withLock { $0.append("early") }
        }
        // Has the early one end while it is itself being ended.
        let slow: @Sendable () async -> Void = { [log] in
            try? await gracefulShutdown()
            end.yield()
            try? await Task.sleep(for: .milliseconds(100))
            log.withLock { $0.append(Task.isCancelled ? "slow was cancelled" : "slow") }
        }
        await RunServices([patient("first"), early, patient("third"), slow, {}]).run()
        #expect(log.withLock { $0 } == ["early", "slow", "third", "first"])
    }
}
