import Core
import Synchronization
import SystemPackage
import Testing

@testable import Jobs

@Suite("Eviction", .timeLimit(.minutes(15)))
struct EvictionTests {
    @Test func `The cache's totals follow published and evicted files`() async throws {
        try await withQueue { queue in
            let files = NamesOnly()
            #expect(try await queue.store.cache.totals().blobs == 0)
            _ = try await queue.fill(3, files)
            let full = try await queue.store.cache.totals()
            #expect((full.blobs, full.bytes, full.misses, full.hits) == (3, 30, 3, 0))
            try await queue.markAll()
            #expect(try await queue.removeAll(files) == 3)
            let empty = try await queue.store.cache.totals()
            #expect((empty.blobs, empty.bytes, empty.evictedBlobs, empty.evictedBytes) == (0, 0, 3, 30))
            #expect(files.names.withLock { $0.isEmpty })
        }
    }

    @Test func `A file that can't be deleted does not stop the eviction of others`() async throws {
        try await withQueue { queue in
            let files = NamesOnly()
            let stuck = ClaimedItem.hash(of: try await queue.fill(5, files)[1].id)
            files.stuck.withLock { $0 = stuck }
            try await queue.markAll()
            var removal = CacheEviction.Removal()
            repeat {
                let slice = try await queue.removeDying(files)
                removal.gone += slice.gone
                removal.stuck += slice.stuck
                removal.trouble = slice.trouble ?? removal.trouble
                removal.isUnfinished = slice.isUnfinished
            } while removal.isUnfinished
            #expect((removal.gone.count, removal.stuck, removal.trouble) == (4, [stuck], "It is held."))
            #expect(try await queue.store.cache.totals().blobs == 1)
            // It isn't tried over and over, but the next time.
            #expect(try await queue.removeDying(files).stuck == [])
            try await queue.store.eviction.releaseStuck()
            #expect(try await queue.removeDying(files).stuck == [stuck])
            files.stuck.withLock { $0 = nil }
            try await queue.store.eviction.releaseStuck()
            #expect(try await queue.removeAll(files) == 1)
            #expect(try await queue.store.cache.totals().blobs == 0)
        }
    }

    @Test func `The oldest files are the first candidates, and sources are listed apart from variants`() async throws {
        try await withQueue { queue in
            let items = try await queue.fill(3, NamesOnly())
            #expect(try await queue.candidates() == items.map { ClaimedItem.hash(of: $0.id) })
            #expect(try await queue.candidates(.sources).count == 3)
            #expect(try await queue.candidates(.variants) == [])
        }
    }

    @Test func `A pinned file is never evicted, not even if it was marked before`() async throws {
        try await withQueue { queue in
            let files = NamesOnly()
            let items = try await queue.fill(3, files)
            try await queue.store.cache.pin([items[0].url])
            #expect(try await queue.candidates() == items.dropFirst().map { ClaimedItem.hash(of: $0.id) })
            try await queue.markAll()
            try await queue.store.cache.pin([items[1].url + "#fragment"])
            #expect(try await queue.removeAll(files) == 1)
            #expect(try await queue.store.cache.totals().blobs == 2)
            #expect(try await queue.store.cache.unpin([items[0].url, "https://never.example/"]) == 1)
            #expect(try await queue.candidates().count == 1)
            #expect(try await queue.store.cache.pinned() == [items[1].url])
        }
    }

    @Test func `The source of an active item is no candidate for eviction`() async throws {
        try await withQueue { queue in
            let files = NamesOnly()
            let items = try await queue.fill(2, files)
            _ = try await queue.store.queue.enqueue(NewJob(urls: [items[0].url]))
            let again = try #require(try await queue.claim().first)
            #expect(try await queue.candidates() == [ClaimedItem.hash(of: items[1].id)])
            try await queue.end(again, .release)
            #expect(try await queue.candidates().count == 2)
        }
    }

