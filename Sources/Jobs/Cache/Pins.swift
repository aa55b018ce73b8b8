internal import Core

/// URLs whose files are never evicted: the source and every variant, including variants that are made later.
extension CacheIndex {
    public func pin(_ urls: [String]) async throws(JobsError) {
        let now = gate.now()
        try await gate.write { db in
            for url in urls {
                for key in try Self.keys(ofURL: url, in: db) {
                    try Self.pin(key, of: url, at: now, in: db)
                }
            }
        }
    }

    /// - Returns: how many of these URLs were pinned.
    public func unpin(_ urls: [String]) async throws(JobsError) -> Int {
        try await gate.write { db in
            try urls.count { url in
                let name = URLText.cacheKey(url)
                var keys = try db.texts("SELECT key FROM pin_urls WHERE url = ?", [name])
                // A user's SQL may fill only `pins`.
                if keys.isEmpty { keys = try Self.keys(ofURL: url, in: db) }
                try db.run("DELETE FROM pin_urls WHERE url = ?", [name])
                return try keys.count { key in
                    let isPinned = try Self.isPinned(key, in: db)
                    // Another URL may pin the same key.
                    try db.run(
                        """
                        DELETE FROM pins WHERE key = ?1 AND NOT EXISTS (SELECT 1 FROM pin_urls WHERE key = ?1)
                        """, [key])
                    return isPinned
                } > 0
            }
        }
    }

    /// The pinned URLs.
    public func pinned(limit: Int = 1_000) async throws(JobsError) -> [String] {
        try await gate.read { db in
            try db.texts(
                """
                SELECT url FROM pin_urls WHERE key IN (SELECT key FROM pins)
                UNION SELECT key FROM pins WHERE key NOT IN (SELECT key FROM pin_urls) ORDER BY 1 LIMIT ?
                """, [limit])
        }
    }

    /// Whether the files of a URL are kept always.
    public func isPinned(_ url: String) async throws(JobsError) -> Bool {
        try await gate.read { db in
            try Self.keys(ofURL: url, in: db).contains { try Self.isPinned($0, in: db) }
        }
    }

    // MARK: - Steps

    /// - Parameter time: stored for people who read the table with SQL; no code reads it.
    private static func pin(_ key: String, of url: String, at time: WallTime, in db: Connection) throws {
        try db.run("INSERT OR IGNORE INTO pins (key, pinned_at) VALUES (?, ?)", [key, time.milliseconds])
        try db.run("INSERT OR IGNORE INTO pin_urls (url, key) VALUES (?, ?)", [URLText.cacheKey(url), key])
    }

    /// Also pins the keys that a rule or a delegate made of pinned URLs.
    static func extendPins(of items: [ClaimedItem], now: WallTime, in statements: RowStatements) throws {
        let renamed = items.map { (name: URLText.cacheKey($0.url), item: $0) }.filter { $0.name != $0.item.key }
        guard !renamed.isEmpty else { return }
        let isPinned = try statements("SELECT 1 FROM pins WHERE key = ?").firstEach(renamed, { $0.name }) { _ in true }
        for (renamed, isPinned) in zip(renamed, isPinned) where isPinned == true {
            try extendPin(of: renamed.item.url, named: renamed.name, to: renamed.item.key, now: now, in: statements.db)
        }
    }

    private static func extendPin(
        of url: String, named name: String, to key: String, now: WallTime, in db: Connection,
    ) throws {
        // Its own key may have been pinned for another URL.
        let isItself = try db.flag(
            """
            SELECT EXISTS (SELECT 1 FROM pin_urls WHERE url = ?1)
                OR NOT EXISTS (SELECT 1 FROM pin_urls WHERE key = ?1)
            """, [name])
        if isItself == true { try pin(key, of: url, at: now, in: db) }
    }

    private static func isPinned(_ key: String, in db: Connection) throws -> Bool {
        return try db.exists("SELECT 1 FROM pins WHERE key = ?", [key])
    }

    /// Bytes of all pinned files. Reads the whole index.
    public func pinnedBytes() async throws(JobsError) -> Int64 {
        try await gate.read { db in
            let hasSome = try db.exists("SELECT 1 FROM pins")
            guard hasSome else { return 0 }
            return Int64(
                bytes: try db.integer("SELECT coalesce(sum(size), 0) FROM blobs WHERE \(Self.isPinned)") ?? 0)
        }
    }

    /// A condition on a row of `blobs`: one of its URLs is pinned.
    static let isPinned = """
        (EXISTS (SELECT 1 FROM sources CROSS JOIN pins ON pins.key = sources.key WHERE sources.hash = blobs.hash)
        OR EXISTS (SELECT 1 FROM variants CROSS JOIN sources ON sources.hash = variants.source
            CROSS JOIN pins ON pins.key = sources.key WHERE variants.blob = blobs.hash)
        OR EXISTS (SELECT 1 FROM cache_entries CROSS JOIN pins ON pins.key = cache_entries.key WHERE cache_entries.blob = blobs.hash))
        """
}
