public import Core
internal import Dispatch
internal import GRDB
internal import Glibc
internal import Synchronization

/// The one gate to `worker.db`: every statement on the queue and the cache index goes through it.
///
/// Every write is a short transaction that begins IMMEDIATE under the write lock. All access runs on one serial
/// dispatch queue, so nothing blocks Swift's cooperative threads, and a write that has begun is finished even if the
/// task that asked for it is cancelled.
public final class DatabaseGate: Sendable {
    public let path: String
    let now: @Sendable () -> WallTime
    let uptime: @Sendable () -> Int64
    let leaseDuration: Int64
    /// The file that `path` leads to.
    let file: DatabaseFile
    private let identity: DatabaseFile.Identity?
    let lockFile: LockFile
    let database: DatabaseQueue
    let waiting: WriteWaiting
    let queue = DispatchQueue(label: "jobs.database")
    let isClosed = Atomic(false)
    let syncs: Bool
    let patience: Patience
    let slices = SliceLedger()
    /// Since when a reader keeps the log from being cut.
    let logHeldSince = Mutex<WallTime?>(nil)
    /// Whether a commit waits for the disk as the connection is set; see `setDurability`.
    let isRelaxed = Atomic(false)

    /// How long a lease lasts without a heartbeat, in milliseconds. Only a backstop: a dead worker is noticed by its
    /// lock.
    public static let leaseDuration: Int64 = 60_000

    /// Whether a missing file is made.
    public enum Missing: Sendable {
        case create
        case refuse
    }

    /// Opens the database, creating or upgrading it where needed.
    ///
    /// - Parameters:
    ///   - now: the machine's clock.
    ///   - uptime: milliseconds since the machine was started, which tell a jump of `now` from time that has passed.
    ///   - leaseDuration: how long a lease lasts without a heartbeat, in milliseconds.
    ///   - syncs: whether a commit is on the disk when it returns. Off only for measuring.
    ///   - waiting: how long writes wait for other programs. Reading waits for no writer, and neither does opening a
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
            throw JobsError(
                .cannotOpen,
                "There is no database at \(path). Name one with --db or WORKER_DB, or make it with: worker init",
            )
        }
        let file = try DatabaseFile(path: path)
        self.file = file
        lockFile = try LockFile(path: file.name + ".lock")
        let patience = Patience()
        self.patience = patience
        do {
            PrivateFile.make(file.name)
            database = try DatabaseQueue(path: file.name, configuration: Self.configuration(patience))
            let migrator = Schema.migrator
            if try !Self.isReady(database, migrator, path: path) {
                var turn = TurnWait(waiting, file: file, path: path)
                while try !Self.prepare(database, migrator, lockFile, patience) { try turn.nap() }
            }
            // Done means durable: a commit is on disk when it returns.
            try database.writeWithoutTransaction { db in
                try db.execute(sql: "PRAGMA synchronous = \(syncs ? "FULL" : "OFF")")
            }
            identity = file.identity
        } catch {
            throw JobsError(wrapping: error, path: path)
        }
    }

    /// Whether the database can be used as it is. Takes no lock that a writer could hold.
    private static func isReady(_ database: DatabaseQueue, _ migrator: DatabaseMigrator, path: String) throws -> Bool {
        let state = try database.read { db in
            (
                done: try migrator.hasCompletedMigrations(db), applied: try migrator.appliedIdentifiers(db),
                mode: try String.fetchOne(db, sql: "PRAGMA journal_mode")
            )
        }
        // Asked first, so that nothing of another version is changed.
        try Schema.refuseUnknown(state.applied, path: path)
        return state.done && state.mode?.lowercased() == "wal"
    }

    /// Makes the schema, or upgrades it.
    ///
    /// - Returns: false where another program is writing at this moment.
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

    /// - Returns: nil where SQLite says that another program is in the way. It isn't waited for.
    static func unlessBusy<R>(_ patience: Patience, _ body: () throws -> R?) throws -> R? {
        patience.isPatient.store(false, ordering: .relaxed)
        defer { patience.isPatient.store(true, ordering: .relaxed) }
        do {
            return try body()
        } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY {
            return nil
        }
    }

    /// Opens the database of a cache that no program writes to, such as one on a disk mounted read-only. It makes,
    /// locks and upgrades nothing.
    ///
    /// - Throws: `cannotOpen`, `corrupt`, `tooNew`, `tooOld`; `refused` for one of an older version, which has to be
    ///   upgraded first.
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
        // Nothing is ever locked through it.
        lockFile = try LockFile(path: "/dev/null")
        var configuration = Configuration()
        configuration.readonly = true
        do {
            database = try DatabaseQueue(path: Self.readOnlyName(of: file.name), configuration: configuration)
            let migrator = Schema.migrator
            let state = try database.read { db in
                (done: try migrator.hasCompletedMigrations(db), applied: try migrator.appliedIdentifiers(db))
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

    /// With nothing in its log a database needs no shared memory beside it, which could not be made there.
    static func readOnlyName(of path: String) -> String {
        var info = stat()
        if stat(path + "-wal", &info) == 0, info.st_size > 0 { return path }
        return immutableName(of: path)
    }

    /// The file by itself, without its log.
    static func immutableName(of path: String) -> String {
        let name = path.replacing("%", with: "%25").replacing("?", with: "%3f").replacing("#", with: "%23")
        return "file:\(name)?immutable=1"
    }

    /// Closes the file, checkpointing it if no other program has it open. Later calls fail.
    public func close() async throws(JobsError) {
        try await perform { [self] in
            // Set also where closing fails: SQLite crashes on a connection that is used after its end.
            isClosed.store(true, ordering: .relaxed)
            // The last one to close moves the log into the database, which is a write. Where our lock isn't free,
            // another program has the database open, and it isn't the last.
            if try lockFile.withWriteLockIfFree({ try database.close() }) == nil { try database.close() }
        }
    }

    /// The name of the file without symbolic links.
    public var fileName: String { file.name }

    /// Finds out whether the file is still there under its name.
    ///
    /// - Throws: `replaced` where it was deleted, or another has its name: no other program sees later writes.
    public func checkFile() throws(JobsError) {
        guard let identity, file.isReplaced(identity) else { return }
        throw JobsError(
            .replaced,
            """
            The database \(path) was deleted or replaced while it was in use. All writes since then are lost with it; \
            start again with the database that is there now, or with a copy made by 'worker db backup'.
            """)
    }

    private static func configuration(_ patience: Patience) -> Configuration {
        var configuration = Configuration()
        configuration.foreignKeysEnabled = false
        configuration.busyMode = .callback { tries in
            // Writes wait for their turn without holding a lock. This handler waits for moments, such as another
            // program's reading of the log after a crash.
            guard patience.isPatient.load(ordering: .relaxed) else { return false }
            usleep(UInt32.random(in: 300...1_500))
            return tries < 40_000
        }
        configuration.prepareDatabase { db in
            // Checkpoints run only under the write lock, never by themselves at a commit.
            try db.execute(sql: "PRAGMA wal_autocheckpoint = 0")
            try db.execute(sql: "PRAGMA cache_size = -16000")
        }
        return configuration
    }
}

/// Whether a statement waits for other programs that hold the database.
final class Patience: Sendable {
    let isPatient = Atomic(true)
}

extension DatabaseGate {
    /// Now, by the machine's clock.
    public var currentTime: WallTime { now() }
}
