public import Core

/// Files that the index had and the disk does not have, until they are fetched or made again.
public struct LostFiles: Sendable {
    let gate: DatabaseGate

    /// Lost files that no open job is queued to fetch again.
    public func list(limit: Int) async throws(JobsError) -> [LostFile] {
        try await gate.read { db in try Self.list(limit: limit, in: db) }
    }

    /// The number of lost files that a job will fetch again.
    public func countOnTheirWay() async throws(JobsError) -> Int {
        try await gate.read { db in
            try db.int("SELECT count(*) FROM lost_files WHERE NOT \(Self.isUnqueued)") ?? 0
        }
    }

    /// Forgets files that were found missing before a time, by the cache's clock, except pinned ones.
    public func forget(foundBefore time: SteadyTime) async throws(JobsError) {
        guard try await gate.exists("SELECT 1 FROM lost_files WHERE found_at < ?", [time.milliseconds]) else { return }
        try await gate.write { db in
            try db.run(
                "DELETE FROM lost_files WHERE found_at < ? AND key NOT IN (SELECT key FROM pins)", [time.milliseconds])
        }
    }

    static func list(limit: Int, in db: Connection) throws -> [LostFile] {
        try db.rows(
            "SELECT key, variant, blob FROM lost_files WHERE \(isUnqueued) ORDER BY key, variant LIMIT ?", [limit]
        ).map(LostFile.init(row:))
    }

    /// The lost files of ``list(limit:)`` whose URLs are not on the blacklist.
    static func list(unlistedAt now: SteadyTime, limit: Int, in db: Connection) throws -> [LostFile] {
        try db.rows(
            """
            SELECT key, variant, blob FROM lost_files WHERE \(isUnqueued) AND NOT \(isListed)
            ORDER BY key, variant LIMIT ?
            """, [now.milliseconds, limit]
        ).map(LostFile.init(row:))
    }

    /// The number of lost files that no job will fetch again and whose URLs are on the blacklist.
    public func countOnBlacklist() async throws(JobsError) -> Int {
        let reading = gate.reading
        return try await gate.read { db in
            try db.int(
                "SELECT count(*) FROM lost_files WHERE \(Self.isUnqueued) AND \(Self.isListed)",
                [try reading.time(in: db).milliseconds]) ?? 0
        }
    }

    static func isUnqueued(_ file: LostFile, in db: Connection) throws -> Bool {
        return try db.exists(
            "SELECT 1 FROM lost_files WHERE key = ? AND variant = ? AND \(isUnqueued)", [file.key, file.variant])
    }

    private static let isListed = """
        EXISTS (SELECT 1 FROM blacklist_entries WHERE url = lost_files.key AND expires_at > ?)
        """

    /// A condition on a row of `lost_files`: no open job is queued to fetch it.
    private static let isUnqueued = """
        (job IS NULL OR NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = lost_files.job
            AND jobs.state IN ('queued', 'running', 'paused')))
        """

    // MARK: - Steps

    /// Records lost files, in the transaction that forgets them.
    static func note(_ lost: [LostFile], now: SteadyTime, in db: Connection) throws {
        for file in lost {
            try db.run(
                "INSERT OR REPLACE INTO lost_files (key, variant, blob, found_at) VALUES (?, ?, ?, ?)",
                [file.key, file.variant, file.blob, now.milliseconds])
        }
    }

    static func exist(in db: Connection) throws -> Bool {
        try db.exists("SELECT 1 FROM lost_files")
    }

    /// Takes restored files off the list.
    static func markRestored(_ files: [(key: String, variant: String)], in db: Connection) throws {
        try RowStatement("DELETE FROM lost_files WHERE key = ? AND variant = ?", in: db)
            .runEach(files) { ($0.key, $0.variant) }
    }
}

extension LostFile {
    fileprivate init(row: Row) { self.init(key: row["key"], variant: row["variant"], blob: row["blob"]) }
}
