internal import Core

/// The cache keys of a URL: a job's rule may make another key than the URL's own.
extension CacheIndex {
    /// The cache keys of a URL: first its own; then the keys that the rules of jobs with a finished item of this URL
    /// make of it; then the keys that the rules of removed jobs make of it. Keys from delegates are not included.
    ///
    /// - Parameter everyState: also for jobs in which the item waits or failed. This searches all items.
    public func keys(ofURL url: String, everyState: Bool = false) async throws(JobsError) -> [String] {
        try await gate.read { db in try Self.keys(ofURL: url, everyState: everyState, in: db) }
    }

    static func keys(ofURL url: String, everyState: Bool = false, in db: Connection) throws -> [String] {
        var keys = [URLText.cacheKey(url)]
        // A fallback of the item may have served the URL.
        keys += try db.texts(
            """
            SELECT DISTINCT \(ItemSchema.askedURL("items")) FROM items
            WHERE url = ? AND state = 'done' AND fallback IS NOT NULL LIMIT 100
            """, [url]
        ).map(URLText.cacheKey)
        let rules = try db.texts(
            """
            SELECT DISTINCT jobs.options FROM items CROSS JOIN jobs ON jobs.id = items.job
            WHERE items.url = ? \(everyState ? "" : "AND items.state = 'done'") AND jobs.options LIKE '%cache-key=%'
            LIMIT 100
            """, [url])
        for text in rules {
            // Best effort: unreadable options, and patterns that take too long, make no key.
            guard let key = try? JobSettings(parsing: text).cacheKey?.key(of: url), !keys.contains(key) else {
                continue
            }
            keys.append(key)
        }
        for text in try rememberedRules(in: db) {
            // Best effort: unreadable rules, and patterns that take too long, make no key.
            guard let key = try? CacheKeyRule(text).key(of: url), !keys.contains(key) else { continue }
            if try db.exists("SELECT 1 FROM key_rules WHERE rule = ? AND key = ?", [text, key]) { keys.append(key) }
        }
        return keys
    }

    /// The rules of removed jobs, each once: one look-up per rule, independent of the number of its keys.
    private static func rememberedRules(in db: Connection) throws -> [String] {
        var rules: [String] = []
        while rules.count < 100,
            let rule = try db.text("SELECT min(rule) FROM key_rules WHERE rule > ?", [rules.last ?? ""])
        {
            rules.append(rule)
        }
        return rules
    }

    /// Stores the rule by which a key was made, as long as the key is known: the job with the rule is being removed.
    static func remember(_ rule: CacheKeyRule, of key: String, in db: Connection) throws {
        try db.run(
            """
            INSERT OR IGNORE INTO key_rules (rule, key) SELECT ?1, ?2
                WHERE EXISTS (SELECT 1 FROM sources WHERE key = ?2)
            """, [rule.text, key])
    }

    static func forgetRules(of key: String, in db: Connection) throws {
        try db.run("DELETE FROM key_rules WHERE key = ?", [key])
    }
}

/// The last use of blobs. Workers write it at most once a minute for each blob, in transactions that end items.
extension CacheIndex {
    /// A use is recorded only if it is newer by this, in milliseconds.
    static let useResolution: Int64 = 60_000

    /// One use of a blob, and whether its bytes were verified.
    public struct BlobUse: Sendable {
        public let hash: String
        /// The file's stamp when its bytes were verified; nil if they were not.
        public let verified: String?
        /// The cache key by which it was requested.
        public let key: String?

        public init(hash: String, verified: String? = nil, key: String? = nil) {
            self.hash = hash
            self.verified = verified
            self.key = key
        }
    }

    /// Saves uses without waiting for the write lock; drops them if another process holds it.
    public func noteUses(_ uses: [BlobUse]) async throws(JobsError) {
        guard !uses.isEmpty else { return }
        let reading = gate.reading
        _ = try await gate.writeIfFree { db in
            let time = try reading.time(in: db)
            let statements = RowStatements(db)
            let update = try statements(
                """
                UPDATE blobs SET used_at = max(used_at, ?), verified = coalesce(?, verified)
                WHERE hash = ? AND dying = 0
                """)
            try update.runEach(uses) { (time, $0.verified, $0.hash) }
            _ = try Self.noteUse(ofKeys: uses.compactMap(\.key), now: time, in: statements)
        }
    }

    /// A blob's last use, by this key if one is given, and its file's stamp at the last verification.
    public func lastUse(
        of hash: String, by key: String? = nil,
    ) async throws(JobsError) -> (usedAt: Int64, verified: String?)? {
        try await gate.read { db in
            try db.row(
                """
                SELECT min(used_at, coalesce((SELECT used_at FROM sources WHERE key = ?), used_at)) AS used_at, verified
                FROM blobs WHERE hash = ? AND dying = 0
                """, [key, hash]
            ).map { (usedAt: $0["used_at"], verified: $0["verified"]) }
        }
    }

    /// Deletes the facts of bytes that no URL and no variant refers to.
    static func forgetFacts(ofUnused hash: String, in db: Connection) throws {
        try db.run(
            """
            DELETE FROM source_facts WHERE hash = ?1 AND NOT EXISTS (SELECT 1 FROM sources WHERE sources.hash = ?1)
                AND NOT EXISTS (SELECT 1 FROM variants WHERE variants.source = ?1)
            """, [hash])
    }

    /// - Returns: for each key, whether the URL is known.
    static func noteUse(ofKeys keys: [String], now: SteadyTime, in statements: RowStatements) throws -> [Bool] {
        let select = try statements("SELECT used_at FROM sources WHERE key = ?")
        let known = try select.firstEach(keys, { $0 }, read: { $0.integer(0) })
        let old = zip(keys, known).filter { $1.map { $0 < (now - useResolution).milliseconds } ?? false }
        if !old.isEmpty {
            try statements("UPDATE sources SET used_at = ? WHERE key = ?").runEach(old) { key, _ in (now, key) }
        }
        return known.map { $0 != nil }
    }
}
