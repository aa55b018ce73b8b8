import Core
import Foundation
import Glibc
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import ContentCache

/// An open file takes space on the disk even if it was unlinked.
@Suite("Files in use", .timeLimit(.minutes(15)))
struct UseTests {
    @Test func `A blob is in use while it is published or read, and unused once it is released`() throws {
        try withCache { cache in
            let hash: BlobHash
            do {
                let blob = try cache.pending("in use")
                hash = blob.hash
                #expect(try cache.letsGo(of: hash))
                #expect(cache.publish([blob]).errors[0] == nil)
                #expect(try cache.keeps(hash))
                withExtendedLifetime(blob) {}
            }
            #expect(try cache.letsGo(of: hash))
            do {
                let file = try cache.openVerified(hash)
                #expect(try cache.keeps(hash))
                withExtendedLifetime(file) {}
            }
            #expect(try cache.letsGo(of: hash))
            #expect(try !cache.keeps(BlobHash(of: [7])))
        }
    }

    @Test func `A worker holds each blob that it publishes, also if another worker wrote the file`() throws {
        try withCache { cache in
            let first = try cache.pending("the same")
            let hash = first.hash
            let published = cache.publish([first])
            #expect(published.files[hash] === first.file)
            let second = cache.publish([try cache.pending("the same")])
            #expect(second.errors[0] == nil && second.files[hash] != nil && second.files[hash] !== first.file)
            cache.letGo(first.file)
            // The second holds it as well.
            #expect(try cache.keeps(hash))
            for file in second.files.values { cache.letGo(file) }
            #expect(try cache.letsGo(of: hash))
        }
    }

    @Test func `A blob that is being deleted is published anew, and the deletion takes no other file`() throws {
        try withCache { cache in
            let first = try cache.pending("twice")
            let hash = first.hash
            for file in cache.publish([first]).files.values { cache.letGo(file) }
            #expect(try cache.hold(hash, size: 4) == nil)
            let turn = try cache.turnToDelete()
            var doomed = try cache.unused(hash)
            #expect(doomed != nil)
            let second = try cache.pending("twice")
            let result = Mutex<Publication?>(nil)
            let end = DispatchSemaphore(value: 0)
            Thread.detachNewThread {
                let published = cache.publish([second])
                result.withLock { $0 = published }
                end.signal()
            }
            // It waits until the old file is gone.
            #expect(end.wait(timeout: .now() + .milliseconds(50)) == .timedOut)
            #expect(cache.remove([try #require(doomed)], in: turn).compactMap { $0 }.isEmpty)
            doomed = nil
            end.wait()
            let published = try #require(result.withLock { $0 })
            #expect(published.errors[0] == nil && published.files[hash] === second.file)
            #expect(cache.exists(hash, size: 5))
            #expect(try cache.unused(hash) == nil)
        }
    }

    @Test func `The deletion of a blob without a file takes no file that was published meanwhile`() throws {
        try withCache { cache in
            let blob = try cache.pending("late")
            let turn = try cache.turnToDelete()
            let missing = try #require(try cache.unused(blob.hash))
            let published = cache.publish([blob])
            #expect(cache.remove([missing], in: turn).compactMap { $0 }.isEmpty)
            #expect(published.errors[0] == nil && cache.exists(blob.hash, size: 4))
        }
    }

    @Test func `One program deletes at a time`() throws {
        try withCache { cache in
            var turn: DeletionTurn? = try cache.turnToDelete()
            let end = DispatchSemaphore(value: 0)
            let isFirst = Mutex(true)
            Thread.detachNewThread {
                let second = try? cache.turnToDelete()
                isFirst.withLock { $0 = second == nil }
                end.signal()
            }
            #expect(end.wait(timeout: .now() + .milliseconds(50)) == .timedOut)
            withExtendedLifetime(turn) {}
            turn = nil
            end.wait()
            #expect(isFirst.withLock { !$0 })
        }
    }
}

extension ContentCache {
    /// Whether the file is open in a worker or a helper.
    fileprivate func keeps(_ hash: BlobHash) throws -> Bool { try unused(hash) == nil }

    /// Whether the file is open nowhere within seconds: a program that another test starts at this moment has all
    /// descriptors of this process until it begins, and their locks.
    fileprivate func letsGo(of hash: BlobHash) throws -> Bool {
        for _ in 0..<500 {
            if try !keeps(hash) { return true }
            usleep(10_000)
        }
        return false
    }
}
