import Core
import Testing

@testable import Jobs

/// The counters of workers.
@Suite("Counters") struct ActivityTests {
    private static func counts(_ ended: Int64 = 1) -> ActivityCounts {
        var counts = ActivityCounts()
        counts.add(ended, to: .ended, "done")
        counts.add(2, to: .ended, "failed http-404")
        counts.add(times: [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3], sum: .seconds(200), to: .fetching)
        return counts
    }

    @Test func `Counts that are added several times are summed`() async throws {
        try await withQueue { queue in
            for _ in 0..<3 { try await queue.store.activity.add(Self.counts(5)) }
            let counts = try await queue.store.activity.counts()
            #expect(counts.labels(of: .ended).map(\.label) == ["done", "failed http-404"])
            #expect(counts.labels(of: .ended).map(\.value) == [15, 6])
            #expect(counts.total(of: .ended) == 21)
            let (upTo, count, sum) = counts.histogram(.fetching)
            #expect((count, sum) == (12, 600))
            #expect(upTo.map(\.count) == [0] + [Int64](repeating: 3, count: 12))
        }
    }

    @Test(.onSQLite) func `The activity of the last hour comes in slots in order`() async throws {
        try await withQueue { queue in
            for minute in 0..<90 {
                try await queue.store.activity.add(Self.counts(Int64(minute + 1)))
                if minute < 89 { queue.clock.advance(60_000) }
            }
            let slots = try await queue.store.activity.lastHour()
            #expect(slots.count == 60 || slots.count == 61)
            #expect(slots.map(\.start) == slots.map(\.start).sorted())
            #expect(slots.last.map { $0.counts.labels(of: .ended).first?.value } == 90)
            #expect(try await queue.store.activity.counts().labels(of: .ended).first?.value == 90 * 91 / 2)
            // Older ones are gone from the table, too.
            #expect(try queue.shell.expect("SELECT count(DISTINCT slot) <= 62 FROM activity") == ["1"])
        }
    }

    /// Slots in the future, rows that SQL has written, and sums that would overflow.
    @Test func `Invalid rows neither stop the counters nor trap`() async throws {
        try await withTemporaryQueue { queue in
            _ = try queue.shell.expect(
                """
                INSERT INTO counters VALUES ('items_ended', 'done', 9007199254740992), ('of a later version', '', 7);
                INSERT INTO activity VALUES (99999999999999, 'requests', '2xx', 1), (-5, 'requests', '2xx', 1)
                """)
            _ = try queue.shell.expect(
                """
                WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
                INSERT INTO counters SELECT 'requests', 'odd ' || i, 9007199254740992 FROM n
                """)
            try await queue.store.activity.add(Self.counts(.max))
            let counts = try await queue.store.activity.counts()
            #expect(counts.labels(of: .ended).first?.value == 1 << 53)
            #expect(counts.total(of: .ended) == 1 << 53 && counts.total(of: .requests) == 1 << 53)
            #expect(try await queue.store.activity.lastHour().count == 1)
            #expect(try queue.shell.expect("SELECT count(*) FROM activity WHERE name = 'requests'") == ["0"])
        }
    }

    @Test func `A quantile is an upper estimate`() {
        var counts = ActivityCounts()
        #expect(counts.quantile(0.5, of: .fetching) == nil)
        counts.add(times: [50, 40, 9, 1], sum: .seconds(1), to: .fetching)
        #expect(counts.quantile(0.5, of: .fetching) == 0.005)
        #expect(counts.quantile(0.9, of: .fetching) == 0.01)
        #expect(counts.quantile(0.99, of: .fetching) == 0.025)
        #expect(counts.quantile(1, of: .fetching) == 0.05)
    }
}
