internal import Core

/// The sources that active items may use. Neither these sources nor their variants are evicted.
struct LeasedSources {
    private let hashes: Set<String>

    init(in db: Connection) throws {
        let items = try db.rows(
            """
            SELECT \(ItemSchema.askedURL("items")), CASE WHEN jobs.options LIKE '%cache-key=%' THEN jobs.options END
            FROM items CROSS JOIN jobs ON jobs.id = items.job WHERE items.state = 'active'
            """)
        var rules: [String: CacheKeyRule] = [:]
        var keys: Set<String> = []
        for item in items {
            let url = item[0] ?? ""
            keys.insert(URLText.cacheKey(url))
            // Best effort: an active item whose source is evicted meanwhile fetches it again.
            if let options = item[1] as String?,
                let rule = rules[options] ?? (try? JobSettings(parsing: options))?.cacheKey
            {
                rules[options] = rule
                // Best effort: a pattern that takes too long makes no key.
                if let key = try? rule.key(of: url) { keys.insert(key) }
            }
        }
        guard !keys.isEmpty else {
            hashes = []
            return
        }
        let select = try RowStatement("SELECT hash FROM sources WHERE key = ?", in: db)
        hashes = Set(try select.firstEach(Array(keys), { $0 }) { $0.text(0) ?? "" }.compactMap(\.self))
    }

    /// Whether a blob has to stay: it is one of them, a variant of one, or pinned.
    func hold(_ hash: String, in db: Connection) throws -> Bool {
        if hashes.contains(hash) { return true }
        if !hashes.isEmpty {
            let sources = try db.texts("SELECT source FROM variants WHERE blob = ?", [hash])
            if sources.contains(where: hashes.contains) { return true }
        }
        return try db.flag("SELECT \(CacheIndex.isPinned) FROM blobs WHERE hash = ?", [hash]) ?? true
    }
}
