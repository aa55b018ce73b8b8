import ContentCache
import Core
import Jobs
import Testing

@testable import PrefetchWorker

/// The list of links whose entries were removed, from which a program strikes those that it has settled.
@Suite("Links of removed entries", .timeLimit(.minutes(15)))
struct RemovedLinkTests {
    /// Else a program that settles the first removal would strike the second one, too, and the link would stay.
    @Test func `A link whose entry came back and was removed again stays on the list`() async throws {
        try await withDepot { depot in
            let cache = depot.store.cache
            try await cache.links.keep(true)
            func addAndRemove() async throws -> [LinkList.Removed] {
                _ = try await depot.withPublisher { try await depot.add([1], to: $0) }
                var selection = EntrySelection()
                selection.urls = [Depot.url(1)]
                #expect(try await cache.remove(try await cache.entries(selection).page) == 1)
                return try await cache.links.removed(limit: 10)
            }
            let first = try await addAndRemove()
            let second = try await addAndRemove()
            #expect((first.count, second.count) == (1, 1))
            try await cache.links.forget(first, settledTo: [nil])
            #expect(try await cache.links.removed(limit: 10).count == 1)
            try await cache.links.forget(second, settledTo: [nil])
            #expect(try await cache.links.removed(limit: 10).isEmpty)
            _ = try await depot.collector().collect()
        }
    }

    /// Else nothing would be left to make its link, if the worker is killed before it makes the link again.
    @Test func `A link whose entry came back after it was deleted stays on the list`() async throws {
        try await withDepot { depot in
            let links = LinkKeeper(store: depot.store, cache: depot.cache)
            let removed = try await removedOnce(depot)
            #expect(try await links.settle(removed.map(\.link)) == [nil])
            try await finish(try await claim(depot), depot, round: nil)
            try await depot.store.cache.links.forget(removed, settledTo: [nil])
            try await expectLink(depot, links)
        }
    }

    /// A program that finds the entry missing deletes the link that was made for it, and is done before it is there.
    @Test func `A link that was deleted between its making and its entry is put on the list`() async throws {
        try await withDepot { depot in
            let links = LinkKeeper(store: depot.store, cache: depot.cache)
            _ = try await removedOnce(depot)
            let item = try await claim(depot)
            let made = await links.make(of: [item])
            #expect(made.entries.count == 1)
            try await links.unlinkRemoved()
            #expect(try await depot.store.cache.links.removed(limit: 10).isEmpty)
            // The worker is killed here, so it settles nothing.
            try await finish(item, depot, round: made.round)
            try await expectLink(depot, links)
        }
    }

    @Test func `A link that no program can have deleted is not put on the list`() async throws {
        try await withDepot { depot in
            let links = LinkKeeper(store: depot.store, cache: depot.cache)
            try await depot.store.cache.links.keep(true)
            let item = try await claim(depot)
            let made = await links.make(of: [item])
            try await finish(item, depot, round: made.round)
            #expect(try await depot.store.cache.links.removed(limit: 10).isEmpty)
            try await expectLink(depot, links)
        }
    }

    /// A picture's link on the list, and its file gone.
    private func removedOnce(_ depot: Depot) async throws -> [LinkList.Removed] {
        try await depot.store.cache.links.keep(true)
        _ = try await depot.withPublisher { try await depot.add([1], to: $0) }
        var selection = EntrySelection()
        selection.urls = [Depot.url(1)]
        #expect(try await depot.store.cache.remove(try await depot.store.cache.entries(selection).page) == 1)
        return try await depot.store.cache.links.removed(limit: 10)
    }

    /// The picture again, its file published and its item not yet ended.
    private func claim(_ depot: Depot) async throws -> (item: ClaimedItem, ending: ItemEnding) {
        _ = try await depot.store.queue.enqueue(NewJob(urls: [Depot.url(1)]))
        let item = try #require(try await depot.store.queue.claim(limit: 1, worker: depot.worker).items.first)
        let bytes = Depot.bytes(1, count: 100)
        try depot.leave([bytes])
        let blob = BlobHash(of: bytes).hex
        let source = SourceRecord(
            key: item.key, hash: blob, size: 100, isKept: true, format: "jpeg",
            fetchedAt: depot.store.database.currentTime)
        let rendition = RenditionRecord(
            name: "original", blob: blob, size: 100, format: "jpeg", width: nil, height: nil)
        return (
            item,
            .done(Completion(source: source, renditions: [rendition], newVariants: [], origin: .network))
        )
    }

    private func finish(
        _ item: (item: ClaimedItem, ending: ItemEnding), _ depot: Depot, round: Int64?,
    ) async throws {
        let held = HeldBlobs(published: [BlobHash(of: Depot.bytes(1, count: 100)).hex], linkRound: round)
        let finished = try await depot.store.queue.finish([item], held: held, reserved: nil)
        #expect(finished.doubtful.isEmpty && finished.links.count == 1)
    }

    private func expectLink(_ depot: Depot, _ links: LinkKeeper) async throws {
        try await links.unlinkRemoved()
        #expect(try await depot.store.cache.links.removed(limit: 10).isEmpty)
        let report = try await links.repair()
        #expect((report.links, report.made, report.removed) == (1, 0, 0))
    }
}
