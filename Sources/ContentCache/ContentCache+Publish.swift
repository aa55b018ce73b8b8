public import Core
internal import Glibc
internal import SystemPackage

/// A complete file that has no name yet.
public struct PendingBlob: Sendable {
    public let file: BlobFile
    public let hash: BlobHash
    public let size: Int64

    /// For bytes that were hashed while they were written.
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

/// The result of publishing a group.
public struct Publication: Sendable {
    /// The error of each blob, in order, or `nil`.
    public internal(set) var errors: [CacheError?]
    /// The published files: as long as they are open, no program deletes them.
    public internal(set) var files: [BlobHash: BlobFile] = [:]
}

extension ContentCache {
    /// Names a group of files durably: when it returns without an error for a blob, the blob's bytes and name are on
    /// the disk.
    ///
    /// The order guarantees this: first the data is synced, then the files are linked, then each folder is synced once.
    /// Only then may a worker record that a blob exists. Blobs that exist already are not written again. If there are
    /// many files or folders, one call syncs their whole file system.
    ///
    /// - Returns: the error of each blob that failed, and the files that are held. A failed sync is final for its files:
    ///   the kernel has dropped the pages, so a second sync of the same descriptor would succeed without the data.
    public func publish(_ group: [PendingBlob]) -> Publication {
        var outcome = Publication(errors: group.map { _ in nil })
        let witness = try? open(folder: blobs)  // Best effort: without it, each file is synced by itself.
        defer { if let witness { Glibc.close(witness) } }
        for blob in group {
            // Best effort: if a file can't be held, linking it reports the error.
            if let file = try? held(blob.hash, size: blob.size) { outcome.files[blob.hash] = file }
        }
        let new = group.indices.filter { outcome.files[group[$0].hash] == nil }
        for index in new { outcome.errors[index] = failure { () throws(CacheError) in try complete(group[index]) } }
        let ready = new.filter { outcome.errors[$0] == nil }
        let syncs = syncing.failures(ready.map { group[$0].file.descriptor.rawValue }, witness: witness)
        for (index, reason) in zip(ready, syncs) {
            outcome.errors[index] = reason.map { CacheError(failedSync: $0, "A new blob can't be synced") }
        }
        for index in ready where outcome.errors[index] == nil {
            outcome.errors[index] = failure { () throws(CacheError) in
                outcome.files[group[index].hash] = try link(group[index])
            }
        }
        let published = group.indices.filter { outcome.errors[$0] == nil }
        let shards = Dictionary(grouping: published) { group[$0].hash.shard }
        for (shard, reason) in failures(ofSyncing: Array(shards.keys), witness) {
            for member in shards[shard] ?? [] {
                outcome.errors[member] = CacheError(failedSync: reason, "The folder of a blob can't be synced")
                outcome.files[group[member].hash] = nil
            }
        }
        storeBehind(group, &outcome)
        return outcome
    }

    /// Syncs every folder, also of blobs that existed: another worker may have linked them and not synced the folder
    /// yet.
    private func failures(ofSyncing shards: [String], _ witness: CInt?) -> [(shard: String, reason: Errno)] {
        if shards.count >= Syncing.fewest, let witness {
            switch syncing.whole(witness) {
            case .synced: return []
            case .failed(let reason): return shards.map { (shard: $0, reason: reason) }
            case .unknown: break
            }
        }
        return shards.compactMap { shard in
            do throws(Errno) {
                try syncDirectory(blobs.appending(shard))
                return nil
            } catch {
                return (shard: shard, reason: error)
            }
        }
    }

    func failure(_ body: () throws(CacheError) -> Void) -> CacheError? {
        do throws(CacheError) {
            try body()
            return nil
        } catch {
            return error
        }
    }

    /// Checks a new file and makes it read-only.
    func complete(_ blob: PendingBlob) throws(CacheError) {
        let raw = blob.file.descriptor.rawValue
        var info = stat()
        guard fstat(raw, &info) == 0, Int64(info.st_size) == blob.size else {
            throw CacheError(.damaged, "A new blob has another length than was written.")
        }
        // Checked before the mode is changed: root could make a device unusable for all users.
        guard info.st_mode & S_IFMT == S_IFREG else { throw CacheError(.damaged, "A new blob is no regular file.") }
        guard fchmod(raw, 0o444) == 0 else {
            throw CacheError(Errno(rawValue: errno), "A new blob can't be made read-only")
        }
    }

    /// - Returns: the file that has the name now, with its shared lock.
    func link(_ blob: PendingBlob, isCopy: Bool = false) throws(CacheError) -> BlobFile {
        let raw = blob.file.descriptor.rawValue
        let name = name(of: blob.hash)
        // Locked before another program can see it.
        markInUse(blob.file.descriptor)
        for attempt in 0..<3 {
            // AT_EMPTY_PATH would need a privilege; linking through /proc needs none (open(2), O_TMPFILE).
            if linkat(AT_FDCWD, "/proc/self/fd/\(raw)", AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0 {
                folderMeter.add(blob.size)
                return blob.file
            }
            if errno == ENOENT, attempt == 0, isFolderMissing(of: blob.hash) {
                try makeFolders()
                continue
            }
            // The file had its name and a collector deleted it: a file without any link left can't be linked again.
            if errno == ENOENT, !isCopy { return try link(copied(blob), isCopy: true) }
            guard errno == EEXIST else { throw CacheError(Errno(rawValue: errno), "A new blob can't be named") }
            // Another worker published it first, or a file of the wrong length has the name and goes to quarantine.
            if let file = try held(blob.hash, size: blob.size) { return file }
            try moveToQuarantine(blob.hash) { $0.st_mode & S_IFMT != S_IFREG || Int64($0.st_size) != blob.size }
        }
        throw CacheError(.disk, "The name of a blob stays taken by a file of another length.")
    }

    func isFolderMissing(of hash: BlobHash) -> Bool {
        var info = stat()
        return stat(blobs.appending(hash.shard).string, &info) != 0 && errno == ENOENT
    }

    /// Copies the bytes to a new file and syncs it.
    private func copied(_ blob: PendingBlob) throws(CacheError) -> PendingBlob {
        let copy = PendingBlob(file: try makeFile(), hash: blob.hash, size: blob.size)
        try blob.file.copy(to: copy.file, size: blob.size)
        try complete(copy)
        if let reason = syncing.failure(copy.file.descriptor.rawValue) {
            throw CacheError(failedSync: reason, "A new blob can't be synced")
        }
        return copy
    }
}
