import ContentCache
import Core
import Glibc
import SystemPackage
import TestSupport
import Testing

@Suite("Leftovers of a cache", .timeLimit(.minutes(15)))
struct LeftoverTests {
    @Test func `Old drafts and quarantined files are deleted, and named files stay`() throws {
        try withTemporaryDirectory { folder in
            let cache = try ContentCache(directory: folder.appending("cache"))
            let names = ["CACHE_VERSION.1.2", "CACHE_VERSION.3.4", "quarantine/a", "quarantine/b", "other.1"]
            for name in names {
                let file = try FileDescriptor.open(
                    cache.directory.appending(name), .writeOnly, options: .create, permissions: .ownerReadWrite)
                try file.closeAfter { _ = try file.writeAll([1, 2]) }
            }
            // With something in it, as it may lie in a blob's place.
            for name in ["folder", "folder/deeper"] {
                #expect(mkdir(cache.directory.appending("quarantine/\(name)").string, 0o755) == 0)
            }
            try overwrite(cache.directory.appending("quarantine/folder/deeper/file"), with: "12345")
            #expect(symlink("/", cache.directory.appending("quarantine/folder/link").string) == 0)
            try cache.removeDrafts(before: 0)
            let all = try cache.inQuarantine()
            #expect(Set(all.map(\.name)) == ["a", "b", "folder"])
            #expect(try cache.quarantined() == (3, 2 + 2 + 5 + 1))
            // The maker of the first is alive, as every process with the number 1 is.
            try cache.removeDrafts(before: 0, ofDeadBefore: .max)
            #expect(fileNames(in: cache.directory.string).contains("CACHE_VERSION.1.2"))
            try cache.removeDrafts(before: .max)
            let gone = cache.remove(fromQuarantine: all)
            #expect(gone.files == 3 && gone.bytes == 10 && gone.trouble == nil)
            #expect(try cache.quarantined().files == 0)
            let left: Set = ["CACHE_VERSION", "blobs", "quarantine", "other.1"]
            #expect(Set(fileNames(in: cache.directory.string)) == left)
        }
    }

    @Test func `A temporary link that a kill has left is deleted with its link`() throws {
        try withTemporaryDirectory { folder in
            let cache = try ContentCache(directory: folder.appending("cache"))
            let (key, variant, format) = ("https://a.example/1.jpg", "original", "jpeg")
            try cache.links.link(BlobHash(of: [7]), key: key, variant: variant, format: format)
            let path = try #require(LinkName.path(key: key, variant: variant, format: format))
            let left = cache.directory.pushing(FilePath(path)).string + ".new"
            #expect(symlink("nowhere", left) == 0)
            try cache.links.unlink(key: key, variant: variant, format: format)
            var found: [String] = []
            try cache.links.forEachLink { found.append($0) }
            #expect(found == [])
        }
    }
}
