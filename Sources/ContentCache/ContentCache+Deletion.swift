public import Core
internal import Glibc
internal import SystemPackage

// Which program may delete which file. All of it is `flock`, so that the kernel lets go for a program that dies, and none of
// it is a transaction of the database.
//
// A worker that opens a blob, or gives a new one its name, holds a shared lock on the file until the last descriptor of that
// opening is closed, the one that a helper was sent included. A worker that is about to write down that a blob exists holds
// the files of all blobs that it has named.
//
// A name under `blobs/` is deleted, or moved to quarantine, only under the lock of the cache's folder, which one program has
// at a time; and it is deleted only under an exclusive lock on its file, which no program gets while a worker holds a shared
// one.

/// The right to delete names, or to move them away: one program has it at a time, until this is let go.
public final class DeletionTurn: Sendable {
    private let folder: CInt

    fileprivate init(folder: CInt) { self.folder = folder }

    deinit { Glibc.close(folder) }
}

/// A blob that no worker has open, and that none can hold until this is let go.
public final class UnusedBlob: Sendable {
    public let hash: BlobHash
    /// Negative where nothing that can be opened lies under the name.
    private let file: CInt

    fileprivate init(_ hash: BlobHash, _ file: CInt) {
        self.hash = hash
        self.file = file
    }

    deinit { if file >= 0 { Glibc.close(file) } }
}

extension ContentCache {
    /// How long a program waits for another's lock, in milliseconds: the others hold theirs for some milliseconds each.
    private static let lockPatience = 5_000

    /// Waits for the turn to delete names.
    ///
    /// - Throws: `disk` when another program doesn't let go of it, such as one that was stopped.
    public func turnToDelete() throws(CacheError) -> DeletionTurn {
        let raw: CInt
        do throws(Errno) {
            raw = try open(folder: directory)
        } catch {
            throw CacheError(error, "The cache \(directory) can't be opened")
        }
        let turn = DeletionTurn(folder: raw)
        guard Self.lock(raw, LOCK_EX, patience: Self.lockPatience) else {
            throw CacheError(.disk, "Another program is deleting files in the cache \(directory), and takes long.")
        }
        return turn
    }

    /// A blob that may be deleted. To be asked under a ``DeletionTurn``, which keeps its name as it is.
    ///
    /// - Returns: nil for a blob that a worker or a helper has open: deleted, it would still take its room.
    public func unused(_ hash: BlobHash) -> UnusedBlob? {
        let blob = UnusedBlob(hash, Glibc.open(name(of: hash), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK))
        return blob.isLocked() ? blob : nil
    }

    /// Opens a blob and keeps it from being deleted for as long as the file is open.
    ///
    /// - Returns: nil where there is none of this size.
    /// - Throws: `disk` when another program is about to delete it, and doesn't come to an end.
    public func hold(_ hash: BlobHash, size: Int64) throws(CacheError) -> BlobFile? {
        while true {
            let raw = Glibc.open(name(of: hash), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
            if raw < 0 {
                if errno == ENOENT || errno == ELOOP || errno == ENXIO { return nil }
                throw CacheError(Errno(rawValue: errno), "The blob \(hash) can't be opened")
            }
            let file = BlobFile(owning: FileDescriptor(rawValue: raw))
            guard Self.lock(raw, LOCK_SH, patience: Self.lockPatience) else {
                throw CacheError(.disk, "Another program is deleting the blob \(hash), and takes long.")
            }
            var info = stat()
            var named = stat()
            guard fstat(raw, &info) == 0, lstat(name(of: hash), &named) == 0 else { return nil }
            // Deleted while we waited, and already there anew.
            if named.st_ino != info.st_ino { continue }
            return info.st_mode & S_IFMT == S_IFREG && Int64(info.st_size) == size ? file : nil
        }
    }

    /// Lets programs delete a blob again whose file is still open.
    public func letGo(_ file: BlobFile) { flock(file.descriptor.rawValue, LOCK_UN) }

    /// Marks a file as open. A new file without a name always gets its mark. One that is deleted at this moment doesn't, and
    /// takes its room until it is closed.
    func markInUse(_ file: FileDescriptor) {
        _ = flock(file.rawValue, LOCK_SH | LOCK_NB)
    }

    /// - Returns: whether it has the lock, or the file system knows none.
    fileprivate static func lock(_ file: CInt, _ kind: CInt, patience milliseconds: Int = 0) -> Bool {
        for _ in 0...milliseconds {
            if flock(file, kind | LOCK_NB) == 0 || errno != EWOULDBLOCK { return true }
            if milliseconds > 0 { usleep(1_000) }
        }
        return false
    }

    /// Deletes a blob's file. One that isn't there is no failure. A process that has it open keeps its bytes.
    ///
    /// - Parameter turn: what keeps its name as it is.
    public func remove(_ blob: UnusedBlob, in turn: DeletionTurn) throws(CacheError) {
        defer { withExtendedLifetime((blob, turn)) {} }
        guard Glibc.unlink(name(of: blob.hash)) != 0, errno != ENOENT else { return }
        // Something that is no file at all may lie in a blob's place; it is kept for a person to look at.
        if errno == EISDIR || errno == EPERM, isDirectory(blob.hash) { return try moveAside(blob.hash) }
        throw CacheError(Errno(rawValue: errno), "The blob \(blob.hash) can't be deleted")
    }

    private func isDirectory(_ hash: BlobHash) -> Bool {
        let saved = errno
        defer { errno = saved }
        var info = stat()
        return lstat(name(of: hash), &info) == 0 && info.st_mode & S_IFMT == S_IFDIR
    }

    /// Puts a blob's bytes aside, where a person can look at them.
    ///
    /// - Parameter isMeant: whether what lies there now is what was found damaged; something else may have taken its place.
    func moveToQuarantine(_ hash: BlobHash, if isMeant: (stat) -> Bool = { _ in true }) throws(CacheError) {
        let turn = try turnToDelete()
        defer { withExtendedLifetime(turn) {} }
        var info = stat()
        guard lstat(name(of: hash), &info) == 0, isMeant(info) else { return }
        try moveAside(hash)
    }

    /// To be called under a ``DeletionTurn``.
    private func moveAside(_ hash: BlobHash) throws(CacheError) {
        let target = quarantine.appending("\(hash.hex).\(getpid()).\(UInt32.random(in: 0 ... .max))")
        var failed = rename(name(of: hash), target.string) != 0
        if failed, errno == ENOENT, isThere(hash) {
            // The quarantine itself was removed.
            try makeFolders()
            failed = rename(name(of: hash), target.string) != 0
        }
        if failed, errno != ENOENT {
            throw CacheError(Errno(rawValue: errno), "The blob \(hash) can't be moved to quarantine")
        }
    }
}

extension UnusedBlob {
    fileprivate func isLocked() -> Bool { file < 0 || ContentCache.lock(file, LOCK_EX) }
}
