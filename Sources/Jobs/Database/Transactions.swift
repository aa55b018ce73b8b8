internal import Dispatch
internal import GRDB
internal import Synchronization

/// The bracket that every write runs in, and reads.
extension DatabaseGate {
    /// One transaction. It is short, begins IMMEDIATE and carries a whole group.
    ///
    /// - Parameter isDurable: off for changes that a power cut may undo. The next durable commit syncs them as well.
    @discardableResult
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

    /// Runs `body` under the write lock, when no other program is writing. It is begun anew for as long as SQLite
    /// refuses to begin its transaction; between two tries no lock is held.
    func atMyTurn<R>(_ body: () throws -> R) throws -> R {
        var turn = TurnWait(waiting, file: file, path: path)
        while true {
            if let result = try Self.unlessBusy(patience, { try lockFile.withWriteLockIfFree(body) }) { return result }
            try turn.nap()
        }
    }

    /// A transaction that may be skipped: it does not wait for another program that is writing.
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

    // MARK: - Durability

    /// Before a transaction: whether its commit is on the disk when it returns, or may be undone by a power cut until
    /// the next that is.
    ///
    /// Set before, and not put back after: a setting that fails then fails the transaction that needs it, instead of
    /// relaxing those that come later without a word, and a commit that was made is not reported as failed.
    func setDurability(_ isDurable: Bool, of db: Database) throws {
        guard syncs, isRelaxed.load(ordering: .relaxed) == isDurable else { return }
        // Where a step from here on fails, no later transaction relies on the level.
        isRelaxed.store(true, ordering: .relaxed)
        let level: Int32 = isDurable ? Self.full : Self.normal
        try db.execute(sql: "PRAGMA synchronous = \(level)")
        guard try Int32.fetchOne(db, sql: "PRAGMA synchronous") == level else {
            throw JobsError(.internalError, "SQLite doesn't take on how commits of \(path) are synced.")
        }
        isRelaxed.store(!isDurable, ordering: .relaxed)
    }

    // https://sqlite.org/pragma.html#pragma_synchronous
    private static let normal: Int32 = 1
    private static let full: Int32 = 2
}
