import ContentCache
import Core
import Foundation
import Glibc
import Jobs
import SystemPackage
import TestSupport
import Testing

@testable import PrefetchWorker

@Suite("Collecting the cache", .timeLimit(.minutes(15)))
struct CollectorTests {
    @Test func `Files that were not used for the maximum age are evicted, and no others`() async throws {
        let clock = Shared(WallTime(milliseconds: 1_800_000_000_000))
        try await withDepot(now: { clock.withLock { $0 } }) { depot in
            _ = try await depot.withPublisher { try await depot.add([1, 2], to: $0) }
            clock.withLock { $0 = $0 + 400_000 }
            _ = try await depot.withPublisher { try await depot.add([3], to: $0) }
            clock.withLock { $0 = $0 + 200_000 }
            let report = try await depot.collector { $0.maxAge = 500_000 }.collect()
            #expect((report.evictedBlobs, report.evictedBytes, report.orphans) == (2, 200, 0))
            #expect(try await depot.store.cache.totals().blobs == 1)
            #expect(try depot.bytesOnDisk() == 100)
            let never = try await depot.collector { $0.maxAge = -1 }.collect()
            #expect(never.evictedBlobs == 0)
            let now = try await depot.collector { $0.maxAge = 0 }.collect()
            #expect(now.evictedBlobs == 1)
        }
    }

    @Test func `Selected entries are removed with their bytes, pinned ones too, and no others`() async throws {
        try await withDepot { depot in
            _ = try await depot.withPublisher { try await depot.add([1, 2, 3], to: $0) }
            try await depot.store.cache.pin([Depot.url(2)])
            var selection = EntrySelection()
            selection.urls = [Depot.url(1), Depot.url(2), Depot.url(9)]
            let (entries, report) = try await depot.collector().remove(selection)
            #expect((entries, report.evictedBlobs, report.evictedBytes) == (2, 2, 200))
            #expect(try depot.bytesOnDisk() == 100)
            #expect(try await depot.store.cache.entry(ofURL: Depot.url(2), variant: "original") == nil)
            #expect(try await depot.store.cache.entry(ofURL: Depot.url(3), variant: "original") != nil)
            #expect(try await depot.collector().remove(selection).entries == 0)
        }
    }

    @Test func `A full cache is evicted down to the low-water mark, the oldest files first`() async throws {
        try await withDepot { depot in
            for number in 0..<10 { _ = try await depot.withPublisher { try await depot.add([number], to: $0) } }
            let unchanged = try await depot.collector { $0.maxBytes = 1_000 }.collect()
            #expect(unchanged.evictedBlobs == 0)
            let report = try await depot.collector { $0.maxBytes = 999 }.collect()
            #expect(report.evictedBlobs == 6)
            #expect(try await depot.store.cache.entry(ofURL: Depot.url(5), variant: "original") == nil)
            #expect(try await depot.store.cache.entry(ofURL: Depot.url(6), variant: "original") != nil)
            let all = try await depot.collector {
                $0.maxBytes = 10
                $0.lowWater = 0
            }.collect()
            #expect(all.evictedBlobs == 4)
        }
    }

    @Test func `The size limit holds at every moment, not only after a sweep`() async throws {
        try await withDepot { depot in
            let worst = Shared<Int64>(0)
            try await depot.withPublisher(limit: 5_000) { publisher in
                let watch = Task {
                    while !Task.isCancelled {
                        let bytes = try depot.bytesAtOneMoment()
                        worst.withLock { $0 = max($0, bytes) }
                        // Not the lock's only user.
                        try await Task.sleep(for: .milliseconds(2))
                    }
                }
                for start in stride(from: 0, to: 240, by: 30) {
                    let endings = try await depot.add(Array(start..<(start + 30)), to: publisher)
                    #expect(endings.count == 30)
                }
                watch.cancel()
                _ = await watch.result
            }
            #expect(worst.withLock { $0 } <= 5_000)
            #expect(try await depot.store.cache.totals().evictedBlobs > 150)
            #expect(try await depot.store.cache.totals().reservedBytes == 0)
        }
    }

    @Test func `A file larger than the cache's limit is refused, and the others are kept`() async throws {
        try await withDepot { depot in
            try await depot.withPublisher(limit: 1_000) { publisher in
                let big = try await depot.add([1], count: 1_001, to: publisher)
                guard case .failed(let failure)? = big.first else {
                    Issue.record("It ended with \(big).")
                    return
                }
                #expect(failure.failureClass == .tooLarge)
                let small = try await depot.add([2], count: 1_000, to: publisher)
                guard case .done? = small.first else {
                    Issue.record("It ended with \(small).")
                    return
                }
            }
        }
    }

