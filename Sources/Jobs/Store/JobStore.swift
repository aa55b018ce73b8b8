internal import Dispatch
internal import GRDB
internal import Glibc
internal import Synchronization

/// The one gate to `worker.db`: every statement of ours on the queue and the cache index goes through it.
///
/// Every write is a short transaction that begins IMMEDIATE under the write lock. All access runs on one serial
/// dispatch queue, so nothing blocks Swift's cooperative threads, and a write that has begun is finished even if the
/// task that asked for it is cancelled.
public final class JobStore: Sendable {
    public let path: String
    let now: @Sendable () -> Int64
    let uptime: @Sendable () -> Int64
    let leaseDuration: Int64
    /// The file that `path` leads to.
    let file: DatabaseFile
    private let identity: DatabaseFile.Identity?
    let lockFile: LockFile
    let database: DatabaseQueue
    private let waiting: WriteWaiting
    private let queue = DispatchQueue(label: "jobs.database")
    private let isClosed = Atomic(false)
    let syncs: Bool
    private let patience: Patience
    let slices = SliceLedger()
    /// Since when a reader keeps the log from being cut, in UTC milliseconds.
    let logHeldSince = Mutex<Int64?>(nil)
    /// Whether a commit waits for the disk as the connection is set; see `setDurability`.
    let isRelaxed = Atomic(false)

    /// What to do when the file isn't there.
    public enum Missing: Sendable {
        case create
        case refuse
    }

