import Core
import Jobs
import SystemPackage
import TestSupport
import Testing

/// The machine's clock is set while items wait: leases, delays and blacklist entries keep their length.
@Suite("Clocks that jump", .timeLimit(.minutes(15)), .onSQLite)
struct ClockTests {
    static let years: Int64 = 10 * 365 * 86_400_000

    /// A worker's store and another worker's, whose clock can be set without time passing.
    private func withStores(_ body: (JobStore, JobStore, TestClock, TestClock) async throws -> Void) async throws {
        try await withTemporaryDirectory { folder in
            let (wall, uptime) = (TestClock(), TestClock())
            let path = folder.appending("worker.db").string
            let store = try JobStore(path: path, now: { wall.now }, uptime: { uptime.milliseconds })
            let other = try JobStore(path: path, now: { wall.now }, uptime: { uptime.milliseconds })
            try await store.database.keepCacheClock()
            try await body(store, other, wall, uptime)
            try await store.close()
            try await other.close()
        }
    }

    @Test(arguments: [years, -years])
    func `Leases, delays and blacklist entries keep their length when the clock jumps`(_ jump: Int64) async throws {
        try await withStores { store, other, wall, uptime in
            let worker = try await store.workers.register(host: "test", pid: 1)
            let urls = (0..<3).map { "https://clock.example/\($0).png" }
            _ = try await store.queue.enqueue(NewJob(urls: urls))
            let items = try await store.queue.claim(limit: 3, worker: worker).items
            let gone = Failure(.http(404), "It is gone.")
            let busy = Failure(.timeout, "It took too long.")
            _ = try await store.queue.finish([
                (items[0], .failed(gone)), (items[1], .retry(at: wall.now + 30_000, busy, blockingHost: false)),
            ])
            wall.advance(jump)
            #expect(try await other.workers.takeBackDeadLeases(myself: nil) == 0)
            #expect(try await store.queue.lost(of: [items[2]]) == [])
            #expect(try await other.queue.promoteDue() == 0)
            #expect(try await store.blacklist.entries().map(\.url) == [urls[0]])
            // People are told when it ends by the clock that they see now.
            let entry = try #require(try await store.blacklist.entries().first)
            #expect(entry.expiresAt - wall.now == 86_400_000)
            #expect(try await other.reports.history(ofURL: urls[1]).first?.runAt == wall.now + 30_000)
            // The jump is written down, and still nothing lapses.
            try await store.database.keepCacheClock()
            #expect(try await other.workers.takeBackDeadLeases(myself: nil) == 0)
            #expect(try await other.queue.promoteDue() == 0)
            // Time that passes counts.
            for clock in [wall, uptime] { clock.advance(31_000) }
            #expect(try await other.queue.promoteDue() == 1)
            #expect(try await other.workers.takeBackDeadLeases(myself: nil) == 0)
            for clock in [wall, uptime] { clock.advance(31_000) }
            #expect(try await other.workers.takeBackDeadLeases(myself: nil) == 1)
            for clock in [wall, uptime] { clock.advance(86_400_000) }
            #expect(try await store.blacklist.entries().isEmpty)
        }
    }

    @Test(arguments: [years, -years])
    func `A host stays blocked for the requested time when the clock jumps`(_ jump: Int64) async throws {
        try await withStores { store, other, wall, uptime in
            let worker = try await store.workers.register(host: "test", pid: 1)
            _ = try await store.queue.enqueue(NewJob(urls: ["https://clock.example/a.png"]))
            let item = try #require(try await store.queue.claim(limit: 1, worker: worker).items.first)
            let busy = Failure(.http(503), "It is busy.")
            _ = try await store.queue.finish([(item, .retry(at: wall.now + 3_600_000, busy, blockingHost: true))])
            wall.advance(jump)
            // What people are told is by the machine's clock.
            let expected = ["clock.example": wall.now + 3_600_000]
            #expect(try await other.hosts.blocked() == expected)
            try await store.database.keepCacheClock()
            try await store.workers.heartbeat(worker: worker, host: "test", pid: 2)
            #expect(try await other.hosts.blocked() == expected)
            #expect(try await other.hosts.statuses().map(\.notBefore) == [wall.now + 3_600_000])
            for clock in [wall, uptime] { clock.advance(3_600_001) }
            #expect(try await other.hosts.blocked().isEmpty)
            #expect(try await other.hosts.memories().isEmpty)
        }
    }

    @Test func `An item that is claimed after a jump of the clock keeps its lease`() async throws {
        try await withStores { store, other, wall, uptime in
            let worker = try await store.workers.register(host: "test", pid: 1)
            _ = try await store.queue.enqueue(NewJob(urls: ["https://clock.example/a.png"]))
            wall.advance(Self.years)
            let items = try await store.queue.claim(limit: 1, worker: worker).items
            wall.advance(-Self.years)
            try await store.workers.heartbeat(worker: worker, host: "test", pid: 2)
            for clock in [wall, uptime] { clock.advance(59_000) }
            #expect(try await other.workers.takeBackDeadLeases(myself: nil) == 0)
            #expect(try await store.queue.lost(of: items) == [])
        }
    }
}
