import ContentCache
import Core
import Glibc
import SystemPackage
import TestSupport
import Testing

/// Lends a new cache, then checks that nothing lies in it that has no business there.
func withCache<R>(_ body: (ContentCache) throws -> R) throws -> R {
    try withTemporaryDirectory { folder in
        let cache = try ContentCache(directory: folder.appending("cache"))
        let result = try body(cache)
        #expect(try names(in: cache.directory) == ["CACHE_VERSION", "blobs", "quarantine"])
        return result
    }
}

extension ContentCache {
    /// A file with these bytes, not published yet.
    func pending(_ bytes: [UInt8]) throws -> PendingBlob {
        let file = try makeFile()
        try file.descriptor.writeAll(bytes)
        return try PendingBlob(reading: file)
    }

    func pending(_ text: String) throws -> PendingBlob { try pending(Array(text.utf8)) }

    /// Publishes some bytes and expects that it works.
    @discardableResult
    func add(_ text: String) throws -> BlobHash {
        let blob = try pending(text)
        #expect(publish([blob]).errors.map { $0?.message } == [nil])
        return blob.hash
    }

    /// Every blob's file that is there.
    func files() throws -> (blobs: [BlobHash], strangers: [FilePath]) {
        var found: (blobs: [BlobHash], strangers: [FilePath]) = ([], [])
        try forEachFile { path, hash in
            if let hash { found.blobs.append(hash) } else { found.strangers.append(path) }
        }
        return found
    }

    var quarantined: [String] { get throws { try names(in: directory.appending("quarantine")) } }
}

func names(in folder: FilePath) throws -> [String] {
    guard let directory = opendir(folder.string) else { throw Errno(rawValue: errno) }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
        let name = withUnsafePointer(to: entry.pointee.d_name) { tuple in
            tuple.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != ".", name != ".." { names.append(name) }
    }
    return names.sorted()
}

func bytes(of path: FilePath) throws -> [UInt8] {
    let file = try FileDescriptor.open(path, .readOnly)
    return try file.closeAfter { try bytes(of: file) }
}

func bytes(of file: FileDescriptor) throws -> [UInt8] {
    try [UInt8](unsafeUninitializedCapacity: 1 << 20) { buffer, count in
        count = try file.read(fromAbsoluteOffset: 0, into: UnsafeMutableRawBufferPointer(buffer))
    }
}

/// Replaces a file's bytes, whatever its permissions.
func overwrite(_ path: FilePath, with text: String) throws {
    if unlink(path.string) != 0, errno != ENOENT { throw Errno(rawValue: errno) }
    let file = try FileDescriptor.open(path, .writeOnly, options: [.create], permissions: .ownerReadWrite)
    _ = try file.closeAfter { try file.writeAll(text.utf8) }
}

func information(_ path: FilePath) throws -> stat {
    var info = stat()
    guard lstat(path.string, &info) == 0 else { throw Errno(rawValue: errno) }
    return info
}

extension CacheError {
    /// The error of a call that is expected to fail.
    static func of(_ body: () throws -> Void, sourceLocation: SourceLocation = #_sourceLocation) -> CacheError? {
        #expect(throws: CacheError.self, sourceLocation: sourceLocation) { try body() }
    }
}
