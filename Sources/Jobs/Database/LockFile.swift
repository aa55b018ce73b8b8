internal import Glibc
internal import Synchronization
internal import SystemPackage

/// `worker.db.lock`: an exclusive `flock` for the program that writes, and one locked byte for every live worker, for
/// its helpers, for every batch that `worker warm` is warming, and for every job whose list is being added.
///
/// The file has two purposes. The `flock` prevents the WAL-reset race of SQLite 3.7.0–3.51.2, in which a commit during
/// a second checkpoint can be lost. The byte locks (open-file-description locks, which are independent of `flock`)
/// distinguish a dead worker from a slow one at once: the kernel releases them when the process ends.
final class LockFile: Liveness {
    private let descriptor: FileDescriptor
    private let path: String
    /// The bytes that this object has locked: of workers, batches and additions.
    private let held = Mutex<Set<Int64>>([])
    /// The jobs whose lists are added through this object: fcntl(2) reports only the locks of other descriptors.
    private let additions = Mutex<Set<JobID>>([])

    init(path: String) throws(JobsError) {
        self.path = path
        do {
            descriptor = try Self.open(path)
        } catch {
            throw JobsError(.cannotOpen, "The lock file \(path) can't be opened: \(error).")
        }
    }

    /// A user who may only read the lock file can still check whether workers are alive, and read the database.
    private static func open(_ path: String) throws -> FileDescriptor {
        do {
            return try FileDescriptor.open(
                FilePath(path), .readWrite, options: [.create, .closeOnExec],
                permissions: [.ownerReadWrite, .groupRead])
        } catch let error as Errno where [.permissionDenied, .notPermitted, .readOnlyFileSystem].contains(error) {
            return try FileDescriptor.open(FilePath(path), .readOnly, options: [.closeOnExec])
        }
    }

    deinit {
        // Best effort: the locks end with the descriptor even if closing it fails.
        try? descriptor.close()
    }

    /// Locks the same bytes again if the file was deleted or replaced: programs that open the new file would take this
    /// program for dead. The locks on the old file end.
    func restore() throws(JobsError) {
        var info = stat()
        guard fstat(descriptor.rawValue, &info) == 0 else { return }
        let mine = DatabaseFile.Identity(device: UInt64(info.st_dev), inode: UInt64(info.st_ino))
        guard path != "/dev/null", DatabaseFile.isReplaced(path, mine) else { return }
        do {
            // Under the mutex, so that no byte is locked in between, which the new file would lack.
            try held.withLock { held in
                let file = try Self.open(path)
                defer { try? file.close() }  // Best effort: the locks belong to the duplicate as well.
                for byte in held where !Self.set(F_WRLCK, worker: byte, of: file) {
                    throw Errno(rawValue: errno)
                }
                // dup2 clears the flag that keeps the descriptor from other programs.
                guard dup2(file.rawValue, descriptor.rawValue) >= 0,
                    fcntl(descriptor.rawValue, F_SETFD, FD_CLOEXEC) == 0
                else { throw Errno(rawValue: errno) }
            }
        } catch {
            throw JobsError(.cannotOpen, "The lock file \(path) was deleted, and can't be opened again: \(error).")
        }
    }

    /// Runs `body` while no other worker or command writes or checkpoints. Blocks; call it on the database's queue.
    func withWriteLock<R>(_ body: () throws -> R) throws -> R {
        while flock(descriptor.rawValue, LOCK_EX) != 0 {
            guard errno == EINTR else { throw JobsError(.inputOutput, "flock failed: \(Errno(rawValue: errno)).") }
        }
        defer { flock(descriptor.rawValue, LOCK_UN) }
        return try body()
    }

    /// Runs `body` only if the lock is free at this moment.
    ///
    /// - Returns: nil if another program holds the lock.
    func withWriteLockIfFree<R>(_ body: () throws -> R) throws -> R? {
        while flock(descriptor.rawValue, LOCK_EX | LOCK_NB) != 0 {
            if errno == EWOULDBLOCK { return nil }
            guard errno == EINTR else { throw JobsError(.inputOutput, "flock failed: \(Errno(rawValue: errno)).") }
        }
        defer { flock(descriptor.rawValue, LOCK_UN) }
        return try body()
    }

    /// Marks a worker as alive until this process ends or releases it.
    func hold(worker: Int64) throws(JobsError) {
        guard set(F_WRLCK, worker: worker) else {
            guard errno == EAGAIN || errno == EACCES else {
                throw JobsError(.cannotOpen, "The lock file \(path) can't be locked: \(Errno(rawValue: errno)).")
            }
            throw JobsError(.internalError, "Worker \(worker) is marked as alive by another process.")
        }
    }

    func letGo(worker: Int64) {
        _ = set(F_UNLCK, worker: worker)
    }

