import ContentCache
import Core
import Jobs
import Logging
import SystemPackage
import TestSupport
import Testing

@testable import PrefetchWorker

/// A publisher with the store and the cache that it writes to.
private struct Press: Sendable {
    let store: JobStore
    let cache: ContentCache
    let disk: DiskWatch
    let publisher: Publisher
    let worker: Int64

    func claim(_ count: Int) async throws -> [ClaimedItem] {
        _ = try await store.queue.enqueue(NewJob(urls: (0..<count).map { "https://a.example/\($0)" }))
        return try await store.queue.claim(limit: count, worker: worker).items
    }

    func blob(_ text: String) throws -> PendingBlob {
        let file = try cache.makeFile()
        try file.descriptor.writeAll(text.utf8)
        return try PendingBlob(reading: file)
    }

    func ending(_ item: ClaimedItem, _ blob: PendingBlob) -> ItemEnding {
        let source = SourceRecord(
            key: item.key, hash: blob.hash.hex, size: blob.size, isKept: true, format: "jpeg",
            fetchedAt: WallTime(milliseconds: 1))
        let rendition = RenditionRecord(
            name: "original", blob: blob.hash.hex, size: blob.size, format: "jpeg", width: nil, height: nil)
        return .done(Completion(source: source, renditions: [rendition], newVariants: [], origin: .network))
    }
}

private func withPress<R>(_ body: (Press) async throws -> R) async throws -> R {
    try await withTemporaryDirectory { folder in
        let store = try JobStore(path: folder.appending("worker.db").string)
        let cache = try ContentCache(directory: folder.appending("cache"))
        let disk = DiskWatch(cache: cache, minimumFree: 0)
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let publisher = Publisher(store: store, cache: cache, disk: disk, logger: logger)
        let worker = try await store.workers.register(host: "test", pid: 1)
        async let running: Void = publisher.run()
        let result = try await body(
            Press(store: store, cache: cache, disk: disk, publisher: publisher, worker: worker))
        publisher.close()
        await running
        #expect(try await store.maintenance.inconsistencies() == [])
        try await store.close()
        return result
    }
}

extension ItemEnding? {
    fileprivate var name: String {
        switch self {
        case .done: "done"
        case .release: "released"
        case nil: "none"
        default: "other"
        }
    }
}

@Suite("Publishing results", .timeLimit(.minutes(15)))
struct PublisherTests {
    @Test func `After a commit the file has its name and the index has its row`() async throws {
        try await withPress { press in
            let item = try await press.claim(1)[0]
            let blob = try press.blob("x")
            let start = monotonicMilliseconds()
            #expect(await press.publisher.commit(item, press.ending(item, blob), blobs: [blob]).name == "done")
            // It waited for company, and not for long.
            #expect(monotonicMilliseconds() - start >= Publisher.groupMilliseconds - 20)
            #expect(press.cache.exists(blob.hash, size: 1))
            #expect(
                try await press.store.cache.renditions(ofURL: item.url, named: "original").map(\.blob) == [
                    blob.hash.hex
                ])
        }
    }

    @Test func `A full group of files is published whole`() async throws {
        try await withPress { press in
            let items = try await press.claim(Publisher.groupBlobs)
            let blobs = try items.indices.map { try press.blob("\($0)") }
            await withTaskGroup { group in
                for (item, blob) in zip(items, blobs) {
                    group.addTask { await press.publisher.commit(item, press.ending(item, blob), blobs: [blob]).name }
                }
                for await name in group { #expect(name == "done") }
            }
            let known = try await press.store.cache.known(blobs: blobs.map(\.hash.hex))
            #expect(known == Publisher.groupBlobs)
        }
    }

    @Test func `A file that can't be linked sends only its own item back`() async throws {
        try await withPress { press in
            let items = try await press.claim(3)
            let good = try press.blob("good"), other = try press.blob("other")
            let bad = PendingBlob(file: good.file, hash: BlobHash(of: "another".utf8), size: 99)
            let pairs = Array(zip(items, [good, bad, other]))
            let names = await withTaskGroup { group in
                for (item, blob) in pairs {
                    group.addTask {
                        (item.id, await press.publisher.commit(item, press.ending(item, blob), blobs: [blob]).name)
                    }
                }
                return await group.reduce(into: [Int64: String]()) { $0[$1.0] = $1.1 }
            }
            #expect(items.map { names[$0.id] } == ["done", "released", "done"])
            #expect(press.disk.trouble() == "A new blob has another length than was written.")
            let progress = try #require(try await press.store.reports.progress(job: items[0].job))
            #expect((progress.done, progress.queued) == (2, 1))
        }
    }

    @Test func `The commit of a cancelled item is fenced out`() async throws {
        try await withPress { press in
            let items = try await press.claim(2)
            try await press.store.control.cancel(job: items[0].job)
            let blob = try press.blob("x")
            #expect(
                await press.publisher.commit(items[0], press.ending(items[0], blob), blobs: [blob]).name == "none"
            )
            let known = try await press.store.cache.known(blobs: [blob.hash.hex])
            #expect(known == 0)
        }
    }

    @Test func `Commits before the close are published, and later commits are abandoned`() async throws {
        try await withPress { press in
            let items = try await press.claim(2)
            async let first = press.publisher.commit(items[0], .failed(Failure(.denied, "m")))
            try await Task.sleep(for: .milliseconds(50))
            press.publisher.close()
            #expect(await first.name == "other")
            #expect(await press.publisher.commit(items[1], .release).name == "none")
            #expect(press.publisher.failure == nil)
        }
    }

    @Test func `A database that fails for good stops the publisher and abandons the group`() async throws {
        try await withPress { press in
            let item = try await press.claim(1)[0]
            let blob = try press.blob("x")
            let broken = try JobStore(path: press.store.path)
            try await broken.close()
            let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            let publisher = Publisher(store: broken, cache: press.cache, disk: press.disk, logger: logger)
            async let running: Void = publisher.run()
            #expect(await publisher.commit(item, press.ending(item, blob), blobs: [blob]).name == "none")
            #expect(publisher.failure != nil)
            publisher.close()
            await running
            let known = try await press.store.cache.known(blobs: [blob.hash.hex])
            #expect(known == 0)
        }
    }
}
