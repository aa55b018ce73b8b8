internal import Dispatch
internal import GRDB
internal import Glibc

extension JobStore {
    /// Copies the database while it is in use, by SQLite's own means, and checks the copy before it gets its name.
    ///
    /// - Parameter path: an older file there is replaced.
    public func backUp(to path: String) async throws(JobsError) {
        let source = self.path
        let result: Result<Void, any Error> = await withCheckedContinuation { continuation in
            // On a connection and a thread of its own: others write meanwhile.
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
        let part = path + ".part"
        for leftover in [part, part + "-journal", part + "-wal", part + "-shm"] { unlink(leftover) }
        do {
            var reading = Configuration()
            reading.readonly = true
            reading.busyMode = .timeout(20)
            let database = try DatabaseQueue(path: source, configuration: reading)
            let copy = try DatabaseQueue(path: part)
            try database.backup(to: copy)
            // One file, without a log beside it.
            let complaints = try copy.writeWithoutTransaction { db in
                try db.execute(sql: "PRAGMA journal_mode = DELETE")
                return try String.fetchAll(db, sql: "PRAGMA quick_check").filter { $0 != "ok" }
            }
            try copy.close()
            try database.close()
            guard complaints.isEmpty else {
                throw JobsError(
                    .corrupt,
                    "The copy of \(source) is damaged, and so is the database: \(complaints[0]). \(JobsError.advice)")
            }
            try sync(part)
            guard rename(part, path) == 0 else { throw failure("The copy \(path) can't be given its name") }
            try sync(folder(of: path))
        } catch {
            unlink(part)
            throw error
        }
    }

    private static func sync(_ path: String) throws {
        let file = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw failure("\(path) can't be opened") }
        defer { Glibc.close(file) }
        guard fsync(file) == 0 else { throw failure("\(path) can't be synced") }
    }

    private static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    private static func failure(_ what: String) -> JobsError {
        let code = errno
        return JobsError(code == ENOSPC ? .diskFull : .inputOutput, "\(what): \(String(cString: strerror(code))).")
    }
}
