public import Core
internal import Dispatch
internal import Synchronization

/// The single gate to the database: every statement on the queue and the cache index goes through it.
///
/// All access runs on one serial dispatch queue, so no call blocks Swift's cooperative threads, and a write that has
/// begun is completed even if its task is cancelled.
public final class DatabaseGate: Sendable {
    /// A file's path, or the URL of a PostgreSQL database without its password.
    public let path: String
    let now: @Sendable () -> WallTime
    let uptime: @Sendable () -> Int64
    let leaseDuration: Int64
    let engine: DatabaseEngine
    let queue = DispatchQueue(label: "jobs.database")
    let isClosed = Atomic(false)
    let slices = SliceLedger()

    /// How long a lease lasts without a heartbeat, in milliseconds. Only a backstop: a dead worker is detected by its
    /// lock.
    public static let leaseDuration: Int64 = 60_000

    /// What to do if the file, or the tables in PostgreSQL, are missing.
    public enum Missing: Sendable {
        case create
        case refuse
    }

    /// Opens the database, and creates or upgrades it if needed.
    ///
    /// - Parameters:
    ///   - path: a file, or the URL of a PostgreSQL database, `postgres://user@host/name`.
    ///   - now: the machine's clock. With PostgreSQL it is not used once the server's clock has been read.
    ///   - uptime: milliseconds since the machine was started, which distinguish a jump of `now` from passed time. With
    ///     PostgreSQL they count on from the last reading of the server's clock.
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
        self.leaseDuration = leaseDuration
        if PostgresURL.isPostgres(path) {
            let session = try PostgresSession(
                url: path, creates: missing == .create, syncs: syncs, waiting: waiting, uptime: uptime)
            self.path = session.path
            engine = .postgres(session)
            self.now = session.clock.correcting(now)
            self.uptime = uptime
            return
        }
        self.path = path
        self.now = now
        self.uptime = uptime
        do {
            engine = .sqlite(try SQLiteFile(path: path, missing: missing, syncs: syncs, waiting: waiting))
        } catch {
            throw JobsError(wrapping: error, path: path)
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
        do {
            engine = .sqlite(try SQLiteFile(readOnly: path))
        } catch {
            throw JobsError(wrapping: error, path: path)
        }
    }

    /// Closes the database. Later calls fail.
    public func close() async throws(JobsError) {
        try await perform { [self] in
            // Set even if closing fails: SQLite crashes if a closed connection is used.
            isClosed.store(true, ordering: .relaxed)
            switch engine {
            case .sqlite(let file): try file.close()
            case .postgres(let session): session.close()
            }
        }
    }

    /// The path of the file without symbolic links; the URL of a PostgreSQL database.
    public var fileName: String { sqlite?.file.name ?? path }

    /// Identifies a PostgreSQL database by the ids of its server, database and schema. A standby has the same ids; a copy
    /// of the tables does not. Nil with SQLite, and where the server does not tell its id.
    public func identity() async throws(JobsError) -> String? {
        guard sqlite == nil else { return nil }
        return try await read { db in
            guard try db.flag("SELECT has_function_privilege('pg_control_system()', 'EXECUTE')") == true else {
                return nil
            }
            return try db.text(
                """
                SELECT (SELECT system_identifier FROM pg_control_system())::TEXT || '/' || pg_database.oid::TEXT || '/'
                    || (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('items'))::TEXT
                FROM pg_database WHERE datname = current_database()
                """)
        }
    }

    /// How often this program has waited for an answer of PostgreSQL's server; nil on SQLite.
    public var roundTrips: Int? {
        if case .postgres(let session) = engine { session.roundTrips.count.load(ordering: .relaxed) } else { nil }
    }

    /// Nil on PostgreSQL.
    var sqlite: SQLiteFile? { if case .sqlite(let file) = engine { file } else { nil } }

    /// Which programs are alive.
    var liveness: any Liveness {
        switch engine {
        case .sqlite(let file): file.lockFile
        case .postgres(let session): session.liveness
        }
    }
}

/// The database behind the gate.
enum DatabaseEngine: Sendable {
    case sqlite(SQLiteFile)
    case postgres(PostgresSession)
}

extension DatabaseGate {
    /// The current time: of the machine's clock, or of PostgreSQL's server.
    public var currentTime: WallTime { now() }

    /// Those of the workers that are alive. It may wait for a server, so it runs on the gate's queue.
    func living(_ workers: [Int64]) async throws(JobsError) -> Set<Int64> {
        guard !workers.isEmpty else { return [] }
        return try await perform { [liveness] in liveness.living(workers) }
    }
}
