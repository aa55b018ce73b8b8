/// Selects entries of the cache; an entry must match all given fields.
public struct EntrySelection: Sendable {
    /// URLs as they were enqueued; empty for any.
    public var urls: [String] = []
    /// A variant's name, or `original`.
    public var variant: String?
    public var host: String?
    /// The function that turns a URL into its host, as written in ``host``.
    public var nameOfHost: @Sendable (String) -> String = URLText.host
    /// A pattern of the URL, with `*`, `?` and `[…]` as in SQLite's GLOB.
    public var pattern: String?

    public init() {}
}

/// Removes single entries, as `DELETE FROM entries` does.
extension CacheIndex {
    /// A page of the selected entries, in their order.
    ///
    /// - Returns: the entries, and the one to continue after; nil at the end.
    public func entries(
        _ selection: EntrySelection, after last: CacheEntry? = nil, limit: Int = 500,
    ) async throws(JobsError) -> (page: [CacheEntry], next: CacheEntry?) {
        try await gate.read { db in
            let condition = "(CAST(? AS TEXT) IS NULL OR variant = ?) AND (CAST(? AS TEXT) IS NULL OR key GLOB ?)"
            let values: SQLValues = [
                selection.variant, selection.variant, selection.pattern, selection.pattern,
            ]
            let rows: [Row]
            if selection.urls.isEmpty {
                rows = try db.rows(
                    """
                    SELECT * FROM cache_entries WHERE (key, variant) > (?, ?) AND \(condition)
                    ORDER BY key, variant LIMIT ?
                    """, [last?.key ?? "", last?.variant ?? ""] + values + [limit])
            } else {
                let keys = try selection.urls.flatMap { try Self.keys(ofURL: $0, in: db) }
                rows = try keys.flatMap {
                    try db.rows(
                        "SELECT * FROM cache_entries WHERE key = ? AND \(condition) ORDER BY variant",
                        [$0] + values)
                }
            }
            let all = rows.map(CacheEntry.init(row:))
            let host = selection.host?.lowercased()
            let meant = all.filter { entry in host.map { selection.nameOfHost(entry.key) == $0 } ?? true }
            let isFull = selection.urls.isEmpty && all.count == limit
            return (meant, isFull ? all.last.flatMap { $0.isBeyond(last) ? $0 : nil } : nil)
        }
    }

    /// Deletes entries from the index, and marks the files that no other entry needs as dying.
    ///
    /// - Returns: the number of deleted entries.
    public func remove(_ entries: [CacheEntry]) async throws(JobsError) -> Int {
        var count = 0
        var rest = entries[...]
        while !rest.isEmpty {
            let (gone, seen) = try await gate.writeSlice(.eviction) { [rest] db, rows in
                var gone = 0
                let seen = try DatabaseGate.untilTimeIsUp(rest.prefix(rows)) { entry in
                    // SQLite does not count the changes of an INSTEAD OF trigger.
                    gone += try Self.entry(key: entry.key, variant: entry.variant, in: db) == nil ? 0 : 1
                    try db.run("DELETE FROM entries WHERE key = ? AND variant = ?", [entry.key, entry.variant])
                }
                return ((gone, seen), seen)
            }
            count += gone
            rest = rest.dropFirst(seen)
        }
        return count
    }
}
