import ContentCache
import Core
import Jobs
import SystemPackage
import TestSupport
import Testing

@testable import PrefetchWorker

/// Reserved space in the cache for a body that arrives in pieces.
@Suite("Room for a body", .timeLimit(.minutes(15)))
struct CacheReservationTests {
    private func withBudget(_ limit: Int64, _ body: (CacheBudget) async throws -> Void) async throws {
        try await withTemporaryDirectory { folder in
            let depot = try await Depot(folder)
            let budget = CacheBudget(store: depot.store, collector: depot.collector { $0.maxBytes = limit })
            budget.use(by: depot.worker)
            try await body(budget)
            try await depot.store.close()
        }
    }

    /// Asks once, and waits for the answer where there is none yet.
    private func grow(_ room: CacheReservation, by count: Int) async throws -> Bool {
        let isAnswered = Shared(false)
        if try room.grow(by: count, onAnswer: { isAnswered.withLock { $0 = true } }) { return true }
        #expect(await eventually { isAnswered.withLock { $0 } })
        return false
    }

    @Test func `A reservation grows by what arrives, and holds no more than it needs`() async throws {
        try await withBudget(10_000) { budget in
            let room = try #require(budget.newReservation())
            #expect(try await !grow(room, by: 300))
            #expect(try await !grow(room, by: 2_000))
            #expect(try await grow(room, by: 2_000))
            #expect(room.bytes == 2_000)
            // Less than was asked for leaves the rest to others.
            #expect(try await !grow(room, by: 5_000))
            #expect(try await grow(room, by: 1_000))
            #expect(room.bytes == 3_000)
            #expect(budget.takeSpare(4_000))
        }
    }

    @Test func `A refused reservation gives back the space that was granted before`() async throws {
        try await withBudget(2_000) { budget in
            try await withBudgetTaken(budget, but: 400) {
                let room = try #require(budget.newReservation())
                #expect(try await !grow(room, by: 300))
                #expect(try await !grow(room, by: 800))
                let refusal = await #expect(throws: Failure.self) { try await grow(room, by: 800) }
                #expect(refusal?.failureClass == .diskFull && refusal?.isAtCacheLimit == true)
                #expect(refusal?.message.contains("--cache-max-size") == true, "\(refusal?.message ?? "")")
                #expect(room.bytes == 0)
                #expect(budget.takeSpare(300))
            }
        }
    }

    @Test func `A shortage lasts after ten seconds of refusals, also if the worker was idle before`()
        async throws
    {
        try await withTemporaryDirectory { folder in
            let depot = try await Depot(folder)
            let shortage = CacheShortage(depot.collector())
            // The worker was idle for an hour.
            #expect(!shortage.lasts(at: 3_600_000))
            for second in 0...10 {
                shortage.noteRefusal(at: 3_600_000 + Int64(second) * 1_000)
                #expect(!shortage.lasts(at: 3_600_000 + Int64(second) * 1_000))
            }
            #expect(shortage.lasts(at: 3_610_001))
            shortage.clear()
            #expect(!shortage.lasts(at: 3_620_000))
            // The second refusal comes an hour later.
            for second in [3_620, 7_220] as [Int64] { shortage.noteRefusal(at: second * 1_000) }
            #expect(!shortage.lasts(at: 7_220_000))
            shortage.noteHopeless()
            #expect(shortage.lasts(at: 7_220_000))
            try await depot.store.close()
        }
    }

    /// With all but so many bytes of 2,000 in use.
    private func withBudgetTaken(_ budget: CacheBudget, but left: Int64, _ body: () async throws -> Void) async throws {
        let others = try #require(budget.newReservation())
        #expect(try await !grow(others, by: Int(2_000 - left)))
        #expect(try await grow(others, by: Int(2_000 - left)))
        try await body()
        withExtendedLifetime(others) {}
    }
}
