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
            try await cache.setKeepsLinks(true)
            func addAndRemove() async throws -> [CacheIndex.RemovedLink] {
                _ = try await depot.withPublisher { try await depot.add([1], to: $0) }
                var selection = EntrySelection()
                selection.urls = [Depot.url(1)]
                #expect(try await cache.remove(try await cache.entries(selection).page) == 1)
                return try await cache.removedLinks(limit: 10)
            }
            let first = try await addAndRemove()
            let second = try await addAndRemove()
            #expect((first.count, second.count) == (1, 1))
            try await cache.forgetRemovedLinks(first)
            #expect(try await cache.removedLinks(limit: 10).count == 1)
            try await cache.forgetRemovedLinks(second)
            #expect(try await cache.removedLinks(limit: 10).isEmpty)
            _ = try await depot.collector().collect()
        }
    }
}
