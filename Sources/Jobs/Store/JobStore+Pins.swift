internal import GRDB

/// URLs whose files are never evicted: the source and every variant, those that are made later too.
extension JobStore {
    public func pin(_ urls: [String]) async throws(JobsError) {
        let now = now()
        try await write { db in
            for url in urls {
                for key in try Self.keys(ofURL: url, in: db) {
                    try db.execute(
                        sql: "INSERT OR IGNORE INTO pins (key, pinned_at) VALUES (?, ?)", arguments: [key, now])
                }
            }
        }
    }

    /// - Returns: how many of them were pinned.
    public func unpin(_ urls: [String]) async throws(JobsError) -> Int {
        try await write { db in
            try urls.reduce(0) { count, url in
                var isPinned = false
                for key in try Self.keys(ofURL: url, in: db) {
                    try db.execute(sql: "DELETE FROM pins WHERE key = ?", arguments: [key])
                    isPinned = isPinned || db.changesCount > 0
                }
                return count + (isPinned ? 1 : 0)
            }
        }
    }

    public func pinned(limit: Int = 1_000) async throws(JobsError) -> [String] {
        try await read { db in
            try String.fetchAll(db, sql: "SELECT key FROM pins ORDER BY key LIMIT ?", arguments: [limit])
        }
    }

    /// Bytes of all files that are pinned. Looks at the whole index.
    public func pinnedBytes() async throws(JobsError) -> Int64 {
        try await read { db in
            let hasSome = try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM pins)") ?? false
            guard hasSome else { return 0 }
            return try Int64.fetchOne(db, sql: "SELECT ifnull(sum(size), 0) FROM blobs WHERE \(Self.isPinned)") ?? 0
        }
    }

    /// A condition on a row of `blobs`: one of the URLs it stands for is pinned.
    static let isPinned = """
        (EXISTS (SELECT 1 FROM sources CROSS JOIN pins ON pins.key = sources.key WHERE sources.hash = blobs.hash)
        OR EXISTS (SELECT 1 FROM variants CROSS JOIN sources ON sources.hash = variants.source
            CROSS JOIN pins ON pins.key = sources.key WHERE variants.blob = blobs.hash)
        OR EXISTS (SELECT 1 FROM entries CROSS JOIN pins ON pins.key = entries.key WHERE entries.blob = blobs.hash))
        """
}
