internal import Glibc
internal import SystemPackage

/// Which files are open in a worker or one of its helpers.
///
/// Whoever of them opens a blob, or gives a new one its name, holds a shared `flock` on it for as long as a descriptor of that
/// opening lives, the one that a helper was sent included. A file that is deleted while it is open still takes its room on the
/// disk, so eviction passes over those that are locked.
extension ContentCache {
    /// Marks a file as open. One that is being evicted at this moment stays unmarked, which costs accuracy and no more.
    func markInUse(_ file: FileDescriptor) {
        _ = flock(file.rawValue, LOCK_SH | LOCK_NB)
    }

    /// Whether a blob's file is open in a worker or a helper.
    public func isInUse(_ hash: BlobHash) -> Bool {
        let raw = Glibc.open(name(of: hash), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        // What isn't there, or can't be opened, is nobody's.
        guard raw >= 0 else { return false }
        defer { Glibc.close(raw) }
        return flock(raw, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK
    }
}
