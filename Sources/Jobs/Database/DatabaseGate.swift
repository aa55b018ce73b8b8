public import Core
internal import Dispatch
internal import GRDB
internal import Glibc
internal import Synchronization

/// The single gate to `worker.db`: every statement on the queue and the cache index goes through it.
///
/// Every write is a short transaction that begins IMMEDIATE under the write lock. All access runs on one serial
/// dispatch queue, so no call blocks Swift's cooperative threads, and a write that has begun is completed even if its
/// task is cancelled.
public final class DatabaseGate: Sendable {
    public let path: String
    let now: @Sendable () -> WallTime
    let uptime: @Sendable () -> Int64
    let leaseDuration: Int64
    /// The file to which `path` leads.
    let file: DatabaseFile
    let identity: DatabaseFile.Identity?
    /// The log's file, once it has been seen.
    let log = Mutex<DatabaseFile.Identity?>(nil)
    let lockFile: LockFile
    let database: DatabaseQueue
    let waiting: WriteWaiting
    let queue = DispatchQueue(label: "jobs.database")
    let isClosed = Atomic(false)
    /// Whether the file must not be closed, since another program has written another log for it.
    let isAbandoned = Atomic(false)
    /// Whether a write has already looked for ids at the end of their range, see ``UsedUpIDs``.
    let hasCheckedIDs = Atomic(false)
    let syncs: Bool
    let patience: Patience
    let slices = SliceLedger()
    /// Since when a reader prevents the log from being truncated.
    let logHeldSince = Mutex<WallTime?>(nil)
    /// Whether commits may return before they are synced; see `setDurability`.
    let isRelaxed = Atomic(false)

    /// How long a lease lasts without a heartbeat, in milliseconds. Only a backstop: a dead worker is detected by its
    /// lock.
    public static let leaseDuration: Int64 = 60_000

    /// What to do if the file is missing.
    public enum Missing: Sendable {
        case create
        case refuse
    }

    /// Opens the database, and creates or upgrades it if needed.
    ///
    /// - Parameters:
    ///   - now: the machine's clock.
    ///   - uptime: milliseconds since the machine was started, which distinguish a jump of `now` from passed time.
    ///   - leaseDuration: how long a lease lasts without a heartbeat, in milliseconds.
    ///   - syncs: whether a commit is on the disk when it returns. Off only for measurements.
    ///   - waiting: how long writes wait for other programs. Reads do not wait for writers, and neither does opening a
    ///     database of this version.
    /// - Throws: `cannotOpen`, `corrupt`, `tooNew`, `tooOld`, `diskFull`.
    public init(
        path: String,
        missing: Missing = .create,
        now: @escaping @Sendable () -> WallTime = DatabaseGate.wallClock,
        uptime: @escaping @Sendable () -> Int64 = DatabaseGate.bootClock,
        leaseDuration: Int64 = DatabaseGate.leaseDuration,
        syncs: Bool = true,
        waiting: WriteWaiting = WriteWaiting(),
    ) throws(JobsError) {
        self.path = path
        self.waiting = waiting
        self.leaseDuration = leaseDuration
        self.syncs = syncs
        self.now = now
        self.uptime = uptime
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
        do {
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
        } catch {
            throw JobsError(wrapping: error, path: path)
        }
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

    /// Opens the database of a read-only cache, such as one on a disk that is mounted read-only. It creates, locks and
    /// upgrades nothing.
    ///
    /// - Throws: `cannotOpen`, `corrupt`, `tooNew`, `tooOld`; `refused` for a database of an older version, which must
    ///   be upgraded first.
    public init(readOnly path: String) throws(JobsError) {
        self.path = path
        now = Self.wallClock
        uptime = Self.bootClock
        leaseDuration = Self.leaseDuration
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
        do {
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
        } catch {
            throw JobsError(wrapping: error, path: path)
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

    /// Closes the file, and checkpoints it if no other program has it open. Later calls fail.
    public func close() async throws(JobsError) {
        try await perform { [self] in
            // Set even if closing fails: SQLite crashes if a closed connection is used.
            isClosed.store(true, ordering: .relaxed)
            if isAbandoned.load(ordering: .relaxed) { return }
            // The last program to close the database moves the log into it, which is a write. If the lock is not free,
            // another program has the database open, so this one is not the last.
            if try lockFile.withWriteLockIfFree({ try database.close() }) == nil { try database.close() }
        }
    }

    /// The path of the file without symbolic links.
    public var fileName: String { file.name }

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

extension DatabaseGate {
    /// The current time of the machine's clock.
    public var currentTime: WallTime { now() }
}
