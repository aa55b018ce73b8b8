public import Core

/// URLs that are not requested until their entries expire.
public struct Blacklist: Sendable {
    let gate: DatabaseGate

    /// Selects entries of the blacklist.
    public enum Selection: Sendable {
        case all
        case url(String)
        /// The host's name, or another name under which it may have been listed.
        case host(String, or: String? = nil)
        case failure(FailureClass)
        indirect case both(Selection, Selection)

        fileprivate var condition: (sql: String, arguments: SQLValues) {
            switch self {
            case .all: ("TRUE", [])
            case .url(let url): ("url = ?", [URLText.cacheKey(url)])
            case .host(let host, let other): ("host IN (?, ?)", [host.lowercased(), (other ?? host).lowercased()])
            case .failure(let failure): ("class = ?", [failure.rawValue])
            case .both(let one, let other):
                ("\(one.condition.sql) AND \(other.condition.sql)", one.condition.arguments + other.condition.arguments)
            }
        }
    }

    /// The entries in force, the latest first.
    public func entries(_ selection: Selection = .all, limit: Int = 1_000) async throws(JobsError)
        -> [BlacklistEntry]
    {
        let reading = gate.reading
        return try await gate.read { db in
            let now = try reading.moment(in: db)
            let (condition, arguments) = selection.condition
            return try db.rows(
                """
                SELECT * FROM blacklist_entries WHERE \(condition) AND expires_at > ?
                ORDER BY last_at DESC, url LIMIT ?
                """, arguments + [now.steady.milliseconds, limit]
            ).map { BlacklistEntry(row: $0, now) }
        }
    }

    /// How many entries ``remove(_:)`` would remove.
    public func count(_ selection: Selection) async throws(JobsError) -> Int {
        try await gate.read { db in
            let (condition, arguments) = selection.condition
            return Int(
                clamping: try db.integer("SELECT count(*) FROM blacklist_entries WHERE \(condition)", arguments) ?? 0)
        }
    }

    /// Removes entries.
    ///
    /// - Returns: the number of removed entries.
    public func remove(_ selection: Selection) async throws(JobsError) -> Int {
        try await gate.write { db in
            let (condition, arguments) = selection.condition
            return try db.change("DELETE FROM blacklist_entries WHERE \(condition)", arguments)
        }
    }

    /// The entries in force of these keys; nil for a key that has none.
    static func entries(keys: [String], now: Moment, in statements: RowStatements) throws -> [BlacklistEntry?] {
        let names = [
            "url", "host", "class", "http_status", "message", "count", "first_at", "last_at", "expires_at", "setting",
        ]
        let select = try statements(
            """
            SELECT url, host, class, http_status, message, count, first_at, last_at, expires_at, setting
            FROM blacklist_entries WHERE url = ? AND expires_at > ?
            """)
        return try select.firstEach(keys, { ($0, now.steady) }, read: { BlacklistEntry(row: $0.row(names), now) })
    }

    /// A URL that is put on the blacklist.
    struct Listing {
        let key: String
        let host: String
        let failure: Failure
        /// When the URL may be requested again.
        let until: SteadyTime
    }

    /// - Parameter now: shown to users.
    static func add(_ listings: [Listing], now: WallTime, in statements: RowStatements) throws {
        let insert = try statements(
            """
            INSERT INTO blacklist_entries (url, host, class, http_status, message, count, first_at, last_at, expires_at,
                setting)
            VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6, ?6, ?7, ?8)
            ON CONFLICT (url) DO UPDATE SET class = excluded.class, http_status = excluded.http_status,
                message = excluded.message, count = blacklist_entries.count + 1, last_at = excluded.last_at,
                expires_at = excluded.expires_at, setting = excluded.setting
            """)
        try insert.runEach(listings) { listing in
            (
                listing.key, listing.host, listing.failure.failureClass.rawValue, listing.failure.httpStatus,
                listing.failure.message, now, listing.until, listing.failure.setting
            )
        }
    }

    static func remove(keys: [String], in statements: RowStatements) throws {
        try statements("DELETE FROM blacklist_entries WHERE url = ?").runEach(keys) { $0 }
    }
}

extension BlacklistEntry {
    fileprivate init(row: Row, _ now: Moment) {
        self.init(
            url: row.text("url") ?? "", host: row.text("host") ?? "",
            failure: row.text("class").flatMap(FailureClass.init(rawValue:)) ?? .badImage,
            httpStatus: row.number("http_status").map { Int(clamping: $0) }, message: row.text("message"),
            count: row.count("count"), firstAt: row.number("first_at") ?? 0, lastAt: row.number("last_at") ?? 0,
            expiresAt: now.wall(SteadyTime(clamping: row.number("expires_at") ?? 0)), setting: row.text("setting"),
        )
    }
}

/// Checks whether a job's URLs are on the blacklist, by the keys that the job's rule makes.
struct ListedKeys {
    private let rule: CacheKeyRule?
    private let now: SteadyTime
    private let find: RowStatement
    private let remove: RowStatement

    init(of job: JobID, now: SteadyTime, in db: Connection) throws {
        let options = try db.text("SELECT options FROM jobs WHERE id = ?", [job])
        // Best effort: a job with unreadable options has never requested an item.
        rule = options.flatMap { try? JobSettings(parsing: $0) }?.cacheKey
        self.now = now
        find = try RowStatement(
            "SELECT EXISTS (SELECT 1 FROM blacklist_entries WHERE url = ? AND expires_at > ?)", in: db)
        remove = try RowStatement("DELETE FROM blacklist_entries WHERE url = ?", in: db)
    }

    /// - Parameter takesOff: whether to remove the entry.
    func has(_ url: String, takesOff: Bool) throws -> Bool {
        // Best effort: an item whose pattern takes too long fails before it is requested, so that only its URL's own key
        // can be listed.
        let key = (try? rule?.key(of: url)) ?? URLText.cacheKey(url)
        guard try find.first(key, now, read: { $0.integer(0) }) == 1 else { return false }
        if takesOff { try remove.run(key) }
        return true
    }
}
