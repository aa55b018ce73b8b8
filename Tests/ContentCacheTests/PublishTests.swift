import Core
import Glibc
import SystemPackage
import TestSupport
import Testing

@testable import ContentCache

@Suite("Publishing", .timeLimit(.minutes(15)))
struct PublishTests {
    @Test func `A published file has its bytes and its name, and can't be written to`() throws {
        try withCache { cache in
            let hash = try cache.add("hello")
            #expect(hash.hex == "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824")
            let info = try information(cache.path(of: hash))
            #expect(info.st_mode & 0o7777 == 0o444)
            #expect(info.st_nlink == 1)
            #expect(try bytes(of: cache.path(of: hash)) == Array("hello".utf8))
            #expect(cache.exists(hash, size: 5))
            #expect(!cache.exists(hash, size: 6))
        }
    }

    @Test func `A group of many files over many shards is published whole`() throws {
        try withCache { cache in
            let group = try (0..<64).map { try cache.pending("blob \($0)") }
            #expect(cache.publish(group).errors.allSatisfy { $0 == nil })
            #expect(try Set(cache.files().blobs) == Set(group.map(\.hash)))
        }
    }

    @Test func `The same bytes are kept once, in one group and in another`() throws {
        try withCache { cache in
            let hash = try cache.add("same")
            let before = try information(cache.path(of: hash))
            let group = try (0..<3).map { _ in try cache.pending("same") }
            #expect(cache.publish(group + [group[0]]).errors.allSatisfy { $0 == nil })
            #expect(try information(cache.path(of: hash)).st_ino == before.st_ino)
            let twins = try (0..<2).map { _ in try cache.pending("twins") }
            #expect(cache.publish(twins).errors.allSatisfy { $0 == nil })
            #expect(try cache.files().blobs.count == 2)
        }
    }

    @Test func `A removed file is linked again when it is published again`() throws {
        try withCache { cache in
            let blob = try cache.pending("removed")
            #expect(cache.publish([blob]).errors[0] == nil)
            #expect(unlink(cache.path(of: blob.hash).string) == 0)
            #expect(cache.publish([blob]).errors[0] == nil)
            #expect(try bytes(of: cache.path(of: blob.hash)) == Array("removed".utf8))
            #expect(try information(cache.path(of: blob.hash)).st_mode & 0o777 == 0o444)
        }
    }

    @Test func `A file of the wrong length is replaced and quarantined`() throws {
        try withCache { cache in
            let blob = try cache.pending("the whole text")
            try overwrite(cache.path(of: blob.hash), with: "the whole")
            #expect(cache.publish([blob]).errors[0] == nil)
            #expect(try bytes(of: cache.path(of: blob.hash)) == Array("the whole text".utf8))
            let aside = try #require(try cache.quarantined.first)
            #expect(aside.hasPrefix(blob.hash.hex))
            #expect(try bytes(of: cache.directory.appending("quarantine").appending(aside)) == Array("the whole".utf8))
        }
    }

    @Test func `A removed shard is made again`() throws {
        try withCache { cache in
            let blobs = try ["one", "two", "three"].map { try cache.pending($0) }
            let shard = cache.path(of: blobs[1].hash).removingLastComponent()
            #expect(rmdir(shard.string) == 0)
            #expect(cache.publish(blobs).errors.allSatisfy { $0 == nil })
            #expect(try Set(cache.files().blobs) == Set(blobs.map(\.hash)))
            #expect(try ChildProcess.run("rm", ["-r", cache.directory.appending("blobs").string]) == 0)
            let blob = try cache.pending("after all were removed")
            #expect(cache.publish([blob]).errors[0] == nil)
            #expect(try cache.files().blobs == [blob.hash])
        }
    }

    @Test func `A closed descriptor fails its own blob only`() throws {
        try withCache { cache in
            let good = try cache.pending("good"), other = try cache.pending("other")
            // A number far above any that is open: closing one of ours could hit another test's file.
            let closed = PendingBlob(
                file: BlobFile(owning: FileDescriptor(rawValue: 900_000)), hash: BlobHash(of: [1]), size: 1)
            #expect(cache.publish([good, closed, other]).errors.map { $0?.code } == [nil, .damaged, nil])
            #expect(try Set(cache.files().blobs) == [good.hash, other.hash])
        }
    }

    @Test func `A descriptor that isn't of the cache's disk fails its own blob only`() throws {
        try withCache { cache in
            let zero = try FileDescriptor.open("/dev/null", .readOnly)
            let foreign = PendingBlob(file: BlobFile(owning: zero), hash: BlobHash(of: []), size: 0)
            let good = try cache.pending("good")
            let outcome = cache.publish([foreign, good]).errors
            #expect(outcome[0]?.message == "A new blob is no regular file.")
            #expect(outcome[1] == nil)
            var status = stat()
            #expect(stat("/dev/null", &status) == 0 && status.st_mode & 0o777 == 0o666)
            #expect(try cache.files().blobs == [good.hash])
        }
    }

    @Test func `A file that grew or shrank since it was hashed isn't published`() throws {
        try withCache { cache in
            let blob = try cache.pending("complete")
            try blob.file.descriptor.resize(to: 4)
            let error = try #require(cache.publish([blob]).errors[0])
            #expect((error.code, error.message) == (.damaged, "A new blob has another length than was written."))
            #expect(try cache.files().blobs == [])
        }
    }

    @Test func `A dropped file leaves nothing behind`() throws {
        try withCache { cache in
            for _ in 0..<10 { _ = try cache.pending("dropped") }
            let descriptor = try cache.makeDescriptor()
            try descriptor.writeAll("dropped".utf8)
            try descriptor.close()
            let found = try cache.files()
            #expect(found.blobs == [] && found.strangers == [])
            #expect(try names(in: cache.directory.appending("blobs/sha256")).count == 256)
        }
    }

    @Test func `New files are closed when a program is started`() throws {
        try withCache { cache in
            let file = try cache.makeFile()
            #expect(fcntl(file.descriptor.rawValue, F_GETFD) & FD_CLOEXEC != 0)
        }
    }

    @Test func `Concurrent publishers of the same bytes store each file once`() async throws {
        try await withTemporaryDirectory { folder in
            let cache = try ContentCache(directory: folder)
            try await withThrowingTaskGroup { group in
                for _ in 0..<8 {
                    group.addTask { for number in 0..<10 { try cache.add("shared \(number)") } }
                }
                try await group.waitForAll()
            }
            #expect(try cache.files().blobs.count == 10)
            #expect(try cache.quarantined == [])
        }
    }
}
