internal import GRDB

extension JobStore {
    /// Which entries of the blacklist are meant.
    public enum BlacklistSelection: Sendable {
        case all
        case url(String)
        /// By the host's name, or by another that it may have been listed under.
        case host(String, or: String? = nil)
        case failure(FailureClass)

        fileprivate var condition: (sql: String, arguments: StatementArguments) {
            switch self {
            case .all: ("1", [])
            case .url(let url): ("url = ?", [URLText.cacheKey(url)])
            case .host(let host, let other): ("host IN (?, ?)", [host.lowercased(), (other ?? host).lowercased()])
            case .failure(let failure): ("class = ?", [failure.rawValue])
            }
        }
    }

    /// The entries in force, the latest first.
    public func blacklist(_ selection: BlacklistSelection = .all, limit: Int = 1_000) async throws(JobsError)
        -> [BlacklistEntry]
    {
        let reading = reading
        return try await read { db in
            let now = try Self.cacheTime(reading, in: db)
            let (condition, arguments) = selection.condition
            return try Row.fetchAll(
                db,
                sql: """
                    SELECT * FROM blacklist_entries WHERE \(condition) AND expires_at > ?
                    ORDER BY last_at DESC, url LIMIT ?
                    """,
                arguments: arguments + [now, limit],
            ).map(entry)
        }
    }

    /// Takes entries off the list.
    ///
    /// - Returns: how many there were.
    public func removeFromBlacklist(_ selection: BlacklistSelection) async throws(JobsError) -> Int {
        try await write { db in
            let (condition, arguments) = selection.condition
            try db.execute(sql: "DELETE FROM blacklist_entries WHERE \(condition)", arguments: arguments)
            return db.changesCount
        }
    }

    static func blacklisting(key: String, now: Int64, in db: Database) throws -> BlacklistEntry? {
        let statement = try db.cachedStatement(sql: "SELECT * FROM blacklist_entries WHERE url = ? AND expires_at > ?")
        return try Row.fetchOne(statement, arguments: [key, now]).map(entry)
    }

    static func blacklist(_ item: ClaimedItem, failure: FailureRecord, until: Int64, now: Int64, in db: Database) throws
    {
        try blacklist(
            key: item.key, host: URLText.host(item.url), failure: failure, until: until, now: now, in: db)
    }

    static func blacklist(
        key: String, host: String, failure: FailureRecord, until: Int64, now: Int64, in db: Database,
    ) throws {
        try db.cachedStatement(
            sql: """
                INSERT INTO blacklist_entries (url, host, class, http_status, message, count, first_at, last_at, expires_at,
                    setting)
                VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?, ?)
                ON CONFLICT (url) DO UPDATE SET class = excluded.class, http_status = excluded.http_status,
                    message = excluded.message, count = count + 1, last_at = excluded.last_at,
                    expires_at = excluded.expires_at, setting = excluded.setting
                """
        ).execute(arguments: [
            key, host, failure.failure.rawValue, failure.httpStatus, failure.message, now, now,
            until, failure.setting,
        ])
    }

    static func unblacklist(key: String, in db: Database) throws {
        try RowStatement("DELETE FROM blacklist_entries WHERE url = ?", in: db).run(key)
    }
}

private func entry(_ row: Row) -> BlacklistEntry {
    BlacklistEntry(
        url: row.text("url") ?? "", host: row.text("host") ?? "",
        failure: row.text("class").flatMap(FailureClass.init(rawValue:)) ?? .badImage,
        httpStatus: row.number("http_status").map { Int(clamping: $0) }, message: row.text("message"),
        count: row.count("count"), firstAt: row.number("first_at") ?? 0, lastAt: row.number("last_at") ?? 0,
        expiresAt: row.number("expires_at") ?? 0, setting: row.text("setting"),
    )
}
