public import Core
internal import Glibc
public import SystemPackage

extension ContentCache {
    /// Whether a blob of this size exists. Its bytes are not read. With a backing store the answer is always true: only
    /// programs that share the index delete blobs there, and asking would cost a request for each cached URL.
    public func exists(_ hash: BlobHash, size: Int64) -> Bool {
        if backing != nil { return true }
        do throws(CacheError) {
            return try hasFile(hash, size: size)
        } catch {
            // Not missing: the program that opens it gets the disk's error.
            return true
        }
    }

    private func hasFile(_ hash: BlobHash, size: Int64) throws(CacheError) -> Bool {
        guard let info = try status(of: hash) else { return false }
        return info.st_mode & S_IFMT == S_IFREG && Int64(info.st_size) == size
    }

    /// Opens a blob after reading and verifying all of it. Damaged bytes go to quarantine, and so does any other file
    /// under a blob's name. If the folder lacks the blob, the backing store delivers it.
    ///
    /// - Throws: `damaged` if it is missing or its bytes differ from its hash; `disk`.
    public func openVerified(_ hash: BlobHash) throws(CacheError) -> BlobFile {
        do throws(CacheError) {
            if let file = try openedOrPutAside(hash) {
                front?.noteUse(file)
                return file
            }
        } catch {
            guard backing != nil, error.code == .damaged else { throw error }
        }
        guard let blob = try fetched(hash) else { throw CacheError(.damaged, "The blob \(hash) is missing.") }
        return blob.file
    }

    /// - Returns: nil if it is missing.
    private func openedOrPutAside(_ hash: BlobHash) throws(CacheError) -> BlobFile? {
        let file: BlobFile
        do {
            // Non-blocking: opening a FIFO would wait forever.
            file = BlobFile(
                owning: try FileDescriptor.open(
                    path(of: hash), .readOnly, options: [.closeOnExec, .noFollow, .nonBlocking]))
        } catch {
            switch error as? Errno {
            case .noSuchFileOrDirectory?: return nil
            case .tooManySymbolicLinkLevels?, .noSuchAddressOrDevice?: throw try putAside(hash, nil)
            default: throw CacheError((error as? Errno) ?? .ioError, "The blob \(hash) can't be opened")
            }
        }
        markInUse(file.descriptor)
        var info = stat()
        guard fstat(file.descriptor.rawValue, &info) == 0, info.st_mode & S_IFMT == S_IFREG else {
            throw try putAside(hash, file)
        }
        do throws(CacheError) {
            if try BlobHash.reading(file.descriptor).hash == hash { return file }
        } catch {
            // Bytes that the disk has lost count as damaged: the origin may still have them.
            guard error.isLost else { throw error }
        }
        throw try putAside(hash, file)
    }

    /// Opens a blob after reading all of it, and never moves the file: for read-only caches.
    ///
    /// - Returns: nil if it is missing or damaged.
    public func openWhole(_ hash: BlobHash) throws(CacheError) -> BlobFile? {
        var info = stat()
        guard lstat(name(of: hash), &info) == 0, info.st_mode & S_IFMT == S_IFREG else { return nil }
        let file: BlobFile
        do {
            file = BlobFile(
                owning: try FileDescriptor.open(
                    path(of: hash), .readOnly, options: [.closeOnExec, .noFollow, .nonBlocking]))
        } catch {
            let error = error as? Errno ?? .ioError
            // It was deleted since, or is another user's.
            if [.noSuchFileOrDirectory, .tooManySymbolicLinkLevels, .permissionDenied].contains(error) { return nil }
            throw CacheError(error, "The blob \(hash) can't be opened")
        }
        return try BlobHash.reading(file.descriptor).hash == hash ? file : nil
    }

    /// A stamp of a blob's file during this boot of the machine: a file that was verified and still has the same stamp
    /// need not be read again until the next boot. Nil if it is no regular file.
    public func stamp(of hash: BlobHash) -> String? {
        var info = stat()
        guard lstat(name(of: hash), &info) == 0, info.st_mode & S_IFMT == S_IFREG else { return nil }
        // Best effort: on a machine without /proc the file is read each time.
        guard let boot = try? Folders.smallFile("/proc/sys/kernel/random/boot_id") else { return nil }
        let changed = "\(info.st_ctim.tv_sec).\(info.st_ctim.tv_nsec)"
        return "\(boot.prefix(36)):\(info.st_ino):\(info.st_size):\(changed)"
    }

    @discardableResult
    func putAside(_ hash: BlobHash, _ file: BlobFile?) throws(CacheError) -> CacheError {
        var bad = stat()
        if let file { _ = fstat(file.descriptor.rawValue, &bad) }
        try moveToQuarantine(hash) { file == nil || $0.st_ino == bad.st_ino }
        return CacheError(.damaged, "The blob \(hash) was damaged; its bytes are in \(quarantine).")
    }

