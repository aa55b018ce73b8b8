internal import Core
internal import Glibc
internal import SystemPackage

// With a backing store, the folder has only blobs in use, and its file locks also protect the stored blobs. To delete a
// blob, a program locks its file exclusively. If the folder has no such file, it makes an empty one. A worker holds the
// shared lock from before it sends the bytes until the index has recorded the blob.
extension ContentCache {
    /// Stores a group in the backing store, after its files have their names and locks.
    func storeBehind(_ group: [PendingBlob], _ outcome: inout Publication) {
        guard let backing else { return }
        // Of several equal blobs the first is sent.
        var firsts: [BlobHash: Int] = [:]
        for index in group.indices where outcome.errors[index] == nil {
            firsts[group[index].hash] = firsts[group[index].hash] ?? index
        }
        let sent = firsts.values.sorted()
        let errors = backing.store(sent.map { group[$0] })
        for (index, error) in zip(sent, errors) {
            guard let error else { continue }
            for other in group.indices where group[other].hash == group[index].hash { outcome.errors[other] = error }
            outcome.files[group[index].hash] = nil
        }
    }

    /// Fetches a blob into the folder.
    ///
    /// - Returns: the file that has the name now, with its shared lock; nil if the backing store has no such blob.
    func fetched(_ hash: BlobHash) throws(CacheError) -> PendingBlob? {
        guard let backing else { return nil }
        let file = try makeFile()
        guard let size = try backing.fetch(hash, into: file) else { return nil }
        let blob = PendingBlob(file: file, hash: hash, size: size)
        try complete(blob)
        return PendingBlob(file: try link(blob), hash: hash, size: size)
    }

    /// Holds a blob that the index may not have, so that it can be recorded: the folder's file may never have reached
    /// the backing store, or may have been fetched while another program deleted the blob there.
    func heldAndStored(_ hash: BlobHash, size: Int64) throws(CacheError) -> BlobFile? {
        guard let backing else { return try held(hash, size: size) }
        var file = try held(hash, size: size)
        if let found = file, try BlobHash.reading(found.descriptor).hash != hash {
            try putAside(hash, found)
            file = nil
        }
        if file == nil, let blob = try fetched(hash), blob.size == size { file = blob.file }
        guard let file else { return nil }
        if let error = backing.store([PendingBlob(file: file, hash: hash, size: size)]).first ?? nil { throw error }
        return file
    }

    /// Makes and locks an empty file under the name of a blob that the folder does not have, so that no worker can
    /// publish the blob until it is deleted.
    ///
    /// - Returns: the file; nil if a worker published the blob meanwhile.
    /// - Throws: `disk`, `diskFull` if no file can be made there.
    func placeholder(of hash: BlobHash) throws(CacheError) -> CInt? {
        let file: CInt
        do throws(Errno) {
            file = try makeDescriptor().rawValue
        } catch {
            throw CacheError(error, "The blob \(hash) can't be locked for its deletion")
        }
        func link() -> Bool {
            linkat(AT_FDCWD, "/proc/self/fd/\(file)", AT_FDCWD, name(of: hash), AT_SYMLINK_FOLLOW) == 0
        }
        if Self.lock(file, LOCK_EX) {
            if link() { return file }
            // Best effort: without the folders the second attempt reports the error.
            if errno == ENOENT, isFolderMissing(of: hash), (try? makeFolders()) != nil, link() { return file }
        }
        let reason = Errno(rawValue: errno)
        Glibc.close(file)
        guard reason == .fileExists else {
            throw CacheError(reason, "The blob \(hash) can't be locked for its deletion")
        }
        return nil
    }
}