    @Test func `Spare reserved space is used before an item is refused`() async throws {
        try await withDepot { depot in
            try await depot.withPublisher(limit: 1_000) { publisher in
                try await depot.store.cache.pin((0..<10).map(Depot.url))
                // Nine leave a little of the last hundred with the worker, to spare it a transaction.
                for numbers in [Array(0..<9), [9]] {
                    for ending in try await depot.add(numbers, to: publisher) {
                        guard case .done? = ending else {
                            Issue.record("It ended with \(ending).")
                            return
                        }
                    }
                }
            }
            #expect(try await depot.store.cache.totals().blobs == 10)
        }
    }

    @Test func `A cache full of pinned files sends items back`() async throws {
        try await withDepot { depot in
            try await depot.withPublisher(limit: 1_000) { publisher in
                try await depot.store.cache.pin((0..<10).map(Depot.url))
                _ = try await depot.add(Array(0..<10), to: publisher)
                let more = try await depot.add([11], to: publisher)
                guard case .release? = more.first else {
                    Issue.record("It ended with \(more).")
                    return
                }
            }
            #expect(try await depot.store.cache.totals().blobs == 10)
            let cleared = try await depot.collector().clear()
            #expect(cleared.evictedBlobs == 0)
        }
    }

    @Test func `Orphans of a crash are deleted after their grace, and not before`() async throws {
        try await withDepot { depot in
            try depot.leave([Array("left over".utf8)])
            let young = try await depot.collector().collect()
            #expect(young.orphans == 0)
            let old = try await depot.collector { $0.orphanGrace = 0 }.collect()
            #expect(old.orphans == 1)
            #expect(try depot.bytesOnDisk() == 0)
        }
    }

    @Test func `Rows that a crash left dying are removed, with or without their files`() async throws {
        try await withDepot { depot in
            _ = try await depot.withPublisher { try await depot.add([1, 2], to: $0) }
            let page = try await depot.store.eviction.candidates(nil, by: .used).page
            _ = try await depot.store.eviction.markDying(page)
            let hash = try #require(BlobHash(page[0].hash))
            let unused = try #require(try depot.cache.unused(hash))
            #expect(depot.cache.remove([unused], in: try depot.cache.turnToDelete()).compactMap { $0 }.isEmpty)
            let report = try await depot.collector().collect()
            #expect(report.evictedBlobs == 2)
        }
    }