    /// Whether the cache contains no blob.
    public func hasNoBlobs() throws -> Bool {
        if let backing, try !backing.isEmpty() { return false }
        return try hasNoFiles()
    }

    func hasNoFiles() throws -> Bool {
        for shard in 0..<256 where try !files(inShard: shard).isEmpty { return false }
        return true
    }

    /// Visits every name under `blobs/`, a folder at a time.
    ///
    /// - Parameter visit: gets the file's path and its hash, or `nil` if the file is no blob.
    public func forEachFile(_ visit: (FilePath, BlobHash?) throws -> Void) throws {
        for shard in 0..<256 { try forEachFile(inShard: shard, visit) }
    }

    /// The blobs of one of the 256 folders.
    public func files(inShard shard: Int) throws -> [BlobHash] {
        var found: [BlobHash] = []
        try forEachFile(inShard: shard) { _, hash in if let hash { found.append(hash) } }
        return found
    }

    private func forEachFile(inShard shard: Int, _ visit: (FilePath, BlobHash?) throws -> Void) throws {
        let name = String(shard < 16 ? "0" : "") + String(shard, radix: 16)
        let folder = blobs.appending(name)
        guard let directory = opendir(folder.string) else {
            // A folder that was removed has no files; publishing a blob creates it again.
            if errno == ENOENT { return }
            throw CacheError(Errno(rawValue: errno), "The folder \(folder) can't be read")
        }
        defer { closedir(directory) }
        while let file = try Folders.next(directory, at: folder) {
            let hash = BlobHash(file)
            try visit(folder.appending(file), hash?.shard == name ? hash : nil)
        }
    }
}

extension ContentCache {
    /// The state of a blob.
    public enum Finding: Sendable, Hashable {
        case good
        case missing
        /// Its bytes were moved to quarantine.
        case damaged
        /// The disk cannot read its bytes; their state is unknown.
        case unreadable(String)
    }

    /// Checks a blob by its name and size only.
    public func glance(_ hash: BlobHash, size: Int64) -> Finding {
        if let backing {
            return finding(hash, size) { () throws(CacheError) in try backing.size(of: hash).map { $0 == size } }
        }
        do throws(CacheError) {
            if try hasFile(hash, size: size) { return .good }
        } catch {
            return .unreadable("\(hash): \(error.message)")
        }
        return checkFile(hash, size: size)
    }

    /// Checks a blob in the backing store. If it is missing or damaged there, an intact copy in the folder is stored.
    ///
    /// - Parameter look: whether the blob is as it should be; nil if it is missing.
    private func finding(_ hash: BlobHash, _ size: Int64, _ look: () throws(CacheError) -> Bool?) -> Finding {
        let found: Finding
        do throws(CacheError) {
            found = try look().map { $0 ? .good : .damaged } ?? .missing
        } catch {
            found = error.code == .damaged ? .damaged : .unreadable("\(hash): \(error.message)")
        }
        guard found == .missing || found == .damaged else { return found }
        switch checkFile(hash, size: size) {
        case .good: break
        // The folder may have the one copy that is left.
        case .unreadable(let reason): return .unreadable(reason)
        case .missing, .damaged: return found
        }
        do throws(CacheError) {
            return try heldAndStored(hash, size: size) == nil ? found : .good
        } catch {
            // Not missing: the index must not forget the one copy that is left.
            return .unreadable("\(hash): an intact copy is in the folder, and can't be stored. \(error.message)")
        }
    }

    /// Whether there is any file under a blob's name.
    public func isThere(_ hash: BlobHash) -> Bool {
        var info = stat()
        return lstat(name(of: hash), &info) == 0
    }

    /// Checks a blob by reading it.
    public func check(_ hash: BlobHash, size: Int64) -> Finding {
        guard let backing else { return checkFile(hash, size: size) }
        return finding(hash, size) { () throws(CacheError) in
            try backing.fetch(hash, into: try makeFile()).map { $0 == size }
        }
    }

    private func checkFile(_ hash: BlobHash, size: Int64) -> Finding {
        // One lstat gives size and inode: between two calls the blob may be evicted and published again.
        let info: stat
        do throws(CacheError) {
            guard let found = try status(of: hash) else { return .missing }
            info = found
        } catch {
            return .unreadable("\(hash): \(error.message)")
        }
        guard info.st_mode & S_IFMT == S_IFREG, Int64(info.st_size) == size else {
            // It has another size than when it was published.
            do throws(CacheError) {
                try moveToQuarantine(hash) { $0.st_ino == info.st_ino }
                return .damaged
            } catch {
                return .unreadable("\(hash): \(error.message)")
            }
        }
        do throws(CacheError) {
            // It may have been evicted since.
            return try openedOrPutAside(hash) == nil ? .missing : .good
        } catch {
            return exists(hash, size: size) || error.code != .damaged
                ? .unreadable("\(hash): \(error.message)") : .damaged
        }
    }
}
