import Testing

@testable import Jobs

@Suite("The time in quarantine", .timeLimit(.minutes(15)), .onSQLite)
struct QuarantineClockTests {
    private static let day: Int64 = 86_400_000

    @Test func `The time in quarantine counts from the first look, and a jump of the clock adds none`() async throws {
        try await withQueue { queue in
            let store = queue.store
            try await store.database.keepCacheClock()
            #expect(try await store.eviction.expired(inQuarantine: ["a"], after: Self.day) == [])
            // The test's clock moves, and the kernel's uptime doesn't: a jump.
            queue.clock.advance(3_650 * Self.day)
            #expect(try await store.eviction.expired(inQuarantine: ["a", "b"], after: Self.day) == [])
            try await store.database.keepCacheClock()
            #expect(try await store.eviction.expired(inQuarantine: ["a", "b"], after: Self.day) == [])
            queue.clock.advance(-7_300 * Self.day)
            #expect(try await store.eviction.expired(inQuarantine: ["a", "b", "c"], after: Self.day) == [])
            // And nothing is too young for no age at all.
            #expect(try await store.eviction.expired(inQuarantine: ["a", "d"], after: 0) == ["a", "d"])
            // What was gone in between is new.
            try await store.database.write { db in try db.script("UPDATE quarantined SET seen_at = 1") }
            #expect(try await store.eviction.expired(inQuarantine: ["b", "d"], after: Self.day) == ["d"])
        }
    }

    @Test func `A name in quarantine that is stored as text and as bytes counts as one name`() async throws {
        try await withQueue { queue in
            try await queue.store.database.write { db in
                try db.script("INSERT INTO quarantined VALUES ('a', 1), (x'61', 2)")
            }
            #expect(try await queue.store.eviction.expired(inQuarantine: ["a"], after: 0) == ["a"])
        }
    }
}
