internal import GRDB

/// URLs that nobody asks for any more, of files that others still use.
extension JobStore {
    /// Forgets what is known of URLs that were last used before a time, a slice of them. Their files stay as long as others
    /// use them, and results of jobs stay.
    ///
    /// - Parameter time: by the cache's clock.
    /// - Returns: how many were forgotten; call again until it is 0.
    public func forgetKeys(usedBefore time: Int64, in folder: CacheFolder) async throws(JobsError) -> Int {
        let isSome = try await read { db in
            try Bool.fetchOne(db, sql: "SELECT EXISTS (\(Self.unusedKeys))", arguments: [time, 1]) ?? false
        }
        guard isSome else { return 0 }
        return try await writeSlice(.urls) { db, rows in
            let keys = try Row.fetchAll(db.cachedStatement(sql: Self.unusedKeys), arguments: [time, rows])
            let count = try Self.untilTimeIsUp(keys) { row in
                try Self.forget(key: row["key"], hash: row["hash"], folder, in: db)
            }
            return (count, count)
        }
    }

    private static let unusedKeys = """
        SELECT key, hash FROM sources WHERE used_at < ?
            AND NOT EXISTS (SELECT 1 FROM pins WHERE pins.key = sources.key) ORDER BY used_at LIMIT ?
        """

    private static func forget(key: String, hash: String, _ folder: CacheFolder, in db: Database) throws {
        let entries = try Row.fetchAll(
            db.cachedStatement(sql: "SELECT * FROM entries WHERE key = ?"), arguments: [key])
        for entry in entries { folder.unlink(CacheEntry(row: entry)) }
        try db.cachedStatement(sql: "DELETE FROM entries WHERE key = ?").execute(arguments: [key])
        try db.cachedStatement(sql: "DELETE FROM sources WHERE key = ?").execute(arguments: [key])
        try forgetRules(of: key, in: db)
        try forgetFacts(ofUnused: hash, in: db)
    }

    /// Facts of bytes that no URL stands for.
    static func forgetFacts(ofUnused hash: String, in db: Database) throws {
        try db.cachedStatement(
            sql: """
                DELETE FROM source_facts WHERE hash = ?1 AND NOT EXISTS (SELECT 1 FROM sources WHERE sources.hash = ?1)
                    AND NOT EXISTS (SELECT 1 FROM variants WHERE variants.source = ?1)
                """
        ).execute(arguments: [hash])
    }

    /// - Returns: whether the URL is known.
    static func use(key: String, now: Int64, in db: Database) throws -> Bool {
        let select = try RowStatement("SELECT used_at FROM sources WHERE key = ?", in: db)
        guard let known = try select.first(key, read: { $0.integer(0) }) else { return false }
        if known < now - useResolution {
            try RowStatement("UPDATE sources SET used_at = ? WHERE key = ?", in: db).run(now, key)
        }
        return true
    }
}
