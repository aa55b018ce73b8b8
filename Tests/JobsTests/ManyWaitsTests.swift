import Core
import GRDBSQLite
import Testing

@testable import Jobs

/// Counting the items that wait for each host takes work that doesn't grow with their number.
@Suite("Very many delayed items", .serialized, .timeLimit(.minutes(15)), .onSQLite)
struct ManyWaitsTests {
    /// Delayed items as failures would have left them, written in one go.
    private func delay(_ count: Int, hosts: Int, job: JobID, until: SteadyTime, _ queue: Queue) async throws {
        try await queue.corrupt(
            """
            WITH RECURSIVE numbers (n) AS (VALUES (0) UNION ALL SELECT n + 1 FROM numbers WHERE n < \(count - 1))
            INSERT INTO items (job, url, state, run_at, waits_for, class, attempts, message)
                SELECT \(job), 'https://h' || (n % \(hosts)) || '.example/' || n, 'delayed',
                    \(until.milliseconds) - n % 1000,
                    'h' || (n % \(hosts)) || '.example', 'http-503', 1, 'It is busy.' FROM numbers;
            UPDATE jobs SET delayed = delayed + \(count), total = total + \(count) WHERE id = \(job)
            """)
    }

    /// Thousands of steps: what ten thousand items take, and no more; a million would take five times as many at least.
    private let most: Int32 = 1_000

    @Test(arguments: [1, 2_000, 300_000]) func `The waits of a million items cost no more than those of ten thousand`(
        _ hosts: Int
    )
        async throws
    {
        try await withQueue { queue in
            let job = try await queue.job()
            let other = try await queue.job()
            let last = try await queue.store.database.read { try queue.store.database.reading.time(in: $0) } + 600_000
            try await delay(1_000_000, hosts: hosts, job: job, until: last, queue)
            let waits = try await queue.store.hosts.waits()
            #expect(waits.count == min(hosts, 1_000))
            #expect(waits.allSatisfy { $0.isMore && $0.reason == "It is busy." && $0.items > 0 })
            #expect(waits.reduce(0) { $0 + $1.items } >= 1_000)
            // No item waits longer than is said.
            let longest = queue.clock.now + 600_000
            #expect(waits.allSatisfy { $0.until == longest })
            #expect(try await queue.steps { _ = try await queue.store.hosts.waits() } < most)
            #expect(try await queue.steps { _ = try await queue.store.hosts.waits(job: job) } < most)
            #expect(try await queue.steps { _ = try await queue.store.reports.progress() } < most)
            #expect(try await queue.steps { _ = try await queue.store.reports.backlog() } < most)
            #expect(try await queue.steps { _ = try await queue.store.reports.waits(of: queue.worker) } < 2 * most)
            // Of one job among others, too.
            try await delay(10, hosts: 2, job: other, until: last, queue)
            #expect(try await queue.steps { _ = try await queue.store.hosts.waits(job: job) } < most)
            let few = try await queue.store.hosts.waits(job: other)
            #expect(few.map(\.items) == [5, 5] && few.allSatisfy { !$0.isMore })
        }
    }

    @Test func `Waits up to maxSeen are counted exactly`() async throws {
        try await withQueue { queue in
            let job = try await queue.job()
            let last = try await queue.store.database.read { try queue.store.database.reading.time(in: $0) } + 600_000
            try await delay(DelayedWaits.maxSeen, hosts: 4, job: job, until: last, queue)
            let waits = try await queue.store.hosts.waits()
            #expect(waits.map(\.items) == [2_500, 2_500, 2_500, 2_500])
            #expect(waits.allSatisfy { !$0.isMore })
        }
    }
}