    /// Opens the database, creating or upgrading it where needed.
    ///
    /// - Parameters:
    ///   - now: UTC milliseconds.
    ///   - uptime: milliseconds since the machine was started, which tell a jump of `now` from time that has passed.
    ///   - leaseDuration: how long a lease lasts without a heartbeat, in milliseconds.
    ///   - syncs: whether a commit is on the disk when it returns. Off only for measuring.
    ///   - waiting: how long writes wait for other programs. Reading waits for no writer, and neither does opening a database
    ///     of this version.
    /// - Throws: `cannotOpen`, `corrupt`, `tooNew`, `diskFull`.
    public init(
        path: String,
        missing: Missing = .create,
        now: @escaping @Sendable () -> Int64 = JobStore.wallClock,
        uptime: @escaping @Sendable () -> Int64 = JobStore.bootClock,
        leaseDuration: Int64 = JobStore.leaseDuration,
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
                done: try migrator.hasCompletedMigrations(db), isNewer: try migrator.hasBeenSuperseded(db),
                mode: try String.fetchOne(db, sql: "PRAGMA journal_mode")
            )
        }
        // Asked first, so that nothing of a newer version is changed.
        guard !state.isNewer else {
            throw JobsError(.tooNew, "The database \(path) was made by a newer version of worker.")
        }
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
    private static func unlessBusy<R>(_ patience: Patience, _ body: () throws -> R?) throws -> R? {
        patience.isPatient.store(false, ordering: .relaxed)
        defer { patience.isPatient.store(true, ordering: .relaxed) }
        do {
            return try body()
        } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY {
            return nil
        }
    }

    /// Opens the database of a cache that nobody writes to, such as one on a disk that is mounted read-only. Nothing is made,
    /// locked or upgraded.
    ///
    /// - Throws: `cannotOpen`, `corrupt`, `tooNew`; `refused` for one of an older version, which has to be upgraded first.
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
                (done: try migrator.hasCompletedMigrations(db), isNewer: try migrator.hasBeenSuperseded(db))
            }
            if state.isNewer { throw JobsError(.tooNew, "The database \(path) was made by a newer version of worker.") }
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

    /// Closes the file, checkpointing it if nobody else has it open. Later calls fail.
    public func close() async throws(JobsError) {
        try await perform { [self] in
            // Set whatever comes of it: SQLite crashes on a connection that is used after its end.
            isClosed.store(true, ordering: .relaxed)
            // The last one to close moves the log into the database, which is a write. Where our lock isn't free, another
            // program has the database open, and it isn't the last.
            if try lockFile.withWriteLockIfFree({ try database.close() }) == nil { try database.close() }
        }
    }

    /// The name of the file without symbolic links.
    public var fileName: String { file.name }

    /// Finds out whether the file is still there under its name.
    ///
    /// - Throws: `replaced` where it was deleted, or another has its name: no other program sees what is written from then on.
    public func checkFile() throws(JobsError) {
        guard let identity, file.isReplaced(identity) else { return }
        throw JobsError(
            .replaced,
            """
            The database \(path) was deleted or replaced while it was in use. What was written since then is lost with it; \
            start again with the database that is there now, or with a copy made by 'worker db backup'.
            """)
    }

    public static let wallClock: @Sendable () -> Int64 = {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }

    private static func configuration(_ patience: Patience) -> Configuration {
        var configuration = Configuration()
        configuration.foreignKeysEnabled = false
        configuration.busyMode = .callback { tries in
            // Writes wait for their turn without any lock in hand. What is waited for here are moments, such as another
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

    // MARK: - The bracket

    /// One transaction. It is short, begins IMMEDIATE and carries a whole group.
    ///
    /// - Parameter isDurable: off for what a power cut may undo. It is on the disk with the next that is durable.
    func write<R: Sendable>(
        isDurable: Bool = true, _ body: @escaping @Sendable (Database) throws -> R,
    ) async throws(JobsError) -> R {
        try await perform { [self] in
            try atMyTurn {
                try database.writeWithoutTransaction { db in
                    try setDurability(isDurable, of: db)
                    return try Self.transaction(db, body)
                }
            }
        }
    }

    static func transaction<R>(_ db: Database, _ body: (Database) throws -> R) throws -> R {
        var result: R?
        try db.inTransaction(.immediate) {
            result = try body(db)
            return .commit
        }
        guard let result else { throw JobsError(.internalError, "A transaction gave no result.") }
        return result
    }

    /// Runs `body` under the write lock, when no other program is writing. It is begun anew for as long as SQLite refuses to
    /// begin its transaction; between two tries no lock is held.
    func atMyTurn<R>(_ body: () throws -> R) throws -> R {
        var turn = TurnWait(waiting, file: file, path: path)
        while true {
            if let result = try Self.unlessBusy(patience, { try lockFile.withWriteLockIfFree(body) }) { return result }
            try turn.nap()
        }
    }

    /// A transaction for what may be left undone: when somebody else writes at this moment, it isn't waited for.
    ///
    /// - Returns: whether it was done.
    func writeIfFree(_ body: @escaping @Sendable (Database) throws -> Void) async throws(JobsError) -> Bool {
        try await perform { [self] in
            let done: Void? = try Self.unlessBusy(patience) {
                try lockFile.withWriteLockIfFree {
                    try database.writeWithoutTransaction { db in
                        try setDurability(true, of: db)
                        try Self.transaction(db, body)
                    }
                }
            }
            return done != nil
        }
    }

    /// Statements that agree with each other: one snapshot.
    ///
    /// Not GRDB's own `read`, which sets `PRAGMA query_only`: that expires every prepared statement, and preparing them
    /// anew for each item was half of a run's CPU.
    func read<R: Sendable>(_ body: @escaping @Sendable (Database) throws -> R) async throws(JobsError) -> R {
        try await perform { [self] in
            try database.unsafeRead { db in
                var result: R?
                try db.inTransaction(.deferred) {
                    result = try body(db)
                    return .commit
                }
                guard let result else { throw JobsError(.internalError, "A look at the database gave no result.") }
                return result
            }
        }
    }

    func perform<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws(JobsError) -> R {
        let result: Result<R, any Error> = await withCheckedContinuation { continuation in
            queue.async { [self] in
                continuation.resume(
                    returning: Result {
                        guard !isClosed.load(ordering: .relaxed) else {
                            throw JobsError(.internalError, "The database \(path) was closed.")
                        }
                        return try body()
                    })
            }
        }
        do {
            return try result.get()
        } catch {
            throw JobsError(wrapping: error, path: path)
        }
    }

    /// SQLite's version, and the complaints of its integrity check (none when all is well).
    public func integrity() async throws(JobsError) -> (version: String, complaints: [String]) {
        try await read { db in
            let lines = try String.fetchAll(db, sql: "PRAGMA quick_check")
            let version = try String.fetchOne(db, sql: "SELECT sqlite_version()") ?? "unknown"
            return (version, lines.filter { $0 != "ok" })
        }
    }
}

/// Whether a statement waits for other programs that hold the database.
private final class Patience: Sendable {
    let isPatient = Atomic(true)
}

extension JobStore {
    /// The store's clock, in UTC milliseconds.
    public var currentTime: Int64 { now() }
}