    @Test func `The source of an active item's fallback is no candidate for eviction`() async throws {
        try await withQueue { queue in
            let items = try await queue.fill(2, NamesOnly())
            var item = NewItem(url: "https://gone.example/1.jpg")
            item.fallbacks = [items[0].url]
            var job = NewJob(urls: [])
            job.items = [item]
            _ = try await queue.store.queue.enqueue(job)
            let failing = try #require(try await queue.claim().first)
            try await queue.end(failing, .fallBack(Failure(.http(404), "It is gone.")))
            _ = try #require(try await queue.claim().first)
            #expect(try await queue.candidates() == [ClaimedItem.hash(of: items[1].id)])
        }
    }

    @Test func `A finish that needs a dying file revives it if the worker holds the file`() async throws {
        try await withQueue { queue in
            let files = NamesOnly()
            let items = try await queue.fill(1, files)
            try await queue.markAll()
            _ = try await queue.store.queue.enqueue(NewJob(urls: [items[0].url]))
            let again = try #require(try await queue.claim().first)
            let hash = ClaimedItem.hash(of: items[0].id)
            let rendition = RenditionRecord(
                name: "original", blob: hash, size: 10, format: "jpeg", width: nil, height: nil)
            let source = try #require(again.source)
            let hit = Completion(source: source, renditions: [rendition], newVariants: [], origin: .disk)
            let refused = try await queue.store.queue.finish([(again, .done(hit))], held: HeldBlobs(), reserved: nil)
            #expect(refused.doubtful == [again.id])
            #expect(try await queue.progress(again.job).done == 0)
            let before = try await queue.store.cache.blobs(after: "", limit: 1)
            var held = HeldBlobs()
            held.found = [hash]
            let finished = try await queue.store.queue.finish([(again, .done(hit))], held: held, reserved: nil)
            #expect(finished.doubtful == [] && finished.fencedOut == [])
            #expect(try await queue.removeAll(files) == 0)
            #expect(files.names.withLock { $0 == [hash] })
            #expect(try await queue.store.cache.totals().hits == 1)
            // It was found, and not published: it is as old as before.
            #expect(before == [])
            let after = try await queue.store.cache.blobs(after: "", limit: 1)
            #expect(after.first?.modifiedAt.milliseconds == source.fetchedAt.milliseconds)
        }
    }

    @Test func `A result is refused if its file is neither in the index nor held by the worker`()
        async throws
    {
        try await withQueue { queue in
            let job = try await queue.job()
            let item = try #require(try await queue.claim().first)
            let finished = try await queue.store.queue.finish(
                [(item, item.completion(clock: queue.clock))], held: HeldBlobs(), reserved: nil)
            #expect(finished.doubtful == [item.id])
            #expect(try await queue.progress(job).done == 0)
            #expect(try await queue.store.cache.totals().blobs == 0)
            try await queue.end(item, .release)
            #expect(try await queue.claim().first?.attempts == 0)
        }
    }

    @Test func `A file that is published again during its eviction keeps its row`() async throws {
        try await withQueue { queue in
            let files = NamesOnly()
            let items = try await queue.fill(1, files)
            let hash = ClaimedItem.hash(of: items[0].id)
            try await queue.markAll()
            let forgotten = try await queue.store.eviction.forgetDying([hash])
            #expect(forgotten.forgotten == [hash])
            // Its file is deleted now, and another worker publishes it again before the row goes.
            _ = try await queue.store.queue.enqueue(NewJob(urls: [items[0].url]))
            let again = try #require(try await queue.claim().first)
            _ = try await queue.store.queue.finish(
                [(again, again.completion(hash: hash, clock: queue.clock))], held: HeldBlobs(published: [hash]),
                reserved: nil)
            var removal = CacheEviction.Removal()
            removal.gone = [hash]
            #expect(try await queue.store.eviction.settle(removal).gone == [])
            #expect(try await queue.store.cache.totals().blobs == 1)
            #expect(try await queue.store.cache.entry(ofURL: items[0].url, variant: "original")?.blob == hash)
            #expect(try await queue.removeAll(files) == 0)
        }
    }

