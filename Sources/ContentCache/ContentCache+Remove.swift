internal import Glibc
internal import SystemPackage

extension ContentCache {
    /// Deletes a blob's file. One that isn't there is no failure. Whoever has it open keeps its bytes.
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
}
