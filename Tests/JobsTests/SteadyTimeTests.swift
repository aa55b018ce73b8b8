import Core
import SystemPackage
import TestSupport
import Testing

@testable import Jobs

/// Times in the views, and how long ended jobs are kept, while the machine's clock is set.
@Suite("Time that SQL tells", .timeLimit(.minutes(15)), .onSQLite)
struct SteadyTimeTests {
    /// A store whose clock is ahead of the machine's, by which the shell goes.
    private struct Ahead: Sendable {
        let store: JobStore
        let shell: Shell
        let offset: TestClock
        let uptime: TestClock

        func listed() throws -> [String] { try shell.expect("SELECT url FROM blacklist") }
    }

    private func withListedURL(ahead: Int64, _ body: (Ahead) async throws -> Void) async throws {
        try await withTemporaryDirectory { folder in
            let (offset, uptime) = (TestClock(), TestClock())
            offset.advance(ahead - offset.milliseconds)
            let path = folder.appending("worker.db")
            let store = try JobStore(
                path: path.string, now: { DatabaseGate.wallClock() + offset.milliseconds },
                uptime: { uptime.milliseconds })
            try await store.database.keepCacheClock()
            let worker = try await store.workers.register(host: "test", pid: 1)
            _ = try await store.queue.enqueue(NewJob(urls: ["https://a.example/a.jpg"]))
            let item = try #require(try await store.queue.claim(limit: 1, worker: worker).items.first)
            _ = try await store.queue.finish([(item, .failed(Failure(.http(404), "It is gone.")))])
            try await body(Ahead(store: store, shell: Shell(database: path.string), offset: offset, uptime: uptime))
            try await store.close()
        }
    }

    @Test(
        .enabled(if: Shell.isThere, Shell.missing),
        arguments: [-ClockTests.years, 0, ClockTests.years])
    func `The view of the blacklist lists an entry for as long as the entry is in force`(_ ahead: Int64) async throws {
        try await withListedURL(ahead: ahead) { place in
            let listed = ["https://a.example/a.jpg"]
            // As if it had been set by years since: the shell goes by the machine's own.
            #expect(try place.listed() == listed)
            // A worker has noticed.
            place.offset.advance(-ahead)
            try await place.store.database.keepCacheClock()
            #expect(try place.listed() == listed)
            #expect(try await place.store.blacklist.entries().map(\.url) == listed)
            // Two days have passed, whatever the machine's clock says of them.
            place.uptime.advance(2 * 86_400_000)
            try await place.store.database.keepCacheClock()
            #expect(try await place.store.blacklist.entries().isEmpty)
            #expect(try place.listed() == [])
        }
    }

    @Test(.enabled(if: Shell.isThere, Shell.missing))
    func `The view of the blacklist uses the machine's clock if the stored clock is unreadable`() async throws {
        try await withListedURL(ahead: 0) { place in
            try await place.store.cache.setProperty("clock", to: "what time is it?")
            #expect(try place.listed() == ["https://a.example/a.jpg"])
            try place.shell.expect("UPDATE blacklist_entries SET expires_at = 1")
            #expect(try place.listed() == [])
        }
    }

    @Test(arguments: [ClockTests.years, -ClockTests.years])
    func `Ended jobs are kept for a month when the clock jumps`(_ jump: Int64) async throws {
        try await withTemporaryDirectory { folder in
            let (wall, uptime) = (TestClock(), TestClock())
            let store = try JobStore(
                path: folder.appending("worker.db").string, now: { wall.now }, uptime: { uptime.milliseconds })
            let month: Int64 = 30 * 86_400_000
            func prune() async throws -> Int {
                try await store.maintenance.prune(endedBefore: store.database.cacheTime() - month).jobs
            }
            func end() async throws {
                let worker = try await store.workers.register(host: "test", pid: 1)
                _ = try await store.queue.enqueue(NewJob(urls: ["https://a.example/a.jpg"], options: "retry-failed"))
                let item = try #require(try await store.queue.claim(limit: 1, worker: worker).items.first)
                _ = try await store.queue.finish([(item, .failed(Failure(.notCached, "It is not there.")))])
            }
            try await store.database.keepCacheClock()
            try await end()
            wall.advance(jump)
            #expect(try await prune() == 0)
            try await store.database.keepCacheClock()
            #expect(try await prune() == 0)
            for clock in [wall, uptime] { clock.advance(month / 2) }
            try await store.database.keepCacheClock()
            try await end()
            // The one from before the jump, and then the one from after it.
            for clock in [wall, uptime] { clock.advance(month / 2 + 1_000) }
            #expect(try await prune() == 1)
            for clock in [wall, uptime] { clock.advance(month / 2 + 1_000) }
            #expect(try await prune() == 1)
            try await store.close()
        }
    }

    @Test func `The clock is stored after a jump, and not otherwise`() async throws {
        try await withTemporaryDirectory { folder in
            let (wall, uptime) = (TestClock(), TestClock())
            let store = try JobStore(
                path: folder.appending("worker.db").string, now: { wall.now }, uptime: { uptime.milliseconds })
            try await store.database.keepCacheClock()
            let noted = try await store.cache.property("clock")
            let first = try await store.database.keepCacheClock(unlessStill: nil)
            for clock in [wall, uptime] { clock.advance(5_000) }
            #expect(try await store.database.keepCacheClock(unlessStill: first) == first)
            #expect(try await store.cache.property("clock") == noted)
            wall.advance(86_400_000)
            #expect(try await store.database.keepCacheClock(unlessStill: first) == first + 86_400_000)
            #expect(try await store.cache.property("clock") != noted)
            try await store.close()
        }
    }

    @Test(.enabled(if: Shell.isThere, Shell.missing))
    func `The view of waiting items corrects its times by the clock's shift`() async throws {
        try await withQueue { queue in
            _ = try await queue.job(1)
            let item = try #require(try await queue.claim().first)
            let busy = Failure(.timeout, "It took too long.")
            try await queue.end(item, .retry(at: queue.clock.now + 30_000, busy, blockingHost: false))
            let seconds = "SELECT strftime('%s', until) FROM waiting;"
            let lines = try queue.shell.run(
                """
                \(seconds)
                INSERT OR REPLACE INTO cache_properties (name, value)
                    VALUES ('clock', json_object('boot', 'b', 'uptime', 0, 'wall', 0, 'shift', 3600000));
                \(seconds)
                """
            ).lines.compactMap { Int64($0) }
            try #require(lines.count == 2)
            #expect(lines[1] - lines[0] == 3_600)
        }
    }
}
