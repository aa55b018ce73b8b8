import Core
import Glibc
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import ContentCache

/// A store that has nothing, and from some time on takes nothing, as a bucket does for keys that may only read. The S3 server
/// of the tests has no such keys.
private final class ForgetfulStore: BackingStore {
    let name = "s3://pictures/read-only"
    let counts = BackingCounts()
    let isReadOnly = Mutex(false)
    private static let refusal = CacheError(.disk, "The bucket refused the request (403).")

    func store(_ blobs: [PendingBlob]) -> [CacheError?] {
        let refusal = isReadOnly.withLock { $0 } ? Self.refusal : nil
        return blobs.map { _ in refusal }
    }
    func fetch(_ hash: BlobHash, into file: BlobFile) throws(CacheError) -> Int64? { nil }
    func size(of hash: BlobHash) throws(CacheError) -> Int64? { nil }
    func remove(_ hashes: [BlobHash]) throws(CacheError) { throw Self.refusal }
    func blobs(inShard shard: Int) throws(CacheError) -> [(hash: BlobHash, size: Int64, age: Int64?)] { [] }
    func isEmpty() throws(CacheError) -> Bool { true }
    func identity() throws(CacheError) -> String? { nil }
    func identify(as name: String) throws(CacheError) -> String { throw Self.refusal }
    func changeIdentity(to name: String) throws(CacheError) { throw Self.refusal }
    func owner() throws(CacheError) -> String? { nil }
    func setOwner(_ text: String) throws(CacheError) { throw Self.refusal }
    func probe() throws(CacheError) { throw Self.refusal }
    func abandon() {}
    func url(of hash: BlobHash, seconds: Int) throws(CacheError) -> String { throw Self.refusal }
}

/// The folder in front of a store that lost its blobs and can't be written.
@Suite("A read-only backing store", .timeLimit(.minutes(15)))
struct ReadOnlyBackingTests {
    private func withFront(_ body: (ContentCache, BlobHash) throws -> Void) throws {
        try withTemporaryDirectory { folder in
            let path = folder.appending("front")
            let store = ForgetfulStore()
            let cache = try ContentCache(directory: path, backing: store)
            let hash = try cache.add("whole")
            store.isReadOnly.withLock { $0 = true }
            try body(cache, hash)
        }
    }

    /// As missing, the index would forget it, and the last copy would be deleted as an orphan.
    @Test func `A blob whose one copy is in the folder is unreadable, and not missing`() throws {
        try withFront { (cache, hash) throws in
            for finding in [cache.check(hash, size: 5), cache.glance(hash, size: 5)] {
                guard case .unreadable(let reason) = finding else {
                    Issue.record("It is \(finding).")
                    continue
                }
                #expect(reason.contains("an intact copy is in the folder") && reason.contains("403"), "\(reason)")
            }
            #expect(cache.isThere(hash))
        }
    }

    /// As in use, no blob without a copy in the folder could be evicted any more, and nothing would say why.
    @Test func `A blob without a copy can be deleted, also where the folder lacks a part`() throws {
        try withFront { (cache, hash) throws in
            #expect(unlink(cache.path(of: hash).string) == 0)
            #expect(try cache.unused(hash) != nil)
            #expect(try ChildProcess.run("rm", ["-r", cache.path(of: hash).removingLastComponent().string]) == 0)
            #expect(try cache.unused(hash) != nil)
        }
    }

    /// As missing, the index would forget files that are whole, and the next collection would delete them.
    @Test func `Blobs of a folder that can't be looked up are unreadable, and not missing`() throws {
        try withTemporaryDirectory { folder in
            let cache = try ContentCache(directory: folder.appending("cache"))
            let hash = try cache.add("whole")
            let part = cache.path(of: hash).removingLastComponent()
            // A link to itself in the folder's place: root may look into every folder.
            #expect(rename(part.string, part.string + ".away") == 0)
            #expect(symlink(part.string, part.string) == 0)
            for finding in [cache.check(hash, size: 5), cache.glance(hash, size: 5)] {
                guard case .unreadable = finding else {
                    Issue.record("It is \(finding).")
                    continue
                }
            }
            #expect(cache.exists(hash, size: 5))
        }
    }

    @Test func `A blob of the wrong size that can't be put aside is unreadable`() throws {
        try withCache { cache in
            let hash = try cache.add("whole")
            try overwrite(cache.path(of: hash), with: "longer than it was")
            #expect(try ChildProcess.run("rmdir", [cache.directory.appending("quarantine").string]) == 0)
            let file = try FileDescriptor.open(
                cache.directory.appending("quarantine"), .writeOnly, options: .create, permissions: .ownerReadWrite)
            try file.close()
            guard case .unreadable = cache.check(hash, size: 5) else {
                Issue.record("It was reported as moved.")
                return
            }
        }
    }
}