    @Test func `The tree of links follows the cached files`() async throws {
        try await withDepot { depot in
            let keeper = LinkKeeper(store: depot.store, cache: depot.cache, logger: Depot.logger)
            _ = try await depot.withPublisher { try await depot.add([1], to: $0) }
            let report = try await keeper.turn(on: true)
            #expect((report.links, report.made) == (1, 1))
            _ = try await depot.withPublisher { try await depot.add([2], to: $0) }
            let name = try #require(
                LinkName.path(key: Depot.url(2), variant: "original", format: "jpeg"))
            #expect(name.hasSuffix(".jpg"))
            #expect(
                TestSupport.ProcessTable.contents(of: "\(depot.cache.directory)/\(name)") == Depot.bytes(2, count: 100))
            // One is lost, and one is left over.
            try depot.cache.links.removeLink(name)
            let hash = BlobHash(of: [1])
            try depot.cache.links.link(hash, key: "nobody", variant: "original", format: "jpeg")
            let repaired = try await keeper.repair()
            #expect((repaired.links, repaired.made, repaired.removed) == (2, 1, 1))
            _ = try await depot.collector { $0.maxAge = 0 }.collect()
            var left = 0
            try depot.cache.links.forEachLink { _ in left += 1 }
            #expect(left == 0)
        }
    }

    @Test func `A link's name is safe for every name of a variant`() {
        #expect(LinkName.path(key: "k", variant: "../x", format: "webp") == nil)
        #expect(LinkName.path(key: "k", variant: ".x", format: "webp") == nil)
        #expect(LinkName.path(key: "k", variant: "a/b", format: "webp") == nil)
        #expect(LinkName.path(key: "k", variant: "x", format: "we/bp") == nil)
        #expect(
            LinkName.path(key: "https://a.example/x.jpg", variant: "thumb", format: "webp")
                == "links/thumb/9d/9dfb0a41a9212867cab593b64abeab3a352f458c09c68f600220683d7de621c8.webp")
    }

    @Test func `The memory tier holds the last used sources within its limits, and can be emptied`() throws {
        try withTemporaryDirectory { folder in
            let cache = try ContentCache(directory: folder.appending("cache"))
            var limits = MemoryTier.Limits()
            limits.bytes = 1_000
            limits.count = 5
            let memory = MemoryTier(limits: limits)
            let blobs = try (0..<7).map { number in
                let file = try cache.makeFile()
                try file.descriptor.writeAll(Depot.bytes(number, count: 100))
                return try PendingBlob(reading: file)
            }
            for blob in blobs { memory.keep(blob.hash, blob.file) }
            #expect(memory.contents.count == 5)
            #expect(memory.contents.bytes == 500)
            #expect(memory.source(blobs[0].hash) == nil)
            #expect(try memory.source(blobs[6].hash)?.contents() == Depot.bytes(6, count: 100))
            let kept = try #require(memory.source(blobs[2].hash))
            #expect(throws: Errno.self) { try kept.descriptor.writeAll([1]) }
            memory.empty()
            #expect(memory.contents.count == 0)
        }
    }

    @Test func `Memory pressure of the kernel empties the memory tier`() async throws {
        try await withDepot { depot in
            let memory = MemoryTier(limits: MemoryTier.Limits())
            let blob = try depot.pending(Depot.bytes(1, count: 100))
            let pressure = depot.cache.directory.removingLastComponent().appending("pressure").string
            func say(_ percent: String) throws {
                let file = try FileDescriptor.open(
                    FilePath(pressure), .writeOnly, options: [.create, .truncate], permissions: .ownerReadWrite)
                try file.closeAfter {
                    _ = try file.writeAll("some avg10=\(percent) avg60=0.00 avg300=0.00 total=1\n".utf8)
                }
            }
            try say("9.50")
            memory.keep(blob.hash, blob.file)
            let collector = depot.collector()
            let keeper = CacheMaintenance(
                collector: collector, budget: CacheBudget(store: depot.store, collector: collector), memory: memory,
                plan: CacheMaintenance.Plan(every: 20, pressure: pressure), worker: depot.worker, logger: Depot.logger)
            let keeping = Task { await keeper.run() }
            // It has looked many times by then.
            try await Task.sleep(for: .milliseconds(300))
            #expect(memory.contents.count == 1)
            try say("10.50")
            #expect(await eventually { memory.contents.count == 0 })
            keeping.cancel()
            await keeping.value
        }
    }

    @Test func `Arriving bytes are reserved before they are written, and given back at the end`() async throws {
        try await withDepot { depot in
            _ = try await depot.withPublisher { try await depot.add(Array(0..<5), to: $0) }
            try await depot.store.cache.pin([Depot.url(0)])
            let collector = depot.collector { $0.maxBytes = 1_000 }
            let budget = CacheBudget(store: depot.store, collector: collector)
            #expect(budget.newReservation() == nil)
            budget.use(by: depot.worker)
            // As a download does, which pauses until there is an answer.
            func grow(_ room: CacheReservation?, by bytes: Int) async -> (any Error)? {
                while true {
                    let (answers, answer) = AsyncStream.makeStream(of: Void.self)
                    do {
                        if try room?.grow(by: bytes, onAnswer: { answer.finish() }) ?? true { return nil }
                    } catch {
                        return error
                    }
                    for await _ in answers {}
                }
            }
            var room = budget.newReservation()
            #expect(await grow(room, by: 500) == nil)
            #expect(try await depot.store.cache.totals().evictedBlobs == 0)
            // What is cached makes way, but for what is pinned.
            #expect(await grow(room, by: 400) == nil)
            let totals = try await depot.store.cache.totals()
            #expect(totals.bytes == 100 && totals.bytes + totals.reservedBytes <= 1_000)
            #expect(await grow(room, by: 200) as? Errno == .fileTooLarge)
            #expect((await grow(budget.newReservation(), by: 100) as? Failure)?.isAtCacheLimit == true)
            room = nil
            // The thread that used it last may let go of it a moment later.
            #expect(
                try await eventually {
                    try await budget.trim()
                    return try await depot.store.cache.totals().reservedBytes == 0
                })
        }
    }
}
