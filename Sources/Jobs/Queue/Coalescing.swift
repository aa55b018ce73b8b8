internal import Core

// Coalesces requests for one URL across workers.
extension JobQueue {
    /// How long an item is delayed if another worker is processing the same URL, in milliseconds.
    static let coalescingDelay: Int64 = 250

    /// The cache keys of other workers' active items. Items with these keys are not claimed: they will soon be cached.
    static func keysOfOthers(than worker: Int64, in db: Connection) throws -> Set<String> {
        if try db.flag("SELECT NOT EXISTS (SELECT 1 FROM leases WHERE worker <> ?)", [worker]) == true { return [] }
        let statement = try RowStatement(
            """
            SELECT \(ItemSchema.askedURL("items")), jobs.options FROM leases
            CROSS JOIN items ON items.lease = leases.id AND items.state = 'active'
            CROSS JOIN jobs ON jobs.id = items.job WHERE leases.worker <> ?
            """, in: db)
        var rules: [String: CacheKeyRule?] = [:]
        return Set(
            try statement.all(worker) { row in
                let (url, options) = (row.text(0) ?? "", row.text(1) ?? "")
                if rules[options] == nil { rules[options] = .some(keyRule(options)) }
                return key(of: url, by: rules[options] ?? nil)
            })
    }

    /// A job's cache-key rule, unless it is a pattern: patterns and delegates may be slow, so they do not run under the
    /// write lock. So two workers may at once fetch URLs to which a pattern or a delegate gives one key.
    static func keyRule(_ options: String?) -> CacheKeyRule? {
        guard let options, options.contains("cache-key=") else { return nil }
        // Best effort: the worker that claims a job with unreadable options fails it.
        let rule = (try? JobSettings(parsing: options))?.cacheKey
        return rule?.isPattern == true ? nil : rule
    }

    static func key(of url: String, by rule: CacheKeyRule?) -> String {
        // Best effort: only patterns can fail, and they are left out.
        (try? rule?.key(of: url)) ?? URLText.cacheKey(url)
    }

    /// Delays an item whose key another worker is processing.
    static let leaving: StaticString = """
        UPDATE items SET state = 'delayed', lease = NULL, run_at = ?, waits_for = NULL,
            message = 'Another worker is fetching this URL.' WHERE id = ?
        """
}
