import Core
import TestSupport
import Testing

@testable import Jobs

@Suite("The list of lost files", .timeLimit(.minutes(15)))
struct LostFilesTests {
    @Test func `A lost file is queued again by the next worker if its finder was killed`() async throws {
        try await withQueue { queue in
            _ = try await queue.job(2)
            let items = try await queue.claim()
            for item in items { try await queue.end(item, item.completion(clock: queue.clock)) }
            try await queue.store.cache.forget(blobs: [ClaimedItem.hash(of: items[0].id)])
            // Only the database tells the next worker.
            let repairs = try await queue.store.maintenance.repairLostFiles()
            #expect(repairs.jobs.count == 1 && repairs.unknown == 0)
            #expect(try await queue.store.lostFiles.list(limit: 9) == [])
            #expect(try await queue.store.lostFiles.countOnTheirWay() > 0)
            #expect(try await queue.store.maintenance.repairLostFiles().jobs == [])
            let again = try await queue.claim()
            #expect(again.map(\.url) == [items[0].url])
            try await queue.end(again[0], again[0].completion(clock: queue.clock))
            #expect(try await queue.store.lostFiles.countOnTheirWay() == 0)
        }
    }

    @Test func `An evicted file is not lost, and a file that was lost long ago is given up`() async throws {
        try await withQueue { queue in
            _ = try await queue.job(3)
            let items = try await queue.claim()
            for item in items { try await queue.end(item, item.completion(clock: queue.clock)) }
            let page = try await queue.store.eviction.candidates(nil, by: .used).page
            _ = try await queue.store.eviction.markDying([try #require(page.first)])
            var removal = CacheEviction.Removal()
            removal.gone = try await queue.store.eviction.forgetDying(try await queue.store.eviction.dying().hashes)
                .forgotten
            #expect(try await queue.store.eviction.settle(removal).gone.count == 1)
            #expect(try await queue.store.lostFiles.list(limit: 9) == [])
            let left = page.dropFirst().map(\.hash)
            try await queue.store.cache.forget(blobs: Array(left))
            let lost = try await queue.store.lostFiles.list(limit: 99)
            #expect(Set(lost.map(\.blob)) == Set(left))
            try await queue.store.cache.pin([lost[0].key])
            try await queue.store.lostFiles.forget(foundBefore: .min)
            #expect(try await queue.store.lostFiles.list(limit: 99) == lost)
            try await queue.store.lostFiles.forget(foundBefore: .max)
            #expect(Set(try await queue.store.lostFiles.list(limit: 99).map(\.key)) == [lost[0].key])
        }
    }
}
