internal import GRDB

/// Room in the cache that a worker has set aside for what it is about to write and to publish, so that the limit holds at
/// any moment.
///
/// It outlives a worker that dies: what it had published by then has no row yet, and is counted by this. It ends when the
/// collector has looked for such files.
extension JobStore {
    public enum Reserved: Sendable, Hashable {
        /// So many bytes, with what was asked for to spare where there was room for it.
        case granted(Int64)
        /// So many bytes have to go first.
        case short(by: Int64)
    }

    /// Sets more room aside for a worker.
    ///
    /// - Parameters:
    ///   - spare: bytes that would save asking again.
    ///   - limit: bytes that the cache may hold in all.
    public func reserve(
        _ bytes: Int64, spare: Int64 = 0, for worker: Int64, limit: Int64,
    ) async throws(JobsError) -> Reserved {
        try await write { db in
            let taken =
                try Int64.fetchOne(
                    db,
                    sql: "SELECT bytes + (SELECT ifnull(sum(bytes), 0) FROM reservations) FROM cache_totals") ?? 0
            guard taken + bytes <= limit else { return .short(by: taken + bytes - limit) }
            let granted = taken + bytes + spare <= limit ? bytes + spare : bytes
            try db.cachedStatement(
                sql: """
                    INSERT INTO reservations (worker, bytes) VALUES (?, ?)
                    ON CONFLICT (worker) DO UPDATE SET bytes = bytes + excluded.bytes
                    """
            ).execute(arguments: [worker, granted])
            return .granted(granted)
        }
    }

    /// Gives room back that a worker doesn't need.
    public func giveBack(_ bytes: Int64, of worker: Int64) async throws(JobsError) {
        try await write { db in try Self.giveBack(bytes, of: worker, in: db) }
    }

    static func giveBack(_ bytes: Int64, of worker: Int64, in db: Database) throws {
        try db.cachedStatement(sql: "UPDATE reservations SET bytes = bytes - ? WHERE worker = ?")
            .execute(arguments: [bytes, worker])
        try db.cachedStatement(sql: "DELETE FROM reservations WHERE worker = ? AND bytes <= 0")
            .execute(arguments: [worker])
    }

    /// Gives back what workers that are dead had set aside. Right only after every file without a row was removed.
    public func dropReservations(of workers: [Int64]) async throws(JobsError) {
        guard !workers.isEmpty else { return }
        try await write { db in
            for worker in workers {
                try db.execute(sql: "DELETE FROM reservations WHERE worker = ?", arguments: [worker])
            }
        }
    }

    /// Workers that died with room set aside. `myself` is none of them.
    public func deadReservations(myself: Int64?) async throws(JobsError) -> [Int64] {
        let workers = try await read { db in try Int64.fetchAll(db, sql: "SELECT worker FROM reservations") }
        return workers.filter { $0 != myself && !lockFile.isAlive(worker: $0) }
    }
}
