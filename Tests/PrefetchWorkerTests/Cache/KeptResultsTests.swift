import ContentCache
import Core
import Jobs
import Synchronization
import TestSupport
import Testing

@testable import PrefetchWorker

/// A bucket that is down, or refuses single files while it takes others. The S3 server of the tests can't be made to do
/// the latter.
private final class MoodyBucket: BackingStore {
    private struct State {
        var isDown = false
        var refused: Set<String> = []
        var stored: [String] = []
    }

    let name = "s3://pictures/moody"
    let counts = BackingCounts()
    private let state = Mutex(State())

    var isDown: Bool {
        get { state.withLock { $0.isDown } }
        set { state.withLock { $0.isDown = newValue } }
    }

    /// The hashes of all files that were stored, in order.
    var stored: [String] { state.withLock { $0.stored } }

    func refuse(_ hash: BlobHash) { state.withLock { _ = $0.refused.insert(hash.hex) } }

    private static let silence = CacheError(.disk, "The bucket does not answer.", isUnreachable: true)

    func store(_ blobs: [PendingBlob]) -> [CacheError?] {
        state.withLock { state in
            blobs.map { blob in
                if state.isDown || state.refused.contains(blob.hash.hex) { return Self.silence }
                state.stored.append(blob.hash.hex)
                return nil
            }
        }
    }

    func fetch(_ hash: BlobHash, into file: BlobFile) throws(CacheError) -> Int64? { nil }
    func size(of hash: BlobHash) throws(CacheError) -> Int64? { nil }
    func remove(_ hashes: [BlobHash]) throws(CacheError) {}
    func isEmpty() throws(CacheError) -> Bool { true }
    func blobs(inShard shard: Int) throws(CacheError) -> [(hash: BlobHash, size: Int64, age: Int64?)] { [] }
    func identity() throws(CacheError) -> String? { nil }
    func identify(as name: String) throws(CacheError) -> String { name }
    func changeIdentity(to name: String) throws(CacheError) {}
    func owner() throws(CacheError) -> String? { nil }
    func setOwner(_ text: String) throws(CacheError) {}
    func probe() throws(CacheError) { if isDown { throw Self.silence } }
    func abandon() {}
    func url(of hash: BlobHash, seconds: Int) throws(CacheError) -> String { throw Self.silence }
}

/// What becomes of results while a bucket does not take them.
@Suite("Results that a bucket does not take", .timeLimit(.minutes(5)))
struct KeptResultsTests {
    /// - Parameter patience: milliseconds.
    private func withPublisher(
        patience: Int64 = 60_000, _ body: (Depot, MoodyBucket, Publisher) async throws -> Void,
    ) async throws {
        try await withTemporaryDirectory { folder in
            let bucket = MoodyBucket()
            let depot = try await Depot(folder, backing: bucket)
            let disk = DiskWatch(cache: depot.cache, minimumFree: 0)
            let publisher = Publisher(
                store: depot.store, cache: depot.cache, disk: disk, logger: Depot.logger,
                patience: PublishPatience(milliseconds: patience))
            // The loop of claims tests a cache that is in trouble.
            let probing = Task {
                while !Task.isCancelled {
                    _ = await disk.probe { bucket.isDown ? "It is down." : nil }
                    try await Task.sleep(for: .milliseconds(50))
                }
            }
            async let running: Void = publisher.run(inFlight: { 5 })
            defer { probing.cancel() }
            do {
                try await body(depot, bucket, publisher)
            } catch {
                publisher.close()
                await running
                throw error
            }
            publisher.close()
            await running
            try await depot.store.close()
        }
    }

    @Test func `Results are kept while the bucket is down, and sent once it answers`() async throws {
        try await withPublisher { (depot, bucket, publisher) async throws -> Void in
            bucket.isDown = true
            async let endings = depot.add(Array(0..<5), to: publisher)
            try await Task.sleep(for: .seconds(2))
            #expect(try await depot.store.reports.backlog().active == 5)
            bucket.isDown = false
            let ended = try await endings
            #expect(ended.allSatisfy { $0?.isDone == true })
            #expect(Set(bucket.stored).count == 5 && bucket.stored.count == 5)
        }
    }

    @Test func `Their items go back when the patience is over`() async throws {
        try await withPublisher(patience: 1_500) { (depot, bucket, publisher) async throws -> Void in
            bucket.isDown = true
            #expect(try await depot.add(Array(0..<5), to: publisher).allSatisfy { $0?.isDone == false })
            #expect(try await depot.store.reports.backlog().queued == 5)
            bucket.isDown = false
            #expect(try await depot.add(Array(5..<10), to: publisher).allSatisfy { $0?.isDone == true })
        }
    }

    @Test func `A file that the bucket refuses goes back, and the others end without it`() async throws {
        try await withPublisher { (depot, bucket, publisher) async throws -> Void in
            bucket.refuse(try depot.pending(Depot.bytes(3, count: 100)).hash)
            let endings = try await depot.add(Array(0..<5), to: publisher)
            #expect(endings.filter { $0?.isDone == true }.count == 4)
            #expect(try await depot.store.reports.backlog().queued == 1)
            #expect(bucket.stored.count == 4)
        }
    }
}
