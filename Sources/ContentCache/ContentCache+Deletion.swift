public import Core
internal import Glibc
internal import Synchronization
internal import SystemPackage

// This file decides which program may delete which file. All locks are `flock`, so the kernel releases them if a
// program dies, and no transaction of the database is involved.
//
// A worker that opens a blob, or names a new one, holds a shared lock on the file until the last descriptor of that
// open file is closed, including descriptors sent to helpers. Before a worker records that blobs exist, it holds the
// files of all blobs that it has named.
//
// A program deletes a name under `blobs/`, or moves it to quarantine, only under the lock of the cache's folder, which
// one program has at a time. It deletes the name only under an exclusive lock on its file, which it does not get while
// a worker holds a shared lock.

/// The right to delete or move names: one program has it at a time, until it releases this object.
public final class DeletionTurn: Sendable {
    private let folder: CInt

    fileprivate init(folder: CInt) { self.folder = folder }

    deinit { Glibc.close(folder) }
}

/// A blob that no worker has open, and that none can hold until this object is released.
public final class UnusedBlob: Sendable {
    public let hash: BlobHash
    /// Negative if nothing under the name can be opened.
    private let file: CInt
    /// True if no file had the name. A file that has it later is new and must not be deleted.
    fileprivate let wasMissing: Bool
    /// The path of the empty file that was made to hold the lock; nil once it is deleted, since the name may be another
    /// file's by then.
    private let placeholder: Mutex<String?>

    fileprivate init(_ hash: BlobHash, _ file: CInt, wasMissing: Bool = false, placeholder: String? = nil) {
        self.hash = hash
        self.file = file
        self.wasMissing = wasMissing
        self.placeholder = Mutex(placeholder)
    }

    deinit {
        removePlaceholder()
        if file >= 0 { Glibc.close(file) }
    }

    /// - Returns: whether there was one.
    @discardableResult
    fileprivate func removePlaceholder() -> Bool {
        placeholder.withLock { path in
            guard let name = path else { return false }
            Glibc.unlink(name)
            path = nil
            return true
        }
    }
}

extension ContentCache {
    /// How long a program waits for another program's lock, in milliseconds. Programs hold each lock for a few
    /// milliseconds. But the lock is not handed over in order, so one of many programs on a busy machine may wait for
    /// seconds.
    private static let lockPatience = 20_000

    /// Waits for the right to delete names.
    ///
    /// - Throws: `disk` if another program keeps it too long, for example because it was stopped.
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

    /// Locks a blob that may be deleted. The caller holds a ``DeletionTurn``, so the name stays as it is.
    ///
    /// - Returns: nil if a worker or a helper has the blob open: a deleted open file would still occupy its space.
    /// - Throws: `disk`, `diskFull` if the folder in front of a bucket takes no file.
    public func unused(_ hash: BlobHash) throws(CacheError) -> UnusedBlob? {
        guard let blob = unusedFile(hash) else { return nil }
        guard blob.wasMissing, backing != nil else { return blob }
        guard let file = try placeholder(of: hash) else { return nil }
        return UnusedBlob(hash, file, placeholder: name(of: hash))
    }

    /// Like ``unused(_:)``, but ignores the backing store.
    func unusedFile(_ hash: BlobHash) -> UnusedBlob? {
        let file = Glibc.open(name(of: hash), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        // A file that can't be opened for want of descriptors or memory may be in use.
        if file < 0, [EMFILE, ENFILE, ENOMEM].contains(errno) { return nil }
        let blob = UnusedBlob(hash, file, wasMissing: file < 0 && errno == ENOENT)
        return blob.isLocked() ? blob : nil
    }

    /// Opens a blob and keeps it from being deleted for as long as the file is open.
    ///
    /// - Returns: nil if there is none of this size.
    /// - Throws: `disk` if another program is about to delete it and takes too long.
    public func hold(_ hash: BlobHash, size: Int64) throws(CacheError) -> BlobFile? {
        try heldAndStored(hash, size: size)
    }

    /// Like ``hold(_:size:)``, but ignores the backing store.
    func held(_ hash: BlobHash, size: Int64) throws(CacheError) -> BlobFile? {
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
            // It was deleted while this program waited, and published again.
            if named.st_ino != info.st_ino { continue }
            return info.st_mode & S_IFMT == S_IFREG && Int64(info.st_size) == size ? file : nil
        }
    }

    /// Lets programs delete a blob again although its file is still open.
    public func letGo(_ file: BlobFile) { flock(file.descriptor.rawValue, LOCK_UN) }

    /// Marks a file as open. A new file without a name always gets the lock. A file that is being deleted at this
    /// moment does not, and occupies its space until it is closed.
    func markInUse(_ file: FileDescriptor) {
        _ = flock(file.rawValue, LOCK_SH | LOCK_NB)
    }

    /// - Returns: true if it has the lock, or if the file system has no locks.
    static func lock(_ file: CInt, _ kind: CInt, patience milliseconds: Int = 0) -> Bool {
        for _ in 0...milliseconds {
            if flock(file, kind | LOCK_NB) == 0 || errno != EWOULDBLOCK { return true }
            if milliseconds > 0 { usleep(1_000) }
        }
        return false
    }

    /// Deletes blobs. A missing file is no error. A process that has it open can still read its bytes.
    ///
    /// - Parameter turn: the right that keeps the names as they are.
    /// - Returns: the error of each blob, in order; nil for one that is deleted.
    public func remove(_ blobs: [UnusedBlob], in turn: DeletionTurn) -> [CacheError?] {
        defer { withExtendedLifetime((blobs, turn)) {} }
        if !blobs.isEmpty, let error = failure({ () throws(CacheError) in try backing?.remove(blobs.map(\.hash)) }) {
            return blobs.map { _ in error }
        }
        return blobs.map { blob in failure { () throws(CacheError) in try remove(blob) } }
    }

    private func remove(_ blob: UnusedBlob) throws(CacheError) {
        guard !blob.removePlaceholder(), !blob.wasMissing, Glibc.unlink(name(of: blob.hash)) != 0, errno != ENOENT
        else {
            return
        }
        // A folder may lie under a blob's name; it is moved to quarantine, for a person to inspect.
        if errno == EISDIR || errno == EPERM, isDirectory(blob.hash) { return try moveAside(blob.hash) }
        throw CacheError(Errno(rawValue: errno), "The blob \(blob.hash) can't be deleted")
    }

    private func isDirectory(_ hash: BlobHash) -> Bool {
        let saved = errno
        defer { errno = saved }
        var info = stat()
        return lstat(name(of: hash), &info) == 0 && info.st_mode & S_IFMT == S_IFDIR
    }

    /// Moves a blob's bytes to quarantine, for a person to inspect.
    ///
    /// - Parameter isMeant: whether the file under the name is the damaged one; another file may have replaced it.
    func moveToQuarantine(_ hash: BlobHash, if isMeant: (stat) -> Bool = { _ in true }) throws(CacheError) {
        let turn = try turnToDelete()
        defer { withExtendedLifetime(turn) {} }
        var info = stat()
        guard lstat(name(of: hash), &info) == 0, isMeant(info) else { return }
        try moveAside(hash)
    }

    /// The caller holds a ``DeletionTurn``.
    private func moveAside(_ hash: BlobHash) throws(CacheError) {
        let target = quarantine.appending("\(hash.hex).\(getpid()).\(UInt32.random(in: 0 ... .max))")
        var failed = rename(name(of: hash), target.string) != 0
        if failed, errno == ENOENT, isThere(hash) {
            // The quarantine folder itself was removed.
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
