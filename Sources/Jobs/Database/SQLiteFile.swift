internal import Core
internal import GRDB
internal import Glibc
internal import Synchronization

/// An open database file of SQLite.
///
/// Every write is a short transaction that begins IMMEDIATE under the write lock. Use it only on the gate's queue.
final class SQLiteFile: Sendable {
    let path: String
    /// The file to which `path` leads.
    let file: DatabaseFile
    let identity: DatabaseFile.Identity?
    /// The log's file, once it has been seen.
    let log = Mutex<DatabaseFile.Identity?>(nil)
    let lockFile: LockFile
    let database: DatabaseQueue
    let waiting: WriteWaiting
    let patience: Patience
    let syncs: Bool
    /// Whether the file must not be closed: closing it would lose rows of its deleted log, or damage a newer log.
    let isAbandoned = Atomic(false)
    /// Whether a write has already looked for ids at the end of their range, see ``UsedUpIDs``.
    let hasCheckedIDs = Atomic(false)
    /// Since when a reader prevents the log from being truncated.
    let logHeldSince = Mutex<WallTime?>(nil)
    /// Whether commits may return before they are synced; see `setDurability`.
    let isRelaxed = Atomic(false)

    /// Opens the file, and creates or upgrades it if needed.
    ///
    /// - Throws: `JobsError`, and errors of SQLite.
    init(path: String, missing: DatabaseGate.Missing, syncs: Bool, waiting: WriteWaiting) throws {
        self.path = path
        self.waiting = waiting
        self.syncs = syncs
        if missing == .refuse, access(path, F_OK) != 0 {
            guard errno == ENOENT || errno == ENOTDIR else {
                throw JobsError(
                    .cannotOpen, "The database \(path) can't be opened: \(String(cString: strerror(errno))).")
            }
            throw JobsError(
                .cannotOpen,
                "There is no database at \(path). Name one with --db or WORKER_DB, or make it with: worker init",
            )
        }
        let file = try DatabaseFile(path: path)
        self.file = file
        lockFile = try LockFile(path: file.name + ".lock")
        let patience = Patience(waiting, file: file, path: path)
        self.patience = patience
        PrivateFile.make(file.name)
        database = try DatabaseQueue(path: file.name, configuration: Self.configuration(patience))
        let migrator = Schema.migrator
        if try !Self.isReady(database, migrator, path: path) {
            var turn = TurnWait(waiting, file: file, path: path)
            while try !Self.prepare(database, migrator, lockFile, patience) { try turn.nap() }
        }
        try database.writeWithoutTransaction { db in
            db.removeAuthorizer()
            // Commits are durable: they are on disk when they return.
            try db.execute(sql: "PRAGMA synchronous = \(syncs ? "FULL" : "OFF")")
        }
        identity = file.identity
    }

    /// Opens the file of a read-only cache. It creates, locks and upgrades nothing.
    init(readOnly path: String) throws {
        self.path = path
        syncs = true
        waiting = .never
        patience = Patience()
        let file = try DatabaseFile(path: path)
        self.file = file
        identity = file.identity
        // A placeholder: a read-only database takes no locks.
        lockFile = try LockFile(path: "/dev/null")
        var configuration = Configuration()
        configuration.readonly = true
        database = try DatabaseQueue(path: Self.readOnlyName(of: file.name), configuration: configuration)
        let migrator = Schema.migrator
        let state = try database.read { db in
            try Self.takeSnapshot(db)
            return (done: try migrator.hasCompletedMigrations(db), applied: try migrator.appliedIdentifiers(db))
        }
        try Schema.refuseUnknown(state.applied, path: path)
        guard state.done else {
            throw JobsError(
                .refused, "The database \(path) is of an older version; upgrade it with: worker init --db \(path)")
        }
    }

    /// Closes the file, and checkpoints it if no other program has it open.
    func close() throws {
        if isAbandoned.load(ordering: .relaxed) { return }
        // The last program to close the database moves the log into it, which is a write. If the lock is not free,
        // another program has the database open, so this one is not the last.
        if try lockFile.withWriteLockIfFree({ try database.close() }) == nil { try database.close() }
    }

    /// Whether the database is usable as it is. Takes no lock that a writer could hold.
    private static func isReady(_ database: DatabaseQueue, _ migrator: DatabaseMigrator, path: String) throws -> Bool {
        let state = try database.read { db in
            try Self.takeSnapshot(db)
            return (
                done: try migrator.hasCompletedMigrations(db), applied: try migrator.appliedIdentifiers(db),
                mode: try String.fetchOne(db, sql: "PRAGMA journal_mode")
            )
        }
        // Checked first, so that a database of another version is not changed.
        try Schema.refuseUnknown(state.applied, path: path)
        return state.done && state.mode?.lowercased() == "wal"
    }

    /// Makes all that follows in this transaction see the same schema.
    ///
    /// A deferred transaction takes its snapshot at the first read of a table. GRDB reads its table of migrations; if
    /// that fails, it checks whether the table exists. Another program may create it between these two steps.
    private static func takeSnapshot(_ db: Database) throws {
        try db.execute(sql: "SELECT count(*) FROM sqlite_schema")
    }

    /// Creates or upgrades the schema.
    ///
    /// - Returns: false if another program is writing at this moment.
    private static func prepare(
        _ database: DatabaseQueue, _ migrator: DatabaseMigrator, _ lockFile: LockFile, _ patience: Patience,
    ) throws -> Bool {
        try unlessBusy(patience) {
            try lockFile.withWriteLockIfFree {
                try database.writeWithoutTransaction { db in try db.execute(sql: "PRAGMA journal_mode = WAL") }
                try migrator.migrate(database)
                return true
            }
        } ?? false
    }

    /// - Returns: nil if SQLite reports that another program holds a lock. It does not wait.
    static func unlessBusy<R>(_ patience: Patience, _ body: () throws -> R?) throws -> R? {
        patience.isPatient.store(false, ordering: .relaxed)
        defer { patience.isPatient.store(true, ordering: .relaxed) }
        do {
            return try body()
        } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY {
            return nil
        }
    }

    /// With an empty log, the database is opened as immutable: this needs no shared memory on a read-only disk.
    static func readOnlyName(of path: String) -> String {
        var info = stat()
        if stat(path + "-wal", &info) == 0, info.st_size > 0 { return path }
        return immutableName(of: path)
    }

    /// The database file without its log.
    static func immutableName(of path: String) -> String {
        let name = path.replacing("%", with: "%25").replacing("?", with: "%3f").replacing("#", with: "%23")
        return "file:\(name)?immutable=1"
    }

    private static func configuration(_ patience: Patience) -> Configuration {
        var configuration = Configuration()
        configuration.foreignKeysEnabled = false
        configuration.busyMode = .callback { tries in
            // Writes wait for their turn without holding a lock. This handler is for short waits, such as while another
            // program recovers the log after a crash.
            patience.wait(tries)
        }
        configuration.prepareDatabase { db in
            // Checkpoints run only under the write lock, never automatically at a commit.
            try db.execute(sql: "PRAGMA wal_autocheckpoint = 0")
            try db.execute(sql: "PRAGMA cache_size = -16000")
            PrivateTables.open(in: db)
        }
        return configuration
    }
}
