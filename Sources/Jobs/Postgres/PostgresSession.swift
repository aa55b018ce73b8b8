internal import Core
internal import Glibc
internal import Synchronization

/// A PostgreSQL database behind the gate. Its calls block; use it on the gate's queue.
///
/// One program writes at a time, as on SQLite: each write transaction takes an advisory lock first. Reads run beside
/// it, each on a snapshot of its own. If the connection is lost, a command's call fails. A worker's
/// call connects again and repeats the transaction.
final class PostgresSession: Sendable {
    /// The URL without its password.
    let path: String
    let clock: PostgresClock
    let liveness: SessionLocks
    private let url: String
    private let syncs: Bool
    private let waiting: WriteWaiting
    private let uptime: @Sendable () -> Int64
    private let connection = Mutex<PostgresConnection?>(nil)
    let roundTrips = RoundTrips()

    /// The server must be at least this version: the oldest that the tests run on.
    private static let oldest = 150_000

    init(
        url: String, creates: Bool, syncs: Bool, waiting: WriteWaiting,
        uptime: @escaping @Sendable () -> Int64,
    ) throws(JobsError) {
        self.url = url
        self.syncs = syncs
        self.waiting = waiting
        self.uptime = uptime
        path = PostgresURL.shown(url)
        clock = PostgresClock(uptime: uptime)
        liveness = SessionLocks(path: path, uptime: uptime) { try Self.connect(url) }
        do {
            let first = try Self.connect(url, counting: roundTrips)
            try prepare(first, creates: creates)
            try clock.read(first)
            connection.withLock { $0 = first }
        } catch {
            throw JobsError(wrapping: error, path: path)
        }
    }

    func close() {
        connection.withLock { $0 = nil }
        liveness.close()
    }

    /// Restores the marks of a lost connection, and reads the server's clock again. If the server is away, the next
    /// call tries again.
    func check() throws {
        do {
            try liveness.restore()
            if clock.isOld { try clock.read(connected()) }
        } catch let error as JobsError where error.isTransient {
        } catch let error as PostgresError where error.isOutage {
            connection.withLock { $0 = nil }
        }
    }

    // MARK: - Connection

    private static func connect(_ url: String, counting trips: RoundTrips? = nil) throws -> PostgresConnection {
        let connection = try PostgresConnection(url: url, counting: trips)
        // Tables grow from nothing to millions of rows before the server counts them. A plan that was made for an empty
        // table would then read all of it for each group of items, so no plan scans a table that has an index.
        try connection.script(
            """
            SET client_encoding = 'UTF8'; SET TimeZone = 'UTC'; SET client_min_messages = 'warning'; SET jit = off; SET enable_seqscan = off;
            SET standard_conforming_strings = on; SET idle_in_transaction_session_timeout = '10s';
            SET statement_timeout = 0; SET lock_timeout = 0; SET idle_session_timeout = 0;
            SET worker.session = 'on'
            """)
        return connection
    }

    private func connected() throws -> PostgresConnection {
        if let open = connection.withLock({ $0 }) { return open }
        let new = try Self.connect(url, counting: roundTrips)
        connection.withLock { $0 = new }
        // At once, so that others see that this program lives. Best effort: the next check tries again.
        try? liveness.restore()
        return new
    }

    /// Makes the schema, or checks that it is this version's.
    private func prepare(_ connection: PostgresConnection, creates: Bool) throws {
        guard connection.serverVersion >= Self.oldest else {
            throw JobsError(
                .cannotOpen,
                "The server of \(path) is PostgreSQL \(connection.serverVersion / 10_000); version 15 or later is needed."
            )
        }
        guard try connection.script("SHOW server_encoding").text(0, 0) == "UTF8" else {
            throw JobsError(
                .cannotOpen, "The database \(path) must have the encoding UTF8: CREATE DATABASE … ENCODING 'UTF8'.")
        }
        if try isMade(connection) { return }
        guard creates else {
            throw JobsError(.cannotOpen, "There is no queue in \(path). Make it with: worker init --db \(path)")
        }
        try connection.script("BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('worker schema', 0))")
        // Another program may have made it meanwhile.
        if try !isMade(connection) {
            if connection.serverVersion < 160_000 { try connection.script(PostgresFunctions.before16) }
            for statement in PostgresSchema.statements { try connection.script(statement) }
            try connection.script(
                """
                CREATE TABLE schema_steps (identifier TEXT PRIMARY KEY);
                INSERT INTO schema_steps VALUES ('\(Schema.first)')
                """)
        }
        try connection.script("COMMIT")
    }

    private func isMade(_ connection: PostgresConnection) throws -> Bool {
        guard try !connection.script("SELECT to_regclass('schema_steps')").isNull(0, 0) else { return false }
        let steps = try connection.script("SELECT identifier FROM schema_steps")
        try Schema.refuseUnknown(Set((0..<steps.rowCount).compactMap { steps.text($0, 0) }), path: path)
        return steps.rowCount > 0
    }

    // MARK: - Transactions

    /// A deadlock needs a program that writes without the write lock. It ends when one of the two transactions is
    /// repeated.
    private static let repetitions = 5

    func write<R>(isDurable: Bool, _ body: (PostgresConnection) throws -> R) throws -> R {
        for _ in 1..<Self.repetitions {
            do {
                return try writeOnce(isDurable: isDurable, body)
            } catch let error as PostgresError where error.isToBeRepeated {
                usleep(UInt32.random(in: 1_000...20_000))
            }
        }
        return try writeOnce(isDurable: isDurable, body)
    }

