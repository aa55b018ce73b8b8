public import Core
internal import GRDB

/// Space in the cache that a worker has reserved for files that it is about to write and publish, so that the limit
/// holds at any moment.
///
/// It outlives a worker that dies: files that it had published by then have no row yet, and are counted by this. It
/// ends when the collector has removed such files, or has found that there are none.
extension CacheEviction {
    public enum Reserved: Sendable, Hashable {
        /// So many bytes, the spare ones included where there was room for them.
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
        try await gate.write { db in
            let taken =
                try db.integer("SELECT bytes + (SELECT coalesce(sum(bytes), 0) FROM reservations) FROM cache_totals")
                ?? 0
            guard taken + bytes <= limit else { return .short(by: taken + bytes - limit) }
            let granted = taken + bytes + spare <= limit ? bytes + spare : bytes
            try db.run(
                """
                INSERT INTO reservations (worker, bytes) VALUES (?, ?)
                ON CONFLICT (worker) DO UPDATE SET bytes = bytes + excluded.bytes
                """, [worker, granted])
            return .granted(granted)
        }
    }

    /// Gives room back that a worker doesn't need.
    public func giveBack(_ bytes: Int64, of worker: Int64) async throws(JobsError) {
        try await gate.write { db in try Self.giveBack(bytes, of: worker, in: db) }
    }

    static func giveBack(_ bytes: Int64, of worker: Int64, in db: Database) throws {
        try db.run("UPDATE reservations SET bytes = bytes - ? WHERE worker = ?", [bytes, worker])
        try db.run("DELETE FROM reservations WHERE worker = ? AND bytes <= 0", [worker])
    }

    /// Gives back what workers that are dead had set aside, but for what files without a row take up.
    ///
    /// - Parameter bytes: of all files without a row that any of them may have left.
    /// - Returns: how much was given back.
    public func limitReservations(of workers: [Int64], to bytes: Int64) async throws(JobsError) -> Int64 {
        guard !workers.isEmpty else { return 0 }
        return try await gate.write { db in
            var left = bytes
            var regained: Int64 = 0
            for worker in workers {
                let held =
                    try db.integer("SELECT bytes FROM reservations WHERE worker = ?", [worker]) ?? 0
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
        let workers = try await gate.read { db in
            try db.rows("SELECT id, started_at FROM workers")
                .map { (id: $0["id"] as Int64, startedAt: $0["started_at"] as Int64) }
        }
        return workers.filter { $0.id != myself && gate.lockFile.isAlive(worker: $0.id) }.map(\.startedAt).min()
    }

    /// Workers that died with room set aside. `myself` is none of them.
    public func deadReservations(myself: Int64?) async throws(JobsError) -> [Int64] {
        let workers = try await gate.read { db in try db.integers("SELECT worker FROM reservations") }
        return workers.filter { $0 != myself && !gate.lockFile.isAlive(worker: $0) }
    }
}

/// URLs that no job has asked for lately, of files that other URLs still use.
extension CacheEviction {
    /// Forgets URLs that were last used before a time, a slice of them. Their files stay as long as others
    /// use them, and results of jobs stay.
    ///
    /// - Parameter time: by the cache's clock.
    /// - Returns: how many were forgotten; call again until it is 0.
    public func forgetKeys(usedBefore time: SteadyTime) async throws(JobsError) -> Int {
        guard try await gate.exists(Self.unusedKeys, [time.milliseconds, 1]) else { return 0 }
        return try await gate.writeSlice(.urls) { db, rows in
            let keys = try db.rows(Self.unusedKeys, [time.milliseconds, rows])
            let count = try DatabaseGate.untilTimeIsUp(keys) { row in
                try Self.forget(key: row["key"], hash: row["hash"], in: db)
            }
            return (count, count)
        }
    }

    private static let unusedKeys = """
        SELECT key, hash FROM sources WHERE used_at < ?
            AND NOT EXISTS (SELECT 1 FROM pins WHERE pins.key = sources.key) ORDER BY used_at LIMIT ?
        """

    private static func forget(key: String, hash: String, in db: Database) throws {
        let entries = try db.rows("SELECT * FROM cache_entries WHERE key = ?", [key])
        for entry in entries { try CacheIndex.noteRemovedLink(of: CacheEntry(row: entry), in: db) }
        try db.run("DELETE FROM cache_entries WHERE key = ?", [key])
        try db.run("DELETE FROM sources WHERE key = ?", [key])
        try CacheIndex.forgetRules(of: key, in: db)
        try CacheIndex.forgetFacts(ofUnused: hash, in: db)
    }

    /// The files that have been in quarantine for long enough, by the cache's clock. That counts from when each was
    /// first seen there: the files' own times are those of a clock that may have been set.
    ///
    /// - Parameters:
    ///   - names: everything that is in quarantine now.
    ///   - age: in milliseconds.
    public func expired(inQuarantine names: [String], after age: Int64) async throws(JobsError) -> [String] {
        let reading = gate.reading
        let (time, known) = try await gate.read { db in
            let rows = try db.rows("SELECT name, seen_at FROM quarantined")
            return (
                try reading.time(in: db),
                Dictionary(uniqueKeysWithValues: rows.map { ($0["name"] as String, $0["seen_at"] as Int64) })
            )
        }
        let new = names.filter { known[$0] == nil }
        let gone = Set(known.keys).subtracting(names)
        if !new.isEmpty || !gone.isEmpty {
            try await gate.write { db in
                for name in new {
                    try db.run("INSERT OR IGNORE INTO quarantined VALUES (?, ?)", [name, time.milliseconds])
                }
                for name in gone { try db.run("DELETE FROM quarantined WHERE name = ?", [name]) }
            }
        }
        return names.filter { (known[$0] ?? time.milliseconds) <= (time - age).milliseconds }
    }
}
