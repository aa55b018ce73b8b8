import ContentCache
import Glibc
import SystemPackage
import TestSupport
import Testing

@Suite("Leftovers of a cache", .timeLimit(.minutes(15)))
struct LeftoverTests {
    @Test func `What is old goes, and nothing that has a name`() throws {
        try withTemporaryDirectory { folder in
            let cache = try ContentCache(directory: folder.appending("cache"))
            let names = ["CACHE_VERSION.1.2", "CACHE_VERSION.3.4", "quarantine/a", "quarantine/b", "other.1"]
            for name in names {
                let file = try FileDescriptor.open(
                    cache.directory.appending(name), .writeOnly, options: .create, permissions: .ownerReadWrite)
                try file.closeAfter { _ = try file.writeAll([1, 2]) }
            }
            #expect(mkdir(cache.directory.appending("quarantine/folder").string, 0o755) == 0)
            try cache.removeDrafts(before: 0)
            #expect(try cache.removeQuarantined(before: 0).files == 0)
            #expect(try cache.quarantined().files == 3)
            try cache.removeDrafts(before: .max)
            let gone = try cache.removeQuarantined(before: .max)
            #expect(gone.files == 3)
            #expect(try cache.quarantined().files == 0)
            let left: Set = ["CACHE_VERSION", "blobs", "quarantine", "other.1"]
            #expect(Set(fileNames(in: cache.directory.string)) == left)
        }
    }
}
