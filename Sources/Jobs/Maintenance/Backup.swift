internal import Core
internal import Dispatch
internal import FoundationEssentials
internal import GRDB
internal import Glibc

extension Maintenance {
    /// Copies the database while it is in use, with SQLite's backup call, and checks the copy before it gets its name.
    ///
    /// - Parameter path: an older file there is replaced. If two copies are made at once, the one that is completed
    ///   last stays.
    /// - Throws: `refused` if the path is the database itself, a file beside it, or no regular file.
    public func backUp(to path: String) async throws(JobsError) {
        guard gate.sqlite != nil else {
            throw JobsError(
                .refused,
                "\(gate.path) is a PostgreSQL database. Copy it with: pg_dump --format=custom --file=\(path) URL")
        }
        let source = gate.path
        let result: Result<Void, any Error> = await withCheckedContinuation { continuation in
            // On its own connection and thread, since other tasks write meanwhile.
            DispatchQueue(label: "jobs.backup").async {
                continuation.resume(returning: Result { try Self.copy(source, to: path) })
            }
        }
        do {
            try result.get()
        } catch let error as JobsError {
            throw error
        } catch {
            throw JobsError(wrapping: error, path: source)
        }
    }

    private static func copy(_ source: String, to path: String) throws {
        guard !BackupPart.isPart(path, ofDatabase: source) else {
            throw JobsError(
                .refused, "\(path) is the database itself or belongs to it; a copy needs a place of its own.")
        }
        try BackupPart.refuseAllButFiles(path)
        let name = BackupPart.name(of: path)
        removeLeftoverCopies(in: BackupPart.folder(of: path)) { $0 == name }
        let part = try BackupPart(of: source, for: path)
        defer { part.close() }
        do {
            try fill(part.path, from: source)
            try part.finish(as: path)
        } catch {
            part.discard()
            throw error
        }
    }

    private static func fill(_ part: String, from source: String) throws {
        var reading = Configuration()
        reading.readonly = true
        reading.busyMode = .timeout(20)
        let database = try DatabaseQueue(path: source, configuration: reading)
        let complaints: [String]
        do {
            let copy = try DatabaseQueue(path: part)
            try database.backup(to: copy)
            // A single file, without a log.
            complaints = try copy.writeWithoutTransaction { db in
                try db.execute(sql: "PRAGMA journal_mode = DELETE")
                return try String.fetchAll(db, sql: "PRAGMA quick_check").filter { $0 != "ok" }
            }
            try copy.close()
        } catch let error as DatabaseError where isOfWriting(error) {
            // The error is about the copy, since the database is only read.
            throw JobsError(wrapping: error, path: part)
        }
        try database.close()
        guard complaints.isEmpty else {
            throw JobsError(
                .corrupt,
                "The copy of \(source) is damaged, and so is the database: \(complaints[0]). \(JobsError.advice)")
        }
    }

    private static func isOfWriting(_ error: DatabaseError) -> Bool {
        let readings: [ResultCode] = [.SQLITE_IOERR_READ, .SQLITE_IOERR_SHORT_READ, .SQLITE_IOERR_CORRUPTFS]
        return [.SQLITE_FULL, .SQLITE_IOERR, .SQLITE_CANTOPEN, .SQLITE_READONLY].contains(error.resultCode)
            && !readings.contains(error.extendedResultCode)
    }

    /// Removes unfinished copies of killed processes: those older than an hour to which no program is writing.
    ///
    /// - Parameter isCopy: whether a copy has this name when it is finished.
    public static func removeLeftoverCopies(in folder: String, where isCopy: (String) -> Bool) {
        BackupPart.removeLeftovers(in: folder) { name in
            // The last, since a copy may have any name.
            name.ranges(of: ".part.").last.map { part in
                let target = String(name[..<part.lowerBound])
                return isCopy(target) && BackupPart.isDraft(name, of: target)
            } ?? false
        }
    }
}

