import Core
import SystemPackage
import TestSupport
import Testing

@testable import ContentCache

/// A file that is open takes its room on the disk, whatever its name says.
@Suite("Files in use", .timeLimit(.minutes(15)))
struct UseTests {
    @Test func `A blob is in use while it is published or read, and free when it is let go`() throws {
        try withCache { cache in
            let hash: BlobHash
            do {
                let blob = try cache.pending("in use")
                hash = blob.hash
                #expect(!cache.isInUse(hash))
                #expect(cache.publish([blob])[0] == nil)
                #expect(cache.isInUse(hash))
                withExtendedLifetime(blob) {}
            }
            #expect(!cache.isInUse(hash))
            do {
                let file = try cache.openVerified(hash)
                #expect(cache.isInUse(hash))
                withExtendedLifetime(file) {}
            }
            #expect(!cache.isInUse(hash))
            #expect(!cache.isInUse(BlobHash(of: [7])))
        }
    }
}
