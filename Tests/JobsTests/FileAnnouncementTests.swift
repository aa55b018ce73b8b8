import Core
import Testing

@testable import Jobs

/// Machines that share a bucket keep each other from deleting what they store, by announcements in the database.
@Suite("Announcements of files", .timeLimit(.minutes(2)), .onPostgres)
struct FileAnnouncementTests {
    private static let owner: Int64 = 7

    private static func count(_ table: String, _ queue: Queue) async throws -> Int {
        try await queue.store.database.read { try $0.int("SELECT count(*) FROM \(table)") ?? 0 }
    }

    @Test func `An announced file is not deleted`() async throws {
        try await withQueue { queue in
            let files = NamesOnly()
            let hash = ClaimedItem.hash(of: try await queue.fill(1, files)[0].id)
            try await queue.store.eviction.announce([hash], by: Self.owner)
            try await queue.markAll()
            let forgotten = try await queue.store.eviction.forgetDying([hash])
            #expect(forgotten.forgotten == [] && forgotten.announced == [hash])
            var removal = CacheEviction.Removal()
            removal.inUse = [hash]
            _ = try await queue.store.eviction.settle(removal)
            #expect(try await queue.store.eviction.dying().hashes == [])
            #expect(try await queue.store.eviction.removable(unknown: ["ab"]) == ["ab"])
            try await queue.store.eviction.announce(["cd"], by: Self.owner)
            #expect(try await queue.store.eviction.removable(unknown: ["cd", hash]) == [])
        }
    }

    @Test func `A worker waits for a removal to end before it stores the file`() async throws {
        try await withQueue { queue in
            let files = NamesOnly()
            let hash = ClaimedItem.hash(of: try await queue.fill(1, files)[0].id)
            try await queue.markAll()
            #expect(try await queue.store.eviction.forgetDying([hash]).forgotten == [hash])
            let eviction = queue.store.eviction
            async let end = {
                try await eviction.announce([hash], by: Self.owner)
                return ContinuousClock.now
            }()
            try await Task.sleep(for: .milliseconds(300))
            let removed = ContinuousClock.now
            var removal = CacheEviction.Removal()
            removal.gone = [hash]
            #expect(try await queue.store.eviction.settle(removal).gone == [hash])
            #expect(try await end > removed)
            #expect(try await Self.count("announced_files", queue) == 1)
        }
    }

    @Test func `A result whose announcement is gone is not recorded`() async throws {
        try await withQueue { queue in
            let job = try await queue.job(2)
            let items = try await queue.claim(2)
            let hashes = items.map { ClaimedItem.hash(of: $0.id) }
            let held = HeldBlobs(published: Set(hashes), owner: Self.owner)
            let group = items.map { (item: $0, ending: $0.completion(clock: queue.clock)) }
            try await queue.store.eviction.announce([hashes[0]], by: Self.owner)
            let finished = try await queue.store.queue.finish(group, held: held, reserved: nil)
            #expect(finished.doubtful == [items[1].id])
            #expect(try await queue.progress(job).done == 1)
            // The worker has announced the file again and still finds it.
            try await queue.store.eviction.announce([hashes[1]], by: Self.owner)
            #expect(try await queue.store.queue.finish([group[1]], held: held, reserved: nil).doubtful == [])
            #expect(try await queue.progress(job).done == 2)
            #expect(try await Self.count("announced_files", queue) == 0)
        }
    }

    @Test func `A file that was deleted after its removal had run out is listed as lost`() async throws {
        try await withQueue { queue in
            let files = NamesOnly()
            let item = try await queue.fill(1, files)[0]
            let hash = ClaimedItem.hash(of: item.id)
            try await queue.markAll()
            #expect(try await queue.store.eviction.forgetDying([hash]).forgotten == [hash])
            // The program was stopped for longer than that, and another has stored the file meanwhile.
            try await queue.store.database.write { try $0.run("UPDATE removed_files SET until = 1") }
            try await queue.store.eviction.announce([hash], by: Self.owner)
            _ = try await queue.store.queue.enqueue(NewJob(urls: [item.url]))
            let again = try #require(try await queue.claim().first)
            _ = try await queue.store.queue.finish(
                [(again, again.completion(hash: hash, clock: queue.clock))],
                held: HeldBlobs(published: [hash], owner: Self.owner), reserved: nil)
            #expect(try await queue.store.cache.entry(ofURL: item.url, variant: "original")?.blob == hash)
            var removal = CacheEviction.Removal()
            removal.gone = [hash]
            _ = try await queue.store.eviction.settle(removal)
            #expect(try await queue.store.cache.entry(ofURL: item.url, variant: "original") == nil)
            #expect(try await Self.count("lost_files", queue) > 0)
        }
    }
}

/// Groups of items are ended with arrays of values on PostgreSQL.
@Suite("Texts of a group", .timeLimit(.minutes(1)))
struct GroupTextTests {
    @Test func `Messages of a group are stored as they were given`() async throws {
        try await withQueue { queue in
            let texts = [
                "", "NULL", "null", "a\"b", "\\", "\\\"", "{}", "{", ",", "a,b", " a ", "'", "日本 👩‍👩‍👧‍👧", "$1", "\n",
            ]
            let job = try await queue.job(texts.count)
            let items = try await queue.claim(texts.count)
            let group = zip(items, texts).map { item, text in
                (item: item, ending: ItemEnding.failed(Failure(.transform, text)))
            }
            #expect(try await queue.store.queue.finish(group) == [])
            let stored = try await queue.store.database.read { db in
                try db.texts("SELECT message FROM items WHERE job = ? ORDER BY id", [job])
            }
            // A failure trims its message.
            #expect(stored == texts.map { Failure(.transform, $0).message })
        }
    }

    @Test func `One URL that fails twice in a group counts twice on the blacklist`() async throws {
        try await withQueue { queue in
            _ = try await queue.store.queue.enqueue(NewJob(urls: ["http://a.example/1"]))
            _ = try await queue.store.queue.enqueue(NewJob(urls: ["http://a.example/1"]))
            let items = try await queue.claim(2)
            #expect(items.count == 2)
            try await queue.store.queue.finish(
                items.map { (item: $0, ending: ItemEnding.failed(FailureClass.http(404))) })
            #expect(try await queue.store.blacklist.entries().map(\.count) == [2])
        }
    }
}
