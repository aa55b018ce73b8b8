internal import GRDB

/// Room in the cache that a worker has set aside for what it is about to publish, so that the limit holds at any moment.
///
/// A reservation outlives a worker that dies: what it had published by then has no row yet, and is counted by this. It
/// ends when the collector has looked for such files.
extension JobStore {
    public enum Reserved: Sendable, Hashable {
        case granted
        /// So many bytes have to go first.
        case short(by: Int64)
    }

    /// Sets room aside for the blobs of a group, in place of what the worker had set aside before.
    ///
    /// - Parameter limit: bytes that the cache may hold in all.
    public func reserve(
        _ blobs: [(hash: String, size: Int64)], for worker: Int64, limit: Int64,
    ) async throws(JobsError) -> Reserved {
        try await write { db in
            var need: Int64 = 0
            var seen: Set<String> = []
            for blob in blobs where seen.insert(blob.hash).inserted {
                let isKnown = try Bool.fetchOne(
                    db.cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM blobs WHERE hash = ?)"),
                    arguments: [blob.hash])
                if isKnown != true { need += blob.size }
            }
            let taken =
                try Int64.fetchOne(
                    db,
                    sql: """
                        SELECT bytes + (SELECT ifnull(sum(bytes), 0) FROM reservations WHERE worker <> ?) FROM cache_totals
                        """,
                    arguments: [worker]) ?? 0
            guard need == 0 || taken + need <= limit else { return .short(by: taken + need - limit) }
            try db.execute(sql: "INSERT OR REPLACE INTO reservations VALUES (?, ?)", arguments: [worker, need])
            return .granted
        }
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

    static func dropReservation(of worker: Int64, in db: Database) throws {
        try db.cachedStatement(sql: "DELETE FROM reservations WHERE worker = ?").execute(arguments: [worker])
    }
}
