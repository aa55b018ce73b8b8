internal import Synchronization

/// Notices that files were deleted or replaced while they were in use.
extension DatabaseGate {
    /// Checks that the database and its log still exist under their names, and restores a lock file that doesn't. On
    /// PostgreSQL, it takes this program's advisory locks again after a lost connection, and reads the server's clock if
    /// the last reading is old.
    ///
    /// - Throws: `replaced` if one of the two was deleted, or another file has its name: no other program sees later
    ///   writes.
    public func checkFile() async throws(JobsError) {
        switch engine {
        case .postgres(let session):
            try await perform { try session.check() }
        case .sqlite(let file):
            guard let loss = try file.checkNames() else { return }
            let isSaved = try await perform { try file.saveLog() }
            throw loss(isSaved)
        }
    }
}

extension SQLiteFile {
    /// - Returns: nil if all is there; for a lost log, the error, which depends on whether the log was saved.
    fileprivate func checkNames() throws(JobsError) -> ((Bool) -> JobsError)? {
        guard let identity else { return nil }
        guard !file.isReplaced(identity) else {
            throw JobsError(
                .replaced,
                """
                The database \(path) was deleted or replaced while it was in use. All writes since then are lost with it; \
                start again with the database that is there now, or with a copy made by 'worker db backup'.
                """)
        }
        try lockFile.restore()
        guard isLogReplaced else { return nil }
        return { [path] isSaved in
            JobsError(
                .replaced,
                "The log \(path)-wal was deleted or replaced while it was in use. It is a part of the database: leave it to "
                    + "SQLite. \(isSaved ? "Nothing is lost, since it was copied into the database." : "Its writes are lost.")"
            )
        }
    }

    /// The log exists as long as this connection is open: SQLite deletes it with the last connection.
    private var isLogReplaced: Bool {
        let path = file.name + "-wal"
        return log.withLock { known in
            guard let before = known else {
                known = DatabaseFile.identity(path)
                return false
            }
            return DatabaseFile.isReplaced(path, before)
        }
    }

    /// Copies a deleted log into the database: the log's content would be lost at the end of this connection. Not if
    /// another program has begun a new log: the old pages would damage what it has written.
    ///
    /// - Returns: whether the database has all of it. If not, the connection stays open until the process ends, since
    ///   SQLite copies the log when it closes the last connection.
    fileprivate func saveLog() throws -> Bool {
        let isSaved = try lockFile.withWriteLock {
            guard DatabaseFile.isEmpty(file.name + "-wal") else { return false }
            return try withoutTransaction { db in
                let row = try db.row("PRAGMA wal_checkpoint(PASSIVE)")
                return row.map { $0[0] as Int64? == 0 && $0[1] as Int64? == $0[2] as Int64? } ?? false
            }
        }
        if !isSaved, !isAbandoned.exchange(true, ordering: .relaxed) { _ = Unmanaged.passRetained(database) }
        return isSaved
    }
}
