import ContentCache
import Core
import Glibc
import Jobs
import Logging
import SystemPackage
import TestSupport
import Testing

@testable import PrefetchWorker

/// A cache with its index, filled as a publisher does it, without a network.
struct Depot: Sendable {
    static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let store: JobStore
    let cache: ContentCache
    let worker: Int64

    init(
        _ folder: FilePath, backing: (any BackingStore)? = nil,
        now: @escaping @Sendable () -> WallTime = DatabaseGate.wallClock,
    ) async throws {
        store = try JobStore(path: folder.appending("worker.db").string, now: now)
        cache = try ContentCache(directory: folder.appending("cache"), backing: backing)
        worker = try await store.workers.register(host: "test", pid: 1)
    }

    static func url(_ number: Int) -> String { "https://depot.example/\(number).jpg" }

    /// So many bytes, other ones for each number.
    static func bytes(_ number: Int, count: Int) -> [UInt8] {
        var generator = SeededGenerator(seed: UInt64(number))
        return (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
    }

    /// Files with names and without rows, as a worker leaves them that dies before it commits.
    func leave(_ files: [[UInt8]]) throws {
        let blobs = try files.map(pending)
        let published = cache.publish(blobs)
        #expect(published.errors.compactMap { $0 }.isEmpty)
        // The kernel lets go of a dead worker's files.
        for file in published.files.values { cache.letGo(file) }
    }

    func pending(_ bytes: [UInt8]) throws -> PendingBlob {
        let file = try cache.makeFile()
        try file.descriptor.writeAll(bytes)
        return try PendingBlob(reading: file)
    }

    func collector(_ change: (inout CachePolicy) -> Void = { _ in }) -> Collector {
        var policy = CachePolicy()
        change(&policy)
        return Collector(store: store, cache: cache, policy: policy, logger: Self.logger)
    }

    /// Enqueues URLs, and publishes what they stand for through a publisher.
    func add(_ numbers: [Int], count: Int = 100, to publisher: Publisher) async throws -> [ItemEnding?] {
        _ = try await store.queue.enqueue(NewJob(urls: numbers.map(Self.url)))
        let items = try await store.queue.claim(limit: numbers.count, worker: worker).items
        return try await withThrowingTaskGroup { group in
            for item in items {
                let number = Int(item.url.dropFirst(22).prefix { $0 != "." }) ?? 0
                let blob = try pending(Self.bytes(number, count: count))
                let source = SourceRecord(
                    key: item.key, hash: blob.hash.hex, size: blob.size, isKept: true, format: "jpeg",
                    fetchedAt: store.database.currentTime)
                let rendition = RenditionRecord(
                    name: "original", blob: blob.hash.hex, size: blob.size, format: "jpeg", width: nil, height: nil)
                let ending = ItemEnding.done(
                    Completion(source: source, renditions: [rendition], newVariants: [], origin: .network))
                group.addTask { await publisher.commit(item, ending, blobs: [blob]) }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
    }

    func withPublisher<R>(limit: Int64? = nil, _ body: (Publisher) async throws -> R) async throws -> R {
        let budget = CacheBudget(
            store: store, collector: collector { $0.maxBytes = limit })
        budget.use(by: worker)
        let publisher = Publisher(
            store: store, cache: cache, disk: DiskWatch(cache: cache, minimumFree: 0), logger: Self.logger,
            budget: budget)
        async let running: Void = publisher.run(inFlight: { 1 })
        do {
            let result = try await body(publisher)
            publisher.close()
            await running
            try await budget.trim()
            return result
        } catch {
            publisher.close()
            await running
            throw error
        }
    }

    /// Bytes of all files with names.
    func bytesOnDisk() throws -> Int64 {
        var sum: Int64 = 0
        try cache.forEachFile { path, _ in
            var info = stat()
            // One that is gone by now takes no room.
            if lstat(path.string, &info) == 0 { sum += Int64(info.st_size) }
        }
        return sum
    }

    /// The same, and no file may be deleted meanwhile: files that go and come during a walk would both be counted.
    func bytesAtOneMoment() throws -> Int64 {
        let lock = try FileDescriptor.open(FilePath(store.path + ".lock"), .readWrite, options: .closeOnExec)
        return try lock.closeAfter {
            while flock(lock.rawValue, LOCK_EX) != 0 { if errno != EINTR { throw Errno(rawValue: errno) } }
            return try bytesOnDisk()
        }
    }

    func expectSound(_ location: SourceLocation = #_sourceLocation) async throws {
        let audit = try await CacheAudit.run(store: store, cache: cache)
        #expect(audit.isSound, "\(audit)", sourceLocation: location)
    }
}

/// Lends an empty depot, then checks that every invariant holds.
func withDepot<R>(
    now: @escaping @Sendable () -> WallTime = DatabaseGate.wallClock, _ body: (Depot) async throws -> R,
) async throws -> R {
    try await withTemporaryDirectory { folder in
        let depot = try await Depot(folder, now: now)
        let result = try await body(depot)
        try await depot.expectSound()
        try await depot.store.close()
        return result
    }
}
