internal import Dispatch
internal import GRDB

extension JobStore {
    /// Copies the database while it is in use, by SQLite's own means, and checks the copy before it gets its name.
    ///
    /// - Parameter path: an older file there is replaced. Of two copies made at once, the one that is ready last stays.
    /// - Throws: `refused` where that is the database itself or a file beside it, or anything but a regular file.
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
        guard !BackupPart.isPart(path, ofDatabase: source) else {
            throw JobsError(
                .refused, "\(path) is the database itself or belongs to it; a copy needs a place of its own.")
        }
        try BackupPart.refuseAllButFiles(path)
        let name = BackupPart.name(of: path)
        removeLeftoverCopies(in: BackupPart.folder(of: path)) { $0.hasPrefix(name + ".part") }
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
            // One file, without a log beside it.
            complaints = try copy.writeWithoutTransaction { db in
                try db.execute(sql: "PRAGMA journal_mode = DELETE")
                return try String.fetchAll(db, sql: "PRAGMA quick_check").filter { $0 != "ok" }
            }
            try copy.close()
        } catch let error as DatabaseError where isOfWriting(error) {
            // The database is only read.
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

    /// Removes unfinished copies that a kill has left: those that are older than an hour and that nobody is at.
    ///
    /// - Parameter isPart: whether a name is that of one.
    public static func removeLeftoverCopies(in folder: String, where isPart: (String) -> Bool) {
        BackupPart.removeLeftovers(in: folder, where: isPart)
    }
}