    private func writeOnce<R>(isDurable: Bool, _ body: (PostgresConnection) throws -> R) throws -> R {
        let start = uptime()
        var hasAnnounced = false
        while true {
            let left = min(waiting.limit, waiting.limitOfStop() ?? .max) - (uptime() - start)
            let result = try outlastingOutages {
                try transaction(
                    PostgresTurn.begin(isDurable: isDurable && syncs)
                        + PostgresTurn.take(waiting: max(1, min(left, PostgresTurn.longest))), body)
            }
            if let result { return result }
            let waited = uptime() - start
            guard waited < min(waiting.limit, waiting.limitOfStop() ?? .max) else {
                throw JobsError(
                    .busy,
                    "The database \(path) is locked by another program"
                        + (waiting.limit > 0 ? ", and has been for \(waited / 1_000) s." : "."))
            }
            if waited >= 2_000, !hasAnnounced {
                hasAnnounced = true
                waiting.announce?("Waiting for another program, which is writing to \(path).")
            }
        }
    }

    func writeIfFree(_ body: (PostgresConnection) throws -> Void) throws -> Bool {
        try outlastingOutages {
            try transaction(PostgresTurn.begin(isDurable: syncs) + PostgresTurn.takeIfFree, body) != nil
        }
    }

    /// BEGIN is sent with the first statement, and COMMIT without waiting for its answer.
    func read<R>(_ body: (PostgresConnection) throws -> R) throws -> R {
        try outlastingOutages {
            try onConnection { connection in
                connection.beginReading()
                let result = try body(connection)
                try connection.endReading()
                return result
            }
        }
    }

    /// Runs a single statement outside a transaction.
    func readOne<R>(_ body: (PostgresConnection) throws -> R) throws -> R {
        try outlastingOutages {
            let connection = try connected()
            do {
                try connection.trimStatements()
                return try connection.onlyOne { try body(connection) }
            } catch let error as PostgresError where error.isOutage {
                self.connection.withLock { $0 = nil }
                throw error
            }
        }
    }

    /// Repeats a call as long as the server is away, if this program is to wait for it.
    private func outlastingOutages<R>(_ body: () throws -> R) throws -> R {
        var start: Int64?
        while true {
            do {
                let result = try body()
                if start != nil { waiting.announce?("The database \(path) can be reached again.") }
                return result
            } catch let error as PostgresError where error.isOutage && waiting.outlastsOutages {
                let now = uptime()
                guard now - (start ?? now) < waiting.limitOfStop() ?? .max else { throw error }
                if start == nil {
                    start = now
                    waiting.announce?("Waiting for the database: \(JobsError(error, path: path).message)")
                }
                // Many machines must not come back in the same moment.
                usleep(UInt32.random(in: 100_000...500_000))
            }
        }
    }

    /// - Returns: nil if another program has the turn.
    private func transaction<R>(_ begin: String, _ body: (PostgresConnection) throws -> R) throws -> R? {
        try onConnection { connection in
            guard let number = try PostgresTurn.begun(begin, on: connection) else {
                try connection.rollBack()
                return nil
            }
            let result = try body(connection)
            guard !connection.hasFailed else {
                throw JobsError(.internalError, "A statement failed, and the transaction was to be committed.")
            }
            try commit(number, on: connection)
            return result
        }
    }

    /// Rolls back if `body` fails.
    private func onConnection<R>(_ body: (PostgresConnection) throws -> R) throws -> R {
        let connection = try connected()
        do {
            try connection.trimStatements()
            return try body(connection)
        } catch {
            // If the server takes no writes, the next connection may reach another server of the URL.
            if let error = error as? PostgresError, error.isOutage {
                self.connection.withLock { $0 = nil }
            } else {
                do { try connection.rollBack() } catch { self.connection.withLock { $0 = nil } }
            }
            throw error
        }
    }

    /// - Parameter number: the transaction's.
    private func commit(_ number: String, on connection: PostgresConnection) throws {
        do {
            try connection.commit()
        } catch {
            guard error.isOfConnection else { throw error }
            self.connection.withLock { $0 = nil }
            let isDone: Bool
            do {
                isDone = try outlastingOutages { try isCommitted(number) }
            } catch _ {
                // Not an error of the connection, after which the transaction would run again.
                throw JobsError(
                    .inputOutput, "The database \(path) can't be reached, and the last commit got no answer.")
            }
            if !isDone { throw error }
        }
    }

    /// Whether a transaction was committed, if its COMMIT got no answer. Waits while it is still running.
    private func isCommitted(_ number: String) throws -> Bool {
        let start = uptime()
        while true {
            let status: String?
            do {
                status = try connected().script("SELECT pg_xact_status('\(number)'::xid8)").text(0, 0)
            } catch let error as PostgresError where !error.isOutage {
                // A standby that took over does not know the number: it has not got the transaction.
                return false
            } catch let error as PostgresError {
                connection.withLock { $0 = nil }
                throw error
            }
            guard status == "in progress" else { return status == "committed" }
            guard uptime() - start < waiting.limitOfStop() ?? .max else {
                throw JobsError(.inputOutput, "The last commit of \(path) is still in progress.")
            }
            usleep(50_000)
        }
    }
}