/// A copy in progress: it has its own name, so that two copies do not write to one file, and it is locked, so that it
/// can be distinguished from a copy that a killed process left.
struct BackupPart {
    let path: String
    private let descriptor: CInt

    /// - Parameter source: the copy gets this file's permissions.
    init(of source: String, for target: String) throws(JobsError) {
        path = "\(target).part.\(getpid()).\(String(UInt32.random(in: 0 ... .max), radix: 16))"
        var info = stat()
        guard stat(source, &info) == 0 else { throw Self.failure("\(source) can't be read") }
        descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Self.failure("The copy \(path) can't be made") }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0, fchmod(descriptor, info.st_mode & 0o777) == 0 else {
            let error = Self.failure("The copy \(path) can't be made")
            discard()
            close()
            throw error
        }
    }

    /// Whether a file's name is that of an unfinished copy `target`: `TARGET.part.PID.HEX`, or of its log.
    static func isDraft(_ name: String, of target: String) -> Bool {
        guard name.hasPrefix(target + ".part.") else { return false }
        let rest = name.dropFirst(target.count + 6).split(separator: ".", omittingEmptySubsequences: false)
        guard rest.count == 2, !rest[0].isEmpty, rest[0].allSatisfy({ ("0"..."9").contains($0) }) else { return false }
        let number = rest[1].split(separator: "-", omittingEmptySubsequences: false)
        return !number[0].isEmpty && number[0].allSatisfy { $0.isASCII && $0.isHexDigit }
            && (number.count == 1 || number.count == 2 && ["wal", "shm", "journal"].contains(number[1]))
    }

    /// Syncs the copy and gives it its name.
    func finish(as target: String) throws(JobsError) {
        // Checked again, since copying takes a while.
        try Self.refuseAllButFiles(target)
        guard fsync(descriptor) == 0 else { throw Self.failure("\(path) can't be synced") }
        guard rename(path, target) == 0 else { throw Self.failure("The copy \(target) can't be given its name") }
        try Self.sync(folder: Self.folder(of: target))
    }

    /// Removes the copy, unless it already has its name.
    func discard() { Self.unlinkAll(path) }

    /// Releases the lock; called once, after SQLite has closed the copy.
    func close() { Glibc.close(descriptor) }

    // MARK: - Leftovers

    /// After this many milliseconds, a copy to which no program is writing counts as a leftover.
    static let grace: Int64 = 3_600_000

    /// Removes unfinished copies of killed processes.
    ///
    /// - Parameter isPart: whether a name is that of an unfinished copy.
    static func removeLeftovers(in folder: String, where isPart: (String) -> Bool) {
        // The machine's clock, which also sets the times of files.
        let now = DatabaseGate.wallClock()
        // Best effort: if the folder can't be read, making the copy reports the error.
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        for name in names where isPart(name) {
            let path = "\(folder)/\(name)"
            var info = stat()
            // Recent copies are not even opened: closing one would end the locks that SQLite has on it in this process.
            guard lstat(path, &info) == 0, info.st_mode & S_IFMT == S_IFREG,
                abs(now - WallTime(milliseconds: Int64(info.st_mtim.tv_sec) * 1_000)) >= grace
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

    /// A copy may replace a regular file, but never a device, a FIFO or a folder.
    static func refuseAllButFiles(_ path: String) throws(JobsError) {
        guard !name(of: path).isEmpty else {
            throw JobsError(.refused, "'\(path)' is no name of a file; a copy needs one.")
        }
        var info = stat()
        // A missing file is created; writing the copy reports other errors.
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

    /// Whether a path names the database or a file beside it, even if that file does not exist.
    static func isPart(_ target: String, ofDatabase path: String) -> Bool {
        ["", "-wal", "-shm", "-journal", ".lock"].contains { ending in
            let own = path + ending
            if let file = DatabaseFile.identity(own), file == DatabaseFile.identity(target) { return true }
            return name(of: own) == name(of: target)
                && DatabaseFile.identity(folder(of: own)) == DatabaseFile.identity(folder(of: target))
        }
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