    /// Whether another open descriptor of the lock file holds this worker's byte.
    func isAlive(worker: Int64) -> Bool {
        var lock = Self.range(F_WRLCK, worker: worker)
        guard fcntl(descriptor.rawValue, Self.getLock, &lock) == 0 else { return true }
        return Int32(lock.l_type) != F_UNLCK
    }

    /// The bytes from here on are for the helpers of workers.
    private static let firstHelpers: Int64 = 1 << 61

    private static func byte(ofHelpersOf worker: Int64) -> Int64 { firstHelpers + (worker & (1 << 59 - 1)) }

    /// A descriptor for the helpers of a worker: they count as alive until the last process closes it. The caller
    /// closes it. It is read-only, its lock is a shared one, and the helper's sandbox allows no call that locks files.
    func helperMark(of worker: Int64) throws(JobsError) -> FileDescriptor {
        do {
            let mark = try FileDescriptor.open(FilePath(path), .readOnly, options: [.closeOnExec])
            var lock = Self.range(F_RDLCK, worker: Self.byte(ofHelpersOf: worker))
            guard fcntl(mark.rawValue, Self.setLock, &lock) == 0 else {
                let error = Errno(rawValue: errno)
                try mark.close()
                throw error
            }
            return mark
        } catch {
            throw JobsError(.cannotOpen, "The lock file \(path) can't be locked for helpers: \(error).")
        }
    }

    /// Whether a helper of this worker, or the worker itself, has the descriptor of ``helperMark(of:)`` open.
    func areHelpersAlive(of worker: Int64) -> Bool {
        var lock = Self.range(F_WRLCK, worker: Self.byte(ofHelpersOf: worker))
        guard fcntl(descriptor.rawValue, Self.getLock, &lock) == 0 else { return true }
        return Int32(lock.l_type) != F_UNLCK
    }

    /// Whether another open descriptor of the lock file holds the byte of any worker.
    var isAnyWorkerAlive: Bool {
        var lock = Self.range(F_WRLCK, worker: 1)
        lock.l_len = off_t(Self.firstBatch) - 1
        guard fcntl(descriptor.rawValue, Self.getLock, &lock) == 0 else { return true }
        return Int32(lock.l_type) != F_UNLCK
    }

    /// The bytes from here on are for batches.
    private static let firstBatch: Int64 = 1 << 60

    /// Marks a batch as being warmed until this object goes or the process ends.
    ///
    /// - Returns: false if another open descriptor of the lock file holds the mark.
    func hold(batch key: String) -> Bool {
        // FNV-1a: the same key has the same byte in every process.
        let hash = key.utf8.reduce(UInt32(2_166_136_261)) { ($0 ^ UInt32($1)) &* 16_777_619 }
        return set(F_WRLCK, worker: Self.firstBatch + Int64(hash))
    }

    /// The bytes from here on are for jobs whose lists are being added.
    private static let firstAddition: Int64 = firstBatch + (1 << 40)

    private static func byte(ofAddition job: JobID) -> Int64 { firstAddition + (job & (1 << 59 - 1)) }

    /// Marks a job as being added, until ``letGo(addition:)`` or the end of this process.
    ///
    /// - Returns: false if another process has marked it, or this user may only read the lock file.
    func hold(addition job: JobID) -> Bool {
        guard set(F_WRLCK, worker: Self.byte(ofAddition: job)) else { return false }
        additions.withLock { _ = $0.insert(job) }
        return true
    }

    func letGo(addition job: JobID) {
        _ = set(F_UNLCK, worker: Self.byte(ofAddition: job))
        additions.withLock { _ = $0.remove(job) }
    }

    /// Whether a live program is adding the job's list.
    func isBeingAdded(_ job: JobID) -> Bool {
        if additions.withLock({ $0.contains(job) }) { return true }
        var lock = Self.range(F_WRLCK, worker: Self.byte(ofAddition: job))
        guard fcntl(descriptor.rawValue, Self.getLock, &lock) == 0 else { return true }
        return Int32(lock.l_type) != F_UNLCK
    }

    private func set(_ type: Int32, worker: Int64) -> Bool {
        held.withLock { held in
            guard Self.set(type, worker: worker, of: descriptor) else { return false }
            if type == F_UNLCK { held.remove(worker) } else { held.insert(worker) }
            return true
        }
    }

    private static func set(_ type: Int32, worker: Int64, of file: FileDescriptor) -> Bool {
        var lock = range(type, worker: worker)
        return fcntl(file.rawValue, setLock, &lock) == 0
    }

    private static func range(_ type: Int32, worker: Int64) -> Glibc.flock {
        var lock = Glibc.flock()
        lock.l_type = Int16(type)
        lock.l_whence = Int16(SEEK_SET)
        lock.l_start = off_t(worker)
        lock.l_len = 1
        return lock
    }

    // F_OFD_GETLK and F_OFD_SETLK of fcntl(2); the C library hides them behind _GNU_SOURCE.
    private static let getLock: Int32 = 36
    private static let setLock: Int32 = 37
}
