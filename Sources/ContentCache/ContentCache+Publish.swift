internal import Glibc
internal import SystemPackage

/// A file whose bytes are complete, waiting for its name.
public struct PendingBlob: Sendable {
    public let file: BlobFile
    public let hash: BlobHash
    public let size: Int64

    /// For whoever hashed the bytes while they were written.
    public init(file: BlobFile, hash: BlobHash, size: Int64) {
        self.file = file
        self.hash = hash
        self.size = size
    }

    /// Reads the file to learn its hash and size.
    public init(reading file: BlobFile) throws(CacheError) {
        (hash, size) = try BlobHash.reading(file.descriptor)
        self.file = file
    }
}

extension ContentCache {
    /// Gives a group of files their names, durably: when it returns without an error for a blob, its bytes and its name
    /// are on the disk.
    ///
    /// The order is the promise: data is synced, then linked, then each folder is synced once; only then may anyone
    /// write down that the blob exists. Bytes that are there already are not written twice.
    ///
    /// - Returns: for every blob, in order, what went wrong with it, or `nil`. A failed `fsync` is final for that file:
    ///   the kernel has dropped the pages, so a second try on the same descriptor would succeed without the data.
    public func publish(_ group: [PendingBlob]) -> [CacheError?] {
        var outcome = group.map { failureOfLinking($0) }
        let published = zip(group.indices, outcome).filter { $0.1 == nil }.map(\.0)
        let shards = Dictionary(grouping: published) { group[$0].hash.shard }
        for (shard, members) in shards {
            do {
                try syncDirectory(blobs.appending(shard))
            } catch {
                for member in members {
                    outcome[member] = CacheError(failedSync: error, "The folder of a blob can't be synced")
                }
            }
        }
        return outcome
    }

    private func failureOfLinking(_ blob: PendingBlob) -> CacheError? {
        do {
            try link(blob)
            return nil
        } catch {
            return error
        }
    }

    private func link(_ blob: PendingBlob) throws(CacheError) {
        if exists(blob.hash, size: blob.size) { return }
        let raw = blob.file.descriptor.rawValue
        var info = stat()
        guard fstat(raw, &info) == 0, Int64(info.st_size) == blob.size else {
            throw CacheError(.damaged, "A new blob has another length than was written.")
        }
        // Before its mode is changed: root could take a device from everybody.
        guard info.st_mode & S_IFMT == S_IFREG else { throw CacheError(.damaged, "A new blob is no regular file.") }
        guard fchmod(raw, 0o444) == 0 else {
            throw CacheError(Errno(rawValue: errno), "A new blob can't be made read-only")
        }
        if let reason = syncing.failure(raw) { throw CacheError(failedSync: reason, "A new blob can't be synced") }
        let name = path(of: blob.hash).string
        for _ in 0..<2 {
            // AT_EMPTY_PATH would need a privilege; the way through /proc needs none (open(2), O_TMPFILE).
            if linkat(AT_FDCWD, "/proc/self/fd/\(raw)", AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0 { return }
            guard errno == EEXIST else { throw CacheError(Errno(rawValue: errno), "A new blob can't be named") }
            // Another worker was first, or what lies there has the wrong length and makes room.
            if exists(blob.hash, size: blob.size) { return }
            try moveToQuarantine(blob.hash)
        }
        throw CacheError(.disk, "The name of a blob stays taken by a file of another length.")
    }
}
