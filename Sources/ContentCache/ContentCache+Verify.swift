public import Core
internal import Glibc
public import SystemPackage

extension ContentCache {
    /// Whether a blob lies under its name with this size. Its bytes are not read.
    public func exists(_ hash: BlobHash, size: Int64) -> Bool {
        var info = stat()
        return lstat(name(of: hash), &info) == 0 && info.st_mode & S_IFMT == S_IFREG
            && Int64(info.st_size) == size
    }

    /// Opens a blob after reading all of it: what is handed out was verified. Damaged bytes go to quarantine, and so does
    /// whatever else lies in a blob's place.
    ///
    /// - Throws: `damaged` when it is missing or isn't what its name says; `disk`.
    public func openVerified(_ hash: BlobHash) throws(CacheError) -> BlobFile {
        guard let file = try openedWhole(hash) else { throw CacheError(.damaged, "The blob \(hash) is missing.") }
        return file
    }

    /// - Returns: nil when it is missing.
    private func openedWhole(_ hash: BlobHash) throws(CacheError) -> BlobFile? {
        let file: BlobFile
        do {
            // Not blocking: a FIFO would be waited on for ever.
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
            // Bytes that the disk has lost are damaged ones: their origin may still have them.
            guard error.isLost else { throw error }
        }
        throw try putAside(hash, file)
    }

    /// Opens a blob after reading all of it, and leaves it where it is whatever it is: for caches that are never written to.
    ///
    /// - Returns: nil when it is missing or damaged.
    public func openWhole(_ hash: BlobHash) throws(CacheError) -> BlobFile? {
        var info = stat()
        guard lstat(name(of: hash), &info) == 0, info.st_mode & S_IFMT == S_IFREG else { return nil }
        let file: BlobFile
        do {
            file = BlobFile(
                owning: try FileDescriptor.open(
                    path(of: hash), .readOnly, options: [.closeOnExec, .noFollow, .nonBlocking]))
        } catch {
            return nil
        }
        return try BlobHash.reading(file.descriptor).hash == hash ? file : nil
    }

    /// What a blob's file looks like in this boot of the machine: a file that was found whole and still looks the same
    /// needn't be read again until the next boot. Nil when it is no regular file.
    public func stamp(of hash: BlobHash) -> String? {
        var info = stat()
        guard lstat(name(of: hash), &info) == 0, info.st_mode & S_IFMT == S_IFREG else { return nil }
        // A machine without /proc reads every time.
        guard let boot = try? Folders.smallFile("/proc/sys/kernel/random/boot_id") else { return nil }
        let changed = "\(info.st_ctim.tv_sec).\(info.st_ctim.tv_nsec)"
        return "\(boot.prefix(36)):\(info.st_ino):\(info.st_size):\(changed)"
    }

    private func putAside(_ hash: BlobHash, _ file: BlobFile?) throws(CacheError) -> CacheError {
        var bad = stat()
        if let file { _ = fstat(file.descriptor.rawValue, &bad) }
        try moveToQuarantine(hash) { file == nil || $0.st_ino == bad.st_ino }
        return CacheError(.damaged, "The blob \(hash) was damaged; its bytes are in \(quarantine).")
    }

    /// Every name under `blobs/`, whatever it is, a folder at a time.
    ///
    /// - Parameter visit: gets the file's path and its hash, or `nil` for a file that has no business there.
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
            // One that was removed has no files, and is made again when one comes.
            if errno == ENOENT { return }
            throw CacheError(Errno(rawValue: errno), "The folder \(folder) can't be read")
        }
        defer { closedir(directory) }
        while let entry = readdir(directory) {
            let file = withUnsafePointer(to: entry.pointee.d_name) { tuple in
                tuple.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if file == "." || file == ".." { continue }
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
        /// The disk doesn't give its bytes; nothing is known of them.
        case unreadable(String)
    }

    /// Checks a blob by its name and size alone.
    public func glance(_ hash: BlobHash, size: Int64) -> Finding {
        if exists(hash, size: size) { return .good }
        return isThere(hash) ? check(hash, size: size) : .missing
    }

    /// Whether anything lies under a blob's name.
    public func isThere(_ hash: BlobHash) -> Bool {
        var info = stat()
        return lstat(name(of: hash), &info) == 0
    }

    /// Checks a blob by reading it.
    public func check(_ hash: BlobHash, size: Int64) -> Finding {
        // One look: between two, it may have been evicted and written anew.
        var info = stat()
        guard lstat(name(of: hash), &info) == 0 else { return .missing }
        guard info.st_mode & S_IFMT == S_IFREG, Int64(info.st_size) == size else {
            // Of another size than it was published with. Quarantine may fail on a broken disk; the finding stands.
            try? moveToQuarantine(hash) { $0.st_ino == info.st_ino }
            return .damaged
        }
        do throws(CacheError) {
            // Or evicted since.
            return try openedWhole(hash) == nil ? .missing : .good
        } catch {
            return exists(hash, size: size) || error.code != .damaged
                ? .unreadable("\(hash): \(error.message)") : .damaged
        }
    }
}
