import Core
import Glibc
import SystemPackage
import Testing

@testable import ContentCache

@Suite("Verification", .timeLimit(.minutes(15)))
struct VerifyTests {
    @Test func `A whole blob is verified and returned as an open file`() throws {
        try withCache { cache in
            let hash = try cache.add("whole")
            let file = try cache.openVerified(hash)
            #expect(try bytes(of: file.descriptor) == Array("whole".utf8))
            #expect(throws: Errno.self) { try file.descriptor.writeAll("no".utf8) }
            #expect(cache.check(hash, size: 5) == .good)
        }
    }

    @Test(arguments: 0..<5)
    func `A flipped bit is found at any position, and the file is quarantined`(_ position: Int) throws {
        try withCache { cache in
            let hash = try cache.add("whole")
            var text = Array("whole".utf8)
            text[position] ^= 1
            try overwrite(cache.path(of: hash), with: String(decoding: text, as: UTF8.self))
            let error = CacheError.of { _ = try cache.openVerified(hash) }
            #expect(error?.code == .damaged)
            #expect(error?.message == "The blob \(hash) was damaged; its bytes are in \(cache.directory)/quarantine.")
            #expect(!cache.exists(hash, size: 5))
            #expect(try cache.quarantined.count == 1)
            #expect(cache.check(hash, size: 5) == .missing)
        }
    }

    @Test func `A missing blob is damage, and nothing is quarantined`() throws {
        try withCache { cache in
            let hash = BlobHash(of: "never there".utf8)
            let error = CacheError.of { _ = try cache.openVerified(hash) }
            #expect((error?.code, error?.message) == (.damaged, "The blob \(hash) is missing."))
            #expect(cache.check(hash, size: 1) == .missing)
            #expect(try cache.quarantined == [])
            try cache.moveToQuarantine(hash)
        }
    }

    @Test(arguments: ["", "whol", "whole and more"])
    func `A blob of another length is damaged`(_ text: String) throws {
        try withCache { cache in
            let hash = try cache.add("whole")
            try overwrite(cache.path(of: hash), with: text)
            #expect(cache.check(hash, size: 5) == .damaged)
            #expect(cache.check(hash, size: 5) == .missing)
        }
    }

    @Test func `A damaged blob that is published again is whole`() throws {
        try withCache { cache in
            let hash = try cache.add("whole")
            try overwrite(cache.path(of: hash), with: "whale")
            #expect(cache.check(hash, size: 5) == .damaged)
            #expect(try cache.add("whole") == hash)
            #expect(cache.check(hash, size: 5) == .good)
        }
    }

    @Test func `A link in a blob's place isn't followed`() throws {
        try withCache { cache in
            let hash = BlobHash(of: "whole".utf8)
            let elsewhere = try cache.add("whole and good")
            #expect(symlink(cache.path(of: elsewhere).string, cache.path(of: hash).string) == 0)
            #expect(!cache.exists(hash, size: 14))
            #expect(CacheError.of { _ = try cache.openVerified(hash) }?.code == .damaged)
            #expect(cache.check(hash, size: 14) == .missing)
            #expect(cache.check(elsewhere, size: 14) == .good)
        }
    }

    @Test func `Every file under the blobs is visited, and foreign files are listed apart`() throws {
        try withCache { cache in
            let good = try cache.add("good")
            let shards = cache.directory.appending("blobs/sha256")
            let misplaced = shards.appending(good.hex.hasPrefix("00") ? "01" : "00").appending(good.hex)
            let strangers = [
                shards.appending("ab/notes.txt"), shards.appending("cd/" + good.hex.uppercased()), misplaced,
            ]
            for path in strangers { try overwrite(path, with: "x") }
            let found = try cache.files()
            #expect(found.blobs == [good])
            #expect(Set(found.strangers) == Set(strangers))
        }
    }

    @Test func `A missing shard has no files`() throws {
        try withCache { cache in
            let shard = cache.directory.appending("blobs/sha256/7f")
            #expect(rmdir(shard.string) == 0)
            let blobs = try cache.files().blobs
            #expect(blobs.isEmpty)
        }
    }
}
