internal import Dispatch
internal import GRDB
internal import Synchronization

/// Runs every write and read in a transaction.
extension DatabaseGate {
    /// Runs one transaction. It is short and contains a whole group.
    ///
    /// - Parameter isDurable: false for changes that a power failure may undo. The next durable commit syncs them as
    ///   well.
    @discardableResult
    func write<R: Sendable>(
        isDurable: Bool = true, _ body: @escaping @Sendable (Connection) throws -> R,
    ) async throws(JobsError) -> R {
        try await perform { [self] in
            switch engine {
            case .sqlite(let file): try file.write(isDurable: isDurable, body)
            case .postgres(let session): try session.write(isDurable: isDurable) { try body(Connection($0)) }
            }
        }
    }

    /// Runs a transaction only if no other program is writing.
    ///
    /// - Returns: whether it ran.
    func writeIfFree(_ body: @escaping @Sendable (Connection) throws -> Void) async throws(JobsError) -> Bool {
        try await perform { [self] in
            switch engine {
            case .sqlite(let file): try file.writeIfFree(body)
            case .postgres(let session): try session.writeIfFree { try body(Connection($0)) }
            }
        }
    }

    /// Runs statements on one snapshot.
    func read<R: Sendable>(_ body: @escaping @Sendable (Connection) throws -> R) async throws(JobsError) -> R {
        try await perform { [self] in
            switch engine {
            case .sqlite(let file): try file.read(body)
            case .postgres(let session): try session.read { try body(Connection($0)) }
            }
        }
    }

    /// Runs a single statement. On PostgreSQL it is a transaction of its own, and takes one round trip in place of three.
    func readOne<R: Sendable>(_ body: @escaping @Sendable (Connection) throws -> R) async throws(JobsError) -> R {
        try await perform { [self] in
            switch engine {
            case .sqlite(let file): try file.read(body)
            case .postgres(let session): try session.readOne { try body(Connection($0)) }
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
}

// Call these on the gate's queue.
extension SQLiteFile {
    func write<R>(isDurable: Bool, _ body: (Connection) throws -> R) throws -> R {
        try atMyTurn {
            try withoutTransaction { db in
                try setDurability(isDurable, of: db)
                return try Self.transaction(db) { db in
                    if !hasCheckedIDs.exchange(true, ordering: .relaxed) { try UsedUpIDs.mend(in: db) }
                    return try body(db)
                }
            }
        }
    }

    static func transaction<R>(_ db: Connection, _ body: (Connection) throws -> R) throws -> R {
        guard let sqlite = db.sqlite else {
            throw JobsError(.internalError, "A connection is no connection to SQLite.")
        }
        var result: R?
        try sqlite.inTransaction(.immediate) {
            result = try body(db)
            return .commit
        }
        guard let result else { throw JobsError(.internalError, "A transaction gave no result.") }
        return result
    }

    /// Runs `body` under the write lock, when no other program is writing. It starts again as long as SQLite refuses to
    /// begin the transaction; between two tries it holds no lock.
    func atMyTurn<R>(_ body: () throws -> R) throws -> R {
        var turn = TurnWait(waiting, file: file, path: path)
        while true {
            if let result = try Self.unlessBusy(patience, { try lockFile.withWriteLockIfFree(body) }) { return result }
            try turn.nap()
        }
    }

    func writeIfFree(_ body: (Connection) throws -> Void) throws -> Bool {
        let done: Void? = try Self.unlessBusy(patience) {
            try lockFile.withWriteLockIfFree {
                try withoutTransaction { db in
                    try setDurability(true, of: db)
                    try Self.transaction(db, body)
                }
            }
        }
        return done != nil
    }

    /// Runs statements on one snapshot.
    ///
    /// It does not use GRDB's `read`, which sets `PRAGMA query_only`: that expires every prepared statement, and
    /// preparing them again for each item took half of a run's CPU.
    func read<R>(_ body: (Connection) throws -> R) throws -> R {
        try database.unsafeRead { db in
            var result: R?
            try db.inTransaction(.deferred) {
                result = try body(Connection(db))
                return .commit
            }
            guard let result else { throw JobsError(.internalError, "A reading transaction gave no result.") }
            return result
        }
    }

    /// Runs statements that must not be in a transaction.
    func withoutTransaction<R>(_ body: (Connection) throws -> R) throws -> R {
        try database.writeWithoutTransaction { db in try body(Connection(db)) }
    }

    // MARK: - Durability

    /// Called before a transaction: sets whether its commit is on the disk when it returns, or whether a power failure
    /// may undo it until the next durable commit.
    ///
    /// The level is set before a transaction and not restored afterwards. If setting it fails, the transaction that
    /// needs it fails, instead of later ones being silently relaxed; and a completed commit is never reported as
    /// failed.
    func setDurability(_ isDurable: Bool, of db: Connection) throws {
        guard syncs, isRelaxed.load(ordering: .relaxed) == isDurable else { return }
        // If a later step fails, no later transaction relies on the level.
        isRelaxed.store(true, ordering: .relaxed)
        let level: Int64 = isDurable ? Self.full : Self.normal
        try db.run("PRAGMA synchronous = \(level)")
        guard try db.integer("PRAGMA synchronous") == level else {
            throw JobsError(.internalError, "SQLite refuses the sync setting of the database \(path).")
        }
        isRelaxed.store(!isDurable, ordering: .relaxed)
    }

    // https://sqlite.org/pragma.html#pragma_synchronous
    private static let normal: Int64 = 1
    private static let full: Int64 = 2
}
