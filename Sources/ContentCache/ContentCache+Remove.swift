public import Core
internal import Glibc
internal import SystemPackage

extension ContentCache {
    /// Deletes a blob's file. One that isn't there is no failure. A process that has it open keeps its bytes.
    public func remove(_ hash: BlobHash) throws(CacheError) {
        guard Glibc.unlink(name(of: hash)) != 0, errno != ENOENT else { return }
        // Something that is no file at all may lie in a blob's place; it is kept for a person to look at.
        if errno == EISDIR || errno == EPERM, try isDirectory(hash) { return try moveToQuarantine(hash) }
        throw CacheError(Errno(rawValue: errno), "The blob \(hash) can't be deleted")
    }

    private func isDirectory(_ hash: BlobHash) throws(CacheError) -> Bool {
        let saved = errno
        defer { errno = saved }
        var info = stat()
        return lstat(name(of: hash), &info) == 0 && info.st_mode & S_IFMT == S_IFDIR
    }

    /// How long a blob has had its name, in milliseconds by the machine's clock; nil when it is not there.
    ///
    /// - Parameter now: UTC milliseconds.
    public func age(of hash: BlobHash, now: Int64) -> Int64? {
        var info = stat()
        guard lstat(name(of: hash), &info) == 0 else { return nil }
        return now - (Int64(info.st_ctim.tv_sec) * 1_000 + Int64(info.st_ctim.tv_nsec) / 1_000_000)
    }

    /// The size of what lies under a blob's name; nil when nothing does.
    public func size(of hash: BlobHash) -> Int64? {
        var info = stat()
        return lstat(name(of: hash), &info) == 0 ? Int64(info.st_size) : nil
    }

    // MARK: - Files in use

    // Which files are open in a worker or one of its helpers.
    //
    // A worker that opens a blob, or gives a new one its name, holds a shared `flock` on it until the last descriptor of that
    // opening is closed, the one that a helper was sent included. A file that is deleted while it is open still takes its
    // room on the disk, so eviction passes over those that are locked.

    /// Marks a file as open. One that is being evicted at this moment stays unmarked, which costs accuracy and no more.
    func markInUse(_ file: FileDescriptor) {
        _ = flock(file.rawValue, LOCK_SH | LOCK_NB)
    }

    /// Whether a blob's file is open in a worker or a helper.
    public func isInUse(_ hash: BlobHash) -> Bool {
        let raw = Glibc.open(name(of: hash), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        // A file that isn't there, or can't be opened, is not in use.
        guard raw >= 0 else { return false }
        defer { Glibc.close(raw) }
        return flock(raw, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK
    }

    // MARK: - The disk

    /// Writes a little to a file without a name and syncs it: what works for it works for a blob of that size.
    public func probe(bytes: Int = 1 << 16) throws(CacheError) {
        let file = try makeFile()
        defer { withExtendedLifetime(file) {} }
        do {
            try file.descriptor.writeAll([UInt8](repeating: 0x5A, count: bytes))
        } catch {
            throw CacheError((error as? Errno) ?? .ioError, "Nothing can be written to \(directory)")
        }
        if let reason = syncing.failure(file.descriptor.rawValue) {
            throw CacheError(reason, "Nothing can be synced in \(directory)")
        }
    }
}
