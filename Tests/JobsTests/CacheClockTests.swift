import Core
import Testing

@testable import Jobs

@Suite("The clock of the cache", .timeLimit(.minutes(15)), .onSQLite)
struct CacheClockTests {
    @Test func `The cache's clock doesn't jump`() async throws {
        func clock(_ boot: String, uptime: Int64, wall: Int64) -> CacheClock {
            CacheClock(boot: boot, uptime: uptime, wall: WallTime(milliseconds: wall), shift: 0)
        }
        let start = clock("a", uptime: 1_000, wall: 1_000_000)
        let tenYears: Int64 = 3_650 * 86_400_000
        #expect(start.moved(to: clock("a", uptime: 61_000, wall: 1_060_000)).shift == 0)
        let ahead = start.moved(to: clock("a", uptime: 61_000, wall: 1_060_000 + tenYears))
        #expect(ahead.shift == tenYears)
        #expect(ahead.moved(to: clock("a", uptime: 61_000, wall: 1_060_000)).shift == 0)
        // The time that a machine was off is unknown, but it was not ten years, and it was not negative.
        #expect(start.moved(to: clock("b", uptime: 1, wall: 1_000_000 + 86_400_000)).shift == 0)
        #expect(start.moved(to: clock("b", uptime: 1, wall: tenYears)).shift == tenYears - 1_000_000)
        #expect(start.moved(to: clock("b", uptime: 1, wall: 0)).shift == -1_000_000)
    }

    @Test func `A clock that is set ten years ahead makes no cached file old`() async throws {
        try await withQueue { queue in
            try await queue.store.database.keepCacheClock()
            _ = try await queue.fill(2, NamesOnly())
            let before = try await queue.store.database.cacheTime()
            queue.clock.advance(3_650 * 86_400_000)
            try await queue.store.database.keepCacheClock()
            let after = try await queue.store.database.cacheTime()
            #expect(after - before < 3_600_000)
            let week = after - 7 * 86_400_000
            #expect(try await queue.store.eviction.candidates(nil, by: .used, notAfter: week).page == [])
        }
    }
}
