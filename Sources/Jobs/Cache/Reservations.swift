public import Core

/// Space in the cache that a worker has reserved for files that it is about to write and publish, so that the limit
/// holds at any moment.
///
/// A reservation outlives its worker: files that a dead worker had published have no row yet, and the reservation
/// counts them. It ends when the collector has removed such files, or has found none.
extension CacheEviction {
    public enum Reserved: Sendable, Hashable {
        /// The granted bytes, including the spare if there was space for it.
        case granted(Int64)
        /// The bytes that must be evicted first.
        case short(by: Int64)
    }

    /// Reserves more space for a worker.
    ///
    /// - Parameters:
    ///   - spare: extra bytes that would save further requests.
    ///   - limit: maximum bytes of the whole cache.
    public func reserve(
        _ bytes: Int64, spare: Int64 = 0, for worker: Int64, limit: Int64,
    ) async throws(JobsError) -> Reserved {
        try await gate.write { db in
            let taken = Int64(
                bytes: try db.integer(
                    "SELECT bytes + (SELECT \(Schema.sum("bytes")) FROM reservations) FROM cache_totals") ?? 0)
            guard taken + bytes <= limit else { return .short(by: taken + bytes - limit) }
            let granted = taken + bytes + spare <= limit ? bytes + spare : bytes
            try db.run(
                """
                INSERT INTO reservations (worker, bytes) VALUES (?, ?)
                ON CONFLICT (worker) DO UPDATE SET bytes = reservations.bytes + excluded.bytes
                """, [worker, granted])
            return .granted(granted)
        }
    }

    /// Gives back space that a worker does not need.
    public func giveBack(_ bytes: Int64, of worker: Int64) async throws(JobsError) {
        try await gate.write { db in try Self.giveBack(bytes, of: worker, in: db) }
    }

    static func giveBack(_ bytes: Int64, of worker: Int64, in db: Connection) throws {
        try db.run("UPDATE reservations SET bytes = bytes - ? WHERE worker = ?", [bytes, worker])
        try db.run("DELETE FROM reservations WHERE worker = ? AND bytes <= 0", [worker])
    }

    /// Releases the reservations of dead workers, except for the bytes that files without a row occupy.
    ///
    /// - Parameter bytes: the bytes of all files without a row that one of them may have left.
    /// - Returns: the released bytes.
    public func limitReservations(of workers: [Int64], to bytes: Int64) async throws(JobsError) -> Int64 {
        guard !workers.isEmpty else { return 0 }
        return try await gate.write { db in
            var left = bytes
            var regained: Int64 = 0
            for worker in workers {
                let held = Int64(
                    bytes: try db.integer("SELECT bytes FROM reservations WHERE worker = ?", [worker]) ?? 0)
                let kept = min(held, left)
                left -= kept
                regained.add(bytes: held - kept)
                try Self.giveBack(held - kept, of: worker, in: db)
            }
            return regained
        }
    }

    /// The earliest start of a live worker other than `myself`, in UTC milliseconds; nil if there is none.
    public func earliestStart(butNot myself: Int64?) async throws(JobsError) -> Int64? {
        let workers = try await gate.read { db in
            try db.rows("SELECT id, started_at FROM workers")
                .map { (id: $0["id"] as Int64, startedAt: $0["started_at"] as Int64) }
        }
        let living = try await gate.living(workers.map(\.id))
        return workers.filter { $0.id != myself && living.contains($0.id) }.map(\.startedAt).min()
    }

    /// Dead workers with reservations whose helpers have ended as well, without `myself`.
    public func deadReservations(myself: Int64?) async throws(JobsError) -> [Int64] {
        let workers = try await gate.read { db in try db.integers("SELECT worker FROM reservations") }
        let living = try await gate.living(workers)
        return workers.filter {
            $0 != myself && !living.contains($0) && !gate.liveness.areHelpersAlive(of: $0)
        }
    }
}

/// URLs that no job has requested lately, of files that other URLs still use.
extension CacheEviction {
    /// Forgets URLs that were last used before a time, one slice of them. Their files stay as long as other URLs use
    /// them, and the results of jobs stay.
    ///
    /// - Parameter time: by the cache's clock.
    /// - Returns: the number of forgotten URLs; call again until it is 0.
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
            AND NOT EXISTS (SELECT 1 FROM pins WHERE pins.key = sources.key)
            AND NOT EXISTS (SELECT 1 FROM blobs WHERE blobs.hash = sources.hash AND lifetime IS NOT NULL)
            AND NOT EXISTS (SELECT 1 FROM cache_entries CROSS JOIN blobs ON blobs.hash = cache_entries.blob
                WHERE cache_entries.key = sources.key AND lifetime IS NOT NULL)
            ORDER BY used_at LIMIT ?
        """

    private static func forget(key: String, hash: String, in db: Connection) throws {
        let entries = try db.rows("SELECT * FROM cache_entries WHERE key = ?", [key])
        for entry in entries { try LinkList.note(CacheEntry(row: entry), in: db) }
        try db.run("DELETE FROM cache_entries WHERE key = ?", [key])
        try db.run("DELETE FROM sources WHERE key = ?", [key])
        try CacheIndex.forgetRules(of: key, in: db)
        try CacheIndex.forgetFacts(ofUnused: hash, in: db)
    }

    /// The quarantined files that have expired, by the cache's clock. The age of each counts from the first call that
    /// saw it, since the file's own times follow the machine's clock, which may be set.
    ///
    /// - Parameters:
    ///   - names: all files that are in quarantine now.
    ///   - age: in milliseconds.
    public func expired(inQuarantine names: [String], after age: Int64) async throws(JobsError) -> [String] {
        let reading = gate.reading
        let (time, known) = try await gate.read { db in
            let rows = try db.rows("SELECT name, seen_at FROM quarantined")
            return (
                try reading.time(in: db),
                // Another program may have written one name as text and as bytes.
                Dictionary(rows.map { ($0["name"] as String, $0["seen_at"] as Int64) }, uniquingKeysWith: min)
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
