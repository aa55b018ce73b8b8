internal import GRDB

/// Room in the cache that a worker has set aside for what it is about to write and to publish, so that the limit holds at
/// any moment.
///
/// It outlives a worker that dies: what it had published by then has no row yet, and is counted by this. It ends when the
/// collector has removed such files, or has found that there are none.
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

    /// Gives back what workers that are dead had set aside, but for what files without a row take up.
    ///
    /// - Parameter bytes: of all files without a row that any of them may have left.
    /// - Returns: how much was given back.
    public func limitReservations(of workers: [Int64], to bytes: Int64) async throws(JobsError) -> Int64 {
        guard !workers.isEmpty else { return 0 }
        return try await write { db in
            var left = bytes
            var regained: Int64 = 0
            for worker in workers {
                let held =
                    try Int64.fetchOne(
                        db, sql: "SELECT bytes FROM reservations WHERE worker = ?", arguments: [worker]) ?? 0
                let kept = min(held, left)
                left -= kept
                regained += held - kept
                try Self.giveBack(held - kept, of: worker, in: db)
            }
            return regained
        }
    }

    /// When the first of the live workers was started, in UTC milliseconds; nil where there is none.
    public func earliestStart(butNot myself: Int64?) async throws(JobsError) -> Int64? {
        let workers = try await read { db in
            try Row.fetchAll(db, sql: "SELECT id, started_at FROM workers")
                .map { (id: $0["id"] as Int64, startedAt: $0["started_at"] as Int64) }
        }
        return workers.filter { $0.id != myself && lockFile.isAlive(worker: $0.id) }.map(\.startedAt).min()
    }

    /// Workers that died with room set aside. `myself` is none of them.
    public func deadReservations(myself: Int64?) async throws(JobsError) -> [Int64] {
        let workers = try await read { db in try Int64.fetchAll(db, sql: "SELECT worker FROM reservations") }
        return workers.filter { $0 != myself && !lockFile.isAlive(worker: $0) }
    }
}
