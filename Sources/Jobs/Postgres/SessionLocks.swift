internal import Synchronization
internal import SystemPackage

/// Marks of living programs (``Liveness``) as advisory locks of a session, which PostgreSQL releases when the connection
/// ends.
///
/// The session has a connection of its own, which is idle but for these locks: the server notices at once when an idle
/// client dies, and only after the statement when it was busy. A worker whose machine is unreachable keeps its locks
/// until the server's keepalive finds the connection dead; its lease is the backstop.
///
/// https://www.postgresql.org/docs/15/explicit-locking.html#ADVISORY-LOCKS
final class SessionLocks: Sendable {
    private struct State {
        var connection: PostgresConnection?
        /// What this program wants to be marked, and what it has locked. After a lost connection the server may hold the
        /// old session's locks for some seconds more.
        var wanted: Set<Mark> = []
        var held: Set<Mark> = []
        /// Until this uptime a missing lock does not mean that its worker is dead: after a restart of the server or an
        /// outage of the network, other workers need some seconds to connect and lock again.
        var blindUntil: Int64 = 0
    }

    /// Milliseconds.
    private static let timeToComeBack: Int64 = 10_000

    /// A lock's first key is the table that the mark is about, and the second the number of the row.
    private struct Mark: Hashable {
        let table: String
        let id: Int64

        static func worker(_ id: Int64) -> Self { Self(table: "workers", id: id) }
        static func addition(_ id: Int64) -> Self { Self(table: "job_additions", id: id) }
        static func batch(_ key: String) -> Self {
            // FNV-1a: the same key has the same number in every process.
            let hash = key.utf8.reduce(UInt32(2_166_136_261)) { ($0 ^ UInt32($1)) &* 16_777_619 }
            return Self(table: "schedules", id: Int64(hash))
        }

        var keys: String { "(\(first)::INTEGER, \(second)::INTEGER)" }
        var first: String { "('\(table)'::REGCLASS::OID::BIGINT & 2147483647)" }
        var second: Int64 { id & 0x7fff_ffff }

        /// Sessions that hold this lock.
        var holders: String { "\(Self.holders(ofTable: first)) AND objid = \(second)::OID" }

        /// Other sessions that hold the lock of a worker.
        static var holdersOfWorkers: String {
            "\(holders(ofTable: Self.worker(0).first)) AND pid <> pg_backend_pid()"
        }

        private static func holders(ofTable first: String) -> String {
            """
            SELECT objid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                AND classid = \(first)::OID
            """
        }
    }

    private let path: String
    private let connect: @Sendable () throws -> PostgresConnection
    private let uptime: @Sendable () -> Int64
    private let state = Mutex(State())

    init(
        path: String, uptime: @escaping @Sendable () -> Int64,
        connect: @escaping @Sendable () throws -> PostgresConnection,
    ) {
        self.path = path
        self.uptime = uptime
        self.connect = connect
    }

    func close() { state.withLock { $0 = State() } }

    /// Whether the first column of a query's first row is true.
    private func ask(_ query: String, _ state: inout State) throws -> Bool { try Self.isTrue(run(query, &state)) }

    /// Runs a query. A lost connection is made again, with all its marks.
    private func run(_ query: String, _ state: inout State) throws -> PostgresResult {
        if let connection = state.connection {
            do { return try connection.script(query) } catch  where !error.isOfConnection {
                throw error
            } catch {
                state.connection = nil
                state.held = []
                state.blindUntil = .max
            }
        }
        let connection = try connect()
        // The server finds a client dead after some 20 s without an answer.
        try connection.script(
            "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 2")
        if state.blindUntil == .max { state.blindUntil = uptime() + Self.timeToComeBack }
        state.connection = connection
        try lockMissing(&state)
        return try connection.script(query)
    }

    private func lockMissing(_ state: inout State) throws {
        guard let connection = state.connection else { return }
        for mark in state.wanted.subtracting(state.held)
        where try Self.isTrue(connection.script("SELECT pg_try_advisory_lock\(mark.keys)")) {
            state.held.insert(mark)
        }
    }

    private static func isTrue(_ result: PostgresResult) -> Bool { result.rowCount > 0 && result.integer(0, 0) != 0 }

    private func hold(_ mark: Mark) throws -> Bool {
        try state.withLock { state in
            if state.wanted.contains(mark) { return true }
            guard try ask("SELECT pg_try_advisory_lock\(mark.keys)", &state) else { return false }
            state.wanted.insert(mark)
            state.held.insert(mark)
            return true
        }
    }

    private func letGo(_ mark: Mark) {
        state.withLock { state in
            state.wanted.remove(mark)
            guard state.held.remove(mark) != nil else { return }
            // Best effort: the lock ends with the session.
            _ = try? ask("SELECT pg_advisory_unlock\(mark.keys)", &state)
        }
    }

    /// - Parameter isOther: whether only other sessions count.
    private func isHeld(_ mark: Mark, isOther: Bool) -> Bool {
        state.withLock { state in
            // Nothing is known without a connection, and an item must not be taken from a worker that may be alive.
            let query = "SELECT EXISTS (\(mark.holders)\(isOther ? " AND pid <> pg_backend_pid()" : ""))"
            guard let isHeld = try? ask(query, &state) else { return true }
            return isHeld || uptime() < state.blindUntil
        }
    }
}

extension SessionLocks: Liveness {
    func restore() throws(JobsError) {
        do {
            try state.withLock { state in
                guard !state.wanted.isEmpty else { return }
                _ = try ask("SELECT true", &state)
                try lockMissing(&state)
            }
        } catch {
            throw JobsError(wrapping: error, path: path)
        }
    }

    func hold(worker: Int64) throws(JobsError) {
        do {
            guard try hold(.worker(worker)) else {
                throw JobsError(.internalError, "Worker \(worker) is marked as alive by another process.")
            }
        } catch {
            throw JobsError(wrapping: error, path: path)
        }
    }

    func letGo(worker: Int64) { letGo(.worker(worker)) }

    func isAlive(worker: Int64) -> Bool { isHeld(.worker(worker), isOther: true) }

    func living(_ workers: [Int64]) -> Set<Int64> {
        state.withLock { state in
            let query = "SELECT objid FROM (\(Mark.holdersOfWorkers)) AS holders"
            // As in `isHeld`.
            guard let result = try? run(query, &state), uptime() >= state.blindUntil else { return Set(workers) }
            let held = Set((0..<result.rowCount).map { result.integer($0, 0) })
            return Set(workers.filter { held.contains(Mark.worker($0).second) })
        }
    }

    /// Helpers have no connection to the database, and what they reserve is on their own machine's disk.
    func helperMark(of worker: Int64) throws(JobsError) -> FileDescriptor {
        do {
            return try FileDescriptor.open("/dev/null", .readOnly, options: [.closeOnExec])
        } catch {
            throw JobsError(.cannotOpen, "/dev/null can't be opened: \(error).")
        }
    }

    func areHelpersAlive(of worker: Int64) -> Bool { false }

    var isAnyWorkerAlive: Bool {
        state.withLock { state in
            (try? ask("SELECT EXISTS (\(Mark.holdersOfWorkers))", &state)) ?? true
        }
    }

    // Without a connection no mark can be made, and the caller goes on as if another program had made it.
    func hold(batch key: String) -> Bool { (try? hold(.batch(key))) ?? false }

    func hold(addition job: JobID) -> Bool { (try? hold(.addition(job))) ?? false }

    func letGo(addition job: JobID) { letGo(.addition(job)) }

    func isBeingAdded(_ job: JobID) -> Bool { isHeld(.addition(job), isOther: false) }
}
