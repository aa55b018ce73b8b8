internal import Glibc
internal import SystemPackage

/// Which files are open in a worker or one of its helpers.
///
/// A worker that opens a blob, or gives a new one its name, holds a shared `flock` on it until the last descriptor of that
/// opening is closed, the one that a helper was sent included. A file that is deleted while it is open still takes its room on the
/// disk, so eviction passes over those that are locked.
extension ContentCache {
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
}
