internal import FoundationEssentials
internal import Glibc

/// A copy that is being made: under a name of its own, so that two at once don't write to one file, and locked, so that
/// one can be told from what a kill has left.
struct BackupPart {
    let path: String
    private let descriptor: CInt

    /// - Parameter source: the copy is readable for those who may read this file, and for nobody else.
    init(of source: String, for target: String) throws(JobsError) {
        path = "\(target).part.\(getpid()).\(String(UInt32.random(in: 0 ... .max), radix: 16))"
        var info = stat()
        guard stat(source, &info) == 0 else { throw Self.failure("\(source) can't be looked at") }
        descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Self.failure("The copy \(path) can't be made") }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0, fchmod(descriptor, info.st_mode & 0o777) == 0 else {
            let error = Self.failure("The copy \(path) can't be made")
            discard()
            close()
            throw error
        }
    }

    /// Syncs it and gives it its name.
    func finish(as target: String) throws(JobsError) {
        // Once more: it has taken a while.
        try Self.refuseAllButFiles(target)
        guard fsync(descriptor) == 0 else { throw Self.failure("\(path) can't be synced") }
        guard rename(path, target) == 0 else { throw Self.failure("The copy \(target) can't be given its name") }
        try Self.sync(folder: Self.folder(of: target))
    }

    /// Removes it, unless it has its name already.
    func discard() { Self.unlinkAll(path) }

    /// Ends the lock; once, when SQLite has closed it.
    func close() { Glibc.close(descriptor) }

    // MARK: - What a kill has left

    /// Milliseconds after which a copy that nobody is at is taken for a leftover.
    static let grace: Int64 = 3_600_000

    /// Removes what earlier copies have left.
    ///
    /// - Parameter isPart: whether a name is that of an unfinished copy.
    static func removeLeftovers(in folder: String, where isPart: (String) -> Bool) {
        // By the machine's clock, as the times of files are.
        let now = JobStore.wallClock()
        // A folder that can't be read shows when the copy is made.
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        for name in names where isPart(name) {
            let path = "\(folder)/\(name)"
            var info = stat()
            // Young ones aren't even opened: to close one would end the locks that SQLite has on it in this process.
            guard lstat(path, &info) == 0, info.st_mode & S_IFMT == S_IFREG,
                abs(now - Int64(info.st_mtim.tv_sec) * 1_000) >= grace
            else { continue }
            let file = Glibc.open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
            guard file >= 0 else { continue }
            defer { Glibc.close(file) }
            if flock(file, LOCK_EX | LOCK_NB) == 0 { unlinkAll(path) }
        }
    }

    private static func unlinkAll(_ path: String) {
        for ending in ["", "-journal", "-wal", "-shm"] { unlink(path + ending) }
    }

    // MARK: - Names

    static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    static func name(of path: String) -> String {
        path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path
    }

    /// A copy takes the place of an older one, and never that of a device, a FIFO or a folder.
    static func refuseAllButFiles(_ path: String) throws(JobsError) {
        guard !name(of: path).isEmpty else {
            throw JobsError(.refused, "'\(path)' is no name of a file; a copy needs one.")
        }
        var info = stat()
        // What isn't there is made, and what can't be looked at shows when the copy is made.
        guard stat(path, &info) == 0, info.st_mode & S_IFMT != S_IFREG else { return }
        let kind =
            switch info.st_mode & S_IFMT {
            case S_IFDIR: "a folder"
            case S_IFIFO: "a FIFO"
            case S_IFSOCK: "a socket"
            default: "a device"
            }
        throw JobsError(.refused, "\(path) is \(kind); a copy is written to a file of its own or in the place of one.")
    }

    /// Whether a path leads to the database, or to one of the files beside it, be they there or not.
    static func isPart(_ target: String, ofDatabase path: String) -> Bool {
        ["", "-wal", "-shm", "-journal", ".lock"].contains { ending in
            let own = path + ending
            if let file = identity(own), file == identity(target) { return true }
            return name(of: own) == name(of: target) && identity(folder(of: own)) == identity(folder(of: target))
        }
    }

    private struct Identity: Equatable {
        let device: dev_t
        let number: ino_t
    }

    private static func identity(_ path: String) -> Identity? {
        var info = stat()
        return stat(path, &info) == 0 ? Identity(device: info.st_dev, number: info.st_ino) : nil
    }

    private static func sync(folder: String) throws(JobsError) {
        let file = Glibc.open(folder, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw failure("\(folder) can't be opened") }
        defer { Glibc.close(file) }
        guard fsync(file) == 0 else { throw failure("\(folder) can't be synced") }
    }

    private static func failure(_ what: String) -> JobsError {
        let code = errno
        return JobsError(code == ENOSPC ? .diskFull : .inputOutput, "\(what): \(String(cString: strerror(code))).")
    }
}
