import ContentCache
import Glibc
import SystemPackage
import TestSupport
import Testing

@Suite("The cache's folder", .timeLimit(.minutes(15)))
struct LayoutTests {
    @Test func `A new cache has its marker and its folders only`() throws {
        try withCache { cache in
            #expect(try names(in: cache.directory) == ["CACHE_VERSION", "blobs", "quarantine"])
            let marker = try bytes(of: cache.directory.appending("CACHE_VERSION"))
            #expect(String(decoding: marker, as: UTF8.self) == "prefetch-cache 1 sha256\n")
            #expect(try names(in: cache.directory.appending("blobs")) == ["sha256"])
            let shards = try names(in: cache.directory.appending("blobs/sha256"))
            #expect(shards.count == 256)
            #expect((shards.first, shards[10], shards.last) == ("00", "0a", "ff"))
            #expect(try cache.files().blobs == [])
        }
    }

    @Test func `Folders above the cache are made where they are missing`() throws {
        try withTemporaryDirectory { folder in
            let cache = try ContentCache(directory: folder.appending("a/b/../c/cache"))
            #expect(cache.directory == folder.appending("a/c/cache"))
            try cache.add("x")
        }
    }

    @Test func `An empty folder becomes a cache`() throws {
        try withTemporaryDirectory { folder in _ = try ContentCache(directory: folder) }
    }

    @Test func `Missing folders of a cache are made again`() throws {
        try withCache { cache in
            #expect(rmdir(cache.directory.appending("blobs/sha256/7f").string) == 0)
            #expect(rmdir(cache.directory.appending("quarantine").string) == 0)
            let again = try ContentCache(directory: cache.directory)
            #expect(try again.files().blobs == [])
        }
    }

    @Test(arguments: ["prefetch-cache 2 sha256\n", "prefetch-cache 1 sha512", "", "something else entirely", "\0"])
    func `A cache of another version is refused and not touched`(_ marker: String) throws {
        try withTemporaryDirectory { folder in
            try overwrite(folder.appending("CACHE_VERSION"), with: marker)
            let error = CacheError.of { _ = try ContentCache(directory: folder) }
            #expect(error?.code == .notACache)
            #expect(error?.message.hasSuffix("and this program knows 'prefetch-cache 1 sha256'.") == true)
            #expect(try names(in: folder) == ["CACHE_VERSION"])
            #expect(try bytes(of: folder.appending("CACHE_VERSION")) == Array(marker.utf8))
        }
    }

    @Test func `A folder with other files is refused and not touched`() throws {
        try withTemporaryDirectory { folder in
            try overwrite(folder.appending("thesis.tex"), with: "precious")
            let error = CacheError.of { _ = try ContentCache(directory: folder) }
            #expect(error?.code == .notACache)
            #expect(
                error?.message
                    == "\(folder) is not empty and not a cache: name another folder with --cache or WORKER_CACHE.")
            #expect(try names(in: folder) == ["thesis.tex"])
        }
    }

    @Test func `A file at the path of the cache is a clear error`() throws {
        try withTemporaryDirectory { folder in
            let path = folder.appending("cache")
            try overwrite(path, with: "a file")
            let error = CacheError.of { _ = try ContentCache(directory: path) }
            #expect(error?.code == .cannotCreate)
            #expect(error?.message == "\(path) is in the way: it is not a folder.")
            let below = CacheError.of { _ = try ContentCache(directory: path.appending("below")) }
            #expect(below?.code == .cannotCreate)
        }
    }

    @Test(.enabled(if: access("/proc/self", F_OK) == 0, "this system has no /proc"))
    func `A folder that can't be made is a clear error`() {
        // Not even root makes folders here.
        let error = CacheError.of { _ = try ContentCache(directory: "/proc/nowhere/cache") }
        #expect(error?.code == .cannotCreate)
        #expect(error?.message.hasPrefix("The folder /proc/nowhere can't be created: ") == true)
    }

    @Test func `Several tasks can open a new cache at once`() async throws {
        for _ in 0..<5 {
            try await withTemporaryDirectory { folder in
                try await withThrowingTaskGroup { group in
                    for number in 0..<4 {
                        group.addTask { try ContentCache(directory: folder.appending("cache")).add("\(number)") }
                    }
                    try await group.waitForAll()
                }
                #expect(try names(in: folder.appending("cache")) == ["CACHE_VERSION", "blobs", "quarantine"])
            }
        }
    }

    @Test func `The free space is that of the cache's disk`() throws {
        try withCache { cache in
            let free = try cache.freeBytes()
            #expect(free > 0)
        }
    }
}