    @Test func `Results of evicted files stay, without paths`() async throws {
        try await withQueue { queue in
            let files = NamesOnly()
            let items = try await queue.fill(1, files)
            #expect(try await queue.store.cache.entry(ofURL: items[0].url, variant: "original") != nil)
            try await queue.markAll()
            #expect(try await queue.removeAll(files) == 1)
            let row = try #require(try await queue.store.reports.results(job: items[0].job, after: 0, limit: 1).first)
            #expect((row.state, row.path, row.size) == (.done, nil, 10))
            #expect(try await queue.store.cache.entry(ofURL: items[0].url, variant: "original") == nil)
            #expect(try await queue.store.cache.source(key: items[0].key)?.isKept == false)
        }
    }

    @Test func `A file that thousands of URLs share is evicted in several slices`() async throws {
        try await withQueue { queue in
            let files = NamesOnly()
            _ = try await queue.job(1_201)
            let items = try await queue.claim(2_000)
            let hash = ClaimedItem.hash(of: 1)
            files.names.withLock { _ = $0.insert(hash) }
            let rendition = RenditionRecord(
                name: "original", blob: hash, size: 10, format: "jpeg", width: nil, height: nil)
            let group = items.map { item in
                let source = SourceRecord(
                    key: item.key, hash: hash, size: 10, isKept: true, fetchedAt: WallTime(milliseconds: 1))
                return (
                    item: item,
                    ending: ItemEnding.done(
                        Completion(source: source, renditions: [rendition], newVariants: [], origin: .network))
                )
            }
            _ = try await queue.store.queue.finish(group, held: HeldBlobs(published: [hash]), reserved: nil)
            #expect(try await queue.store.cache.totals().dedupedBytes == 12_000)
            try await queue.markAll()
            var slices = 0
            while try await queue.removeDying(files).isUnfinished { slices += 1 }
            #expect(slices >= 2)
            #expect(try await queue.store.cache.totals().blobs == 0)
        }
    }

    @Test(.onSQLite) func `Space is reserved before its use, and stays reserved when its worker dies`() async throws {
        try await withQueue { queue in
            let files = NamesOnly()
            _ = try await queue.fill(2, files)
            let short = try await queue.store.eviction.reserve(11, for: queue.worker, limit: 30)
            #expect(short == .short(by: 1))
            let granted = try await queue.store.eviction.reserve(4, spare: 7, for: queue.worker, limit: 30)
            #expect(granted == .granted(4))
            let more = try await queue.store.eviction.reserve(4, spare: 2, for: 77, limit: 30)
            #expect(more == .granted(6))
            let other = try await queue.store.eviction.reserve(1, for: 77, limit: 30)
            #expect(other == .short(by: 1))
            try await queue.store.eviction.giveBack(3, of: queue.worker)
            #expect(try await queue.store.cache.totals().reservedBytes == 7)
            let dead = try await queue.store.eviction.deadReservations(myself: queue.worker)
            #expect(dead == [77])
            // Its helpers may still have files open that have no name.
            let mark = try queue.store.workers.helperMark(of: 77)
            #expect(try await queue.store.eviction.deadReservations(myself: queue.worker) == [])
            try mark.close()
            #expect(try await queue.store.eviction.deadReservations(myself: queue.worker) == [77])
            // What it may have left behind still takes room, and no more than that.
            #expect(try await queue.store.eviction.limitReservations(of: [77], to: 2) == 4)
            #expect(try await queue.store.cache.totals().reservedBytes == 3)
            #expect(try await queue.store.eviction.limitReservations(of: [77], to: 0) == 2)
            #expect(try await queue.store.eviction.deadReservations(myself: queue.worker) == [])
        }
    }

    @Test func `Old jobs are pruned with their items, and their cached files are still found`() async throws {
        try await withQueue { queue in
            let files = NamesOnly()
            let items = try await queue.fill(3, files)
            let open = try await queue.job(2, name: "open")
            let pruned = try await queue.store.maintenance.prune(endedBefore: .max)
            #expect((pruned.jobs, pruned.items) == (1, 3))
            #expect(try await queue.store.reports.progress(job: items[0].job) == nil)
            #expect(try await queue.progress(open).queued == 2)
            #expect(try await queue.store.cache.entry(ofURL: items[0].url, variant: "original") != nil)
            #expect(try await queue.store.maintenance.prune(endedBefore: .max) == .init())
        }
    }
}
