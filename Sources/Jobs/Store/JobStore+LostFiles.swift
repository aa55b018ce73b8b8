internal import GRDB

/// A file of the cache that turned out missing or damaged, and is not there again yet.
public struct LostFile: Hashable, Sendable, Codable {
    public let key: String
    /// The variant's name; empty for the source.
    public let variant: String
    public let blob: String

    public init(key: String, variant: String, blob: String) {
        self.key = key
        self.variant = variant
        self.blob = blob
    }
}

extension JobStore {
    /// Files that were lost and that no unfinished job has been told to fetch again.
    public func lostFiles(limit: Int) async throws(JobsError) -> [LostFile] {
        try await read { db in try Self.lostFiles(limit: limit, in: db) }
    }

    /// Files that were lost and that a job is about to fetch again.
    public func lostFilesOnTheirWay() async throws(JobsError) -> Int {
        try await read { db in
            try Int.fetchOne(db, sql: "SELECT count(*) FROM lost_files WHERE NOT \(Self.isNobodys)") ?? 0
        }
    }

    /// Nobody wants them any more: what was found before a time, by the cache's clock, but for what is pinned.
    public func forgetLostFiles(foundBefore time: Int64) async throws(JobsError) {
        let isSome = try await read { db in
            try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM lost_files WHERE found_at < ?)", arguments: [time])
        }
        guard isSome == true else { return }
        try await write { db in
            try db.execute(
                sql: "DELETE FROM lost_files WHERE found_at < ? AND key NOT IN (SELECT key FROM pins)",
                arguments: [time])
        }
    }

    static func lostFiles(limit: Int, in db: Database) throws -> [LostFile] {
        try Row.fetchAll(
            db,
            sql: "SELECT key, variant, blob FROM lost_files WHERE \(isNobodys) ORDER BY key, variant LIMIT ?",
            arguments: [limit]
        ).map(LostFile.init(row:))
    }

    /// Those of them whose URLs nothing keeps from being asked for.
    static func lostFiles(unlistedAt now: Int64, limit: Int, in db: Database) throws -> [LostFile] {
        try Row.fetchAll(
            db,
            sql: """
                SELECT key, variant, blob FROM lost_files WHERE \(isNobodys) AND NOT \(isListed)
                ORDER BY key, variant LIMIT ?
                """,
            arguments: [now, limit]
        ).map(LostFile.init(row:))
    }

    /// Of the files that were lost and are nobody's, those whose URLs are on the blacklist.
    public func lostFilesOnBlacklist() async throws(JobsError) -> Int {
        let reading = reading
        return try await read { db in
            try Int.fetchOne(
                db, sql: "SELECT count(*) FROM lost_files WHERE \(Self.isNobodys) AND \(Self.isListed)",
                arguments: [try Self.cacheTime(reading, in: db)]) ?? 0
        }
    }

    static func isNobodys(_ file: LostFile, in db: Database) throws -> Bool {
        let statement = try db.cachedStatement(
            sql: "SELECT EXISTS (SELECT 1 FROM lost_files WHERE key = ? AND variant = ? AND \(isNobodys))")
        return try Bool.fetchOne(statement, arguments: [file.key, file.variant]) ?? false
    }

    private static let isListed = """
        EXISTS (SELECT 1 FROM blacklist_entries WHERE url = lost_files.key AND expires_at > ?)
        """

    /// A condition on a row of `lost_files`: no job is on its way to it.
    private static let isNobodys = """
        (job IS NULL OR NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = lost_files.job
            AND jobs.state IN ('queued', 'running', 'paused')))
        """

    // MARK: - Steps

    /// Written down in the transaction that forgets them.
    static func note(_ lost: [LostFile], now: Int64, in db: Database) throws {
        let statement = try db.cachedStatement(
            sql: "INSERT OR REPLACE INTO lost_files (key, variant, blob, found_at) VALUES (?, ?, ?, ?)")
        for file in lost { try statement.execute(arguments: [file.key, file.variant, file.blob, now]) }
    }

    static func hasLostFiles(in db: Database) throws -> Bool {
        try Bool.fetchOne(db.cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM lost_files)")) ?? false
    }

    /// They are there again.
    static func found(_ variants: [String], of key: String, in db: Database) throws {
        let statement = try db.cachedStatement(sql: "DELETE FROM lost_files WHERE key = ? AND variant = ?")
        for variant in variants { try statement.execute(arguments: [key, variant]) }
    }
}

extension LostFile {
    fileprivate init(row: Row) { self.init(key: row["key"], variant: row["variant"], blob: row["blob"]) }
}
