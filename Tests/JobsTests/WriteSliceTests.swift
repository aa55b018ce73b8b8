import Core
import Glibc
import Synchronization
import Testing

@testable import Jobs

/// How long upkeep holds the write lock, and the rows that it leaves.
@Suite("Slices of upkeep", .timeLimit(.minutes(15)), .onSQLite)
struct WriteSliceTests {
    private let millisecond: Int64 = 1_000_000

    @Test func `A slow slice halves the size, and a quick full slice doubles it`() {
        var size = SliceSize(rows: 64, most: 256)
        size.took(nanoseconds: 26 * millisecond, handled: 64)
        #expect(size.rows == 32)
        size.took(nanoseconds: 20 * millisecond, handled: 32)
        #expect(size.rows == 32)
        size.took(nanoseconds: 2 * millisecond, handled: 32)
        #expect(size.rows == 64)
        // With less to do than it might, it says nothing of more.
        size.took(nanoseconds: 2 * millisecond, handled: 10)
        #expect(size.rows == 64)
        for _ in 0..<10 { size.took(nanoseconds: 1, handled: size.rows) }
        #expect(size.rows == 256)
        // What was slow with a few rows is to have fewer than those.
        size.took(nanoseconds: 300 * millisecond, handled: 8)
        #expect(size.rows == 4)
        for _ in 0..<10 { size.took(nanoseconds: 300 * millisecond, handled: size.rows) }
        #expect(size.rows == 1)
    }

    @Test func `A slice never has fewer rows than its minimum`() {
        var size = SliceSize(rows: 64, least: 8, most: 64)
        for _ in 0..<10 { size.took(nanoseconds: 300 * millisecond, handled: 3) }
        #expect(size.rows == 8)
    }

    @Test func `A slice whose time is up ends after the current row, and handles at least one row`() {
        let hour: Int64 = 3_600_000_000_000
        #expect(DatabaseGate.untilTimeIsUp(0..<1_000, within: hour) { _ in } == 1_000)
        #expect(DatabaseGate.untilTimeIsUp([Int](), within: hour) { _ in } == 0)
        #expect(DatabaseGate.untilTimeIsUp(0..<10) { _ in usleep(20_000) } == 1)
    }

    @Test func `Slow rows shrink a store's slices, and the longest duration is stored`() async throws {
        try await withQueue { queue in
            _ = try await queue.job(1)
            #expect(try await queue.store.database.longestSlices() == [:])
            queue.store.database.slices.took(.eviction, nanoseconds: 70 * millisecond, handled: 16)
            #expect(queue.store.database.slices.rows(.eviction) == 8)
            #expect(queue.store.database.slices.rows(.prune) == 64)
            try await queue.store.database.noteSlices()
            queue.store.database.slices.took(.eviction, nanoseconds: 1 * millisecond, handled: 8)
            try await queue.store.database.noteSlices()
            #expect(try await queue.store.database.longestSlices() == [.eviction: 70_000])
        }
    }

    @Test func `A job of many items is pruned in slices`() async throws {
        try await withQueue { queue in
            let job = try await queue.job(1_200)
            while case let items = try await queue.claim(256), !items.isEmpty {
                _ = try await queue.store.queue.finish(
                    items.map { ($0, .failed(Failure(.notCached, "It is not there."))) })
            }
            queue.clock.advance(1_000)
            let pruned = try await queue.store.maintenance.prune(endedBefore: queue.clock.steady)
            #expect((pruned.jobs, pruned.items) == (1, 1_200))
            #expect(try await queue.store.reports.progress(job: job) == nil)
            #expect(try await queue.store.database.longestSlices()[.prune] != nil)
        }
    }

    @Test func `Unused URLs are forgotten, even if other URLs share their file`() async throws {
        try await withQueue { queue in
            let hash = String(repeating: "a", count: 64)
            func end(_ urls: [String], isCached: Bool = false) async throws {
                _ = try await queue.store.queue.enqueue(NewJob(urls: urls))
                let items = try await queue.claim(urls.count)
                let group = items.map { item in
                    let source =
                        item.source
                        ?? SourceRecord(key: item.key, hash: hash, size: 10, isKept: true, fetchedAt: queue.clock.now)
                    let rendition = RenditionRecord(
                        name: "original", blob: hash, size: 10, format: "png", width: nil, height: nil)
                    return (
                        item,
                        ItemEnding.done(
                            Completion(
                                source: source, renditions: [rendition], newVariants: [],
                                origin: isCached ? .disk : .network))
                    )
                }
                _ = try await queue.store.queue.finish(group)
            }
            let urls = (0..<300).map { "https://shared.example/\($0).png" }
            try await end(urls)
            try await queue.store.cache.pin([urls[7]])
            queue.clock.advance(3_600_000)
            // Used again, without the network.
            try await end([urls[3]], isCached: true)
            var forgotten = 0
            let now = queue.clock.steady
            while case let count = try await queue.store.eviction.forgetKeys(usedBefore: now),
                count > 0
            {
                forgotten += count
            }
            #expect(forgotten == 298)
            #expect(try await queue.store.cache.entry(ofURL: urls[3], variant: "original") != nil)
            #expect(try await queue.store.cache.entry(ofURL: urls[7], variant: "original") != nil)
            #expect(try await queue.store.cache.entry(ofURL: urls[8], variant: "original") == nil)
            #expect(try await queue.store.cache.totals().blobs == 1)
        }
    }
}
