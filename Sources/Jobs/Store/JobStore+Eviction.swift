internal import GRDB

/// Blobs go in two steps: they are marked as dying, and in a later transaction each is looked at again, its file is deleted
/// and its row with it. A crash in between leaves a row that says why its file may be gone. Whoever wants a dying blob
/// in the meantime revives it, under the same write lock.
extension JobStore {
    /// The time that a blob's age is counted from.
    public enum Expiry: String, Sendable, CaseIterable {
        case used, modified, created

        fileprivate var column: String { rawValue + "_at" }
    }

    /// What may go first.
    public enum EvictionClass: Sendable, CaseIterable {
        case sources, variants

        fileprivate var condition: String { self == .sources ? " AND is_source <> 0" : " AND is_source = 0" }
    }

    public struct EvictionCandidate: Hashable, Sendable {
        public let hash: String
        public let size: Int64
        /// By the clock and the column that were asked for.
        public let time: Int64
        let usedAt: Int64
    }

    /// The oldest blobs that nobody holds: not pinned, and no source, or variant of a source, of an item at work.
    ///
    /// - Parameters:
    ///   - notAfter: leaves out what is younger, by the cache's clock.
    ///   - last: goes on after this one. What is held is skipped, so a page may be empty without being the last.
    /// - Returns: the page, and where to go on; nil at the end.
    public func evictionCandidates(
        _ kind: EvictionClass?, by expiry: Expiry, notAfter: Int64 = .max, after last: EvictionCandidate? = nil,
        limit: Int = 256,
    ) async throws(JobsError) -> (page: [EvictionCandidate], next: EvictionCandidate?) {
        try await read { db in
            let column = expiry.column
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT hash, size, \(column) AS time, used_at FROM blobs
                    WHERE (\(column), hash) > (?, ?) AND \(column) <= ? AND dying = 0\(kind?.condition ?? "")
                    ORDER BY \(column), hash LIMIT ?
                    """,
                arguments: [last?.time ?? .min, last?.hash ?? "", notAfter, limit])
            let all = rows.map {
                EvictionCandidate(hash: $0["hash"], size: $0["size"], time: $0["time"], usedAt: $0["used_at"])
            }
            let leased = try Self.leasedSources(in: db)
            let free = try all.filter { try !Self.isHeld($0.hash, leased, in: db) }
            return (free, all.count < limit ? nil : all.last)
        }
    }

    /// Marks blobs as dying, unless they were used or pinned since they were chosen.
    ///
    /// - Returns: how many were marked.
    public func markDying(_ candidates: [EvictionCandidate]) async throws(JobsError) -> Int {
        let now = max(1, now())
        var count = 0
        var rest = candidates[...]
        while !rest.isEmpty {
            let (marked, seen) = try await markDying(rest, at: now)
            count += marked
            rest = rest.dropFirst(seen)
        }
        return count
    }

    private func markDying(
        _ candidates: ArraySlice<EvictionCandidate>, at now: Int64,
    ) async throws(JobsError) -> (marked: Int, seen: Int) {
        try await writeSlice(.marking) { db, rows in
            let statement = try db.cachedStatement(
                sql: """
                    UPDATE blobs SET dying = ? WHERE hash = ? AND used_at = ? AND dying = 0 AND NOT \(Self.isPinned)
                    """)
            var count = 0
            let seen = try Self.untilTimeIsUp(candidates.prefix(rows)) { candidate in
                try statement.execute(arguments: [now, candidate.hash, candidate.usedAt])
                count += db.changesCount
            }
            return ((count, seen), seen)
        }
    }

    /// What one slice of removing came to.
    public struct Removal: Sendable {
        public var blobs = 0
        public var bytes: Int64 = 0
        /// Whether dying blobs are left.
        public var isUnfinished = false
        /// How many stay, since a worker or a helper has them open.
        public var inUse = 0
        /// How many files could not be deleted, and why the last of them.
        public var stuck = 0
        public var trouble: String?
    }

    /// When a blob was marked whose file could not be deleted: never, so that the others don't wait for it.
    private static let stuck = Int64.max

    /// Has files that could not be deleted tried once more.
    public func releaseStuck() async throws(JobsError) {
        let isSome = try await read { db in
            try Bool.fetchOne(
                db, sql: "SELECT EXISTS (SELECT 1 FROM blobs WHERE dying = ?)", arguments: [Self.stuck])
        }
        guard isSome == true else { return }
        try await write { db in
            try db.execute(sql: "UPDATE blobs SET dying = 1 WHERE dying = ?", arguments: [Self.stuck])
        }
    }

    /// Deletes files and rows of dying blobs for one slice. A file that can't be deleted is passed over: its row stays, for a
    /// later collection.
    public func removeDying(in folder: CacheFolder) async throws(JobsError) -> Removal {
        let hasSome = try await read { db in
            try Bool.fetchOne(
                db, sql: "SELECT EXISTS (SELECT 1 FROM blobs WHERE dying <> 0 AND dying < ?)", arguments: [Self.stuck])
                ?? false
        }
        guard hasSome else { return Removal() }
        return try await writeSlice(.eviction) { db, limit in
            let end = SliceLedger.now() + Self.sliceNanoseconds
            var removal = Removal()
            let dying = try Row.fetchAll(
                db, sql: "SELECT hash, size FROM blobs WHERE dying <> 0 AND dying < ? LIMIT ?",
                arguments: [Self.stuck, limit])
            removal.isUnfinished = dying.count == limit
            for (number, row) in dying.enumerated() {
                // One at least, or a machine that is slow enough would never come to an end.
                guard number == 0 || SliceLedger.now() < end else {
                    removal.isUnfinished = true
                    break
                }
                let hash: String = row["hash"]
                if try Self.revivePinned(hash, in: db) { continue }
                if folder.isInUse(hash) {
                    try db.cachedStatement(sql: "UPDATE blobs SET dying = 0 WHERE hash = ?").execute(arguments: [hash])
                    removal.inUse += 1
                    continue
                }
                // A blob that thousands of URLs stand for takes more than one slice.
                guard try Self.forget(blob: hash, keepingRow: true, folder: folder, in: db) else {
                    removal.isUnfinished = true
                    break
                }
                if let trouble = folder.remove(hash) {
                    removal.trouble = trouble
                    removal.stuck += 1
                    try db.execute(sql: "UPDATE blobs SET dying = ? WHERE hash = ?", arguments: [Self.stuck, hash])
                    continue
                }
                try db.execute(sql: "DELETE FROM blobs WHERE hash = ?", arguments: [hash])
                removal.blobs += 1
                removal.bytes += row["size"]
            }
            try db.execute(
                sql: """
                    UPDATE cache_totals SET evicted_blobs = evicted_blobs + ?, evicted_bytes = evicted_bytes + ?
                    WHERE id = 1
                    """,
                arguments: [removal.blobs, removal.bytes])
            return (removal, removal.isUnfinished ? max(1, removal.blobs + removal.stuck + removal.inUse) : dying.count)
        }
    }

    /// Of these files, those that the index doesn't know.
    public func unknown(blobs hashes: [String]) async throws(JobsError) -> [String] {
        try await read { db in try hashes.filter { try !Self.isKnown($0, in: db) } }
    }

    /// Deletes files that the index doesn't know; asked again under the write lock.
    ///
    /// - Returns: the files that were deleted.
    public func removeUnknown(_ hashes: [String], in folder: CacheFolder) async throws(JobsError) -> [String] {
        var removed: [String] = []
        var rest = hashes[...]
        while !rest.isEmpty {
            let (gone, seen) = try await writeSlice(.orphans) { [rest] db, rows in
                var gone: [String] = []
                let seen = try Self.untilTimeIsUp(rest.prefix(rows)) { hash in
                    if try !Self.isKnown(hash, in: db), folder.remove(hash) == nil { gone.append(hash) }
                }
                return ((gone, seen), seen)
            }
            removed += gone
            rest = rest.dropFirst(seen)
        }
        return removed
    }

    // MARK: - Steps

    private static let entriesPerSlice = 100

    /// Takes a blob out of the index, a bounded number of rows at a time.
    ///
    /// - Parameter lostAt: when it was found missing or damaged, by the cache's clock; nil where it is to go.
    /// - Returns: whether nothing refers to it any more.
    static func forget(
        blob hash: String, keepingRow: Bool = false, folder: CacheFolder, lostAt: Int64? = nil, in db: Database,
    ) throws -> Bool {
        let entries = try entries(ofBlob: hash, limit: entriesPerSlice, in: db)
        let sources = try String.fetchAll(
            db.cachedStatement(sql: "SELECT key FROM sources WHERE hash = ? AND kept <> 0 LIMIT \(entriesPerSlice)"),
            arguments: [hash])
        if let lostAt {
            let lost =
                entries.map { LostFile(key: $0.key, variant: $0.variant, blob: hash) }
                + sources.map { LostFile(key: $0, variant: "", blob: hash) }
            try note(lost, now: lostAt, in: db)
        }
        for entry in entries {
            folder.unlink(entry)
            try db.cachedStatement(sql: "DELETE FROM entries WHERE key = ? AND variant = ?")
                .execute(arguments: [entry.key, entry.variant])
        }
        for key in sources {
            try db.cachedStatement(sql: "UPDATE sources SET kept = 0 WHERE key = ?").execute(arguments: [key])
        }
        guard entries.count < entriesPerSlice, sources.count < entriesPerSlice else { return false }
        try db.cachedStatement(sql: "DELETE FROM variants WHERE blob = ?").execute(arguments: [hash])
        if !keepingRow { try db.cachedStatement(sql: "DELETE FROM blobs WHERE hash = ?").execute(arguments: [hash]) }
        return true
    }

    private static func revivePinned(_ hash: String, in db: Database) throws -> Bool {
        try db.cachedStatement(sql: "UPDATE blobs SET dying = 0 WHERE hash = ? AND \(isPinned)")
            .execute(arguments: [hash])
        return db.changesCount > 0
    }

    private static func isKnown(_ hash: String, in db: Database) throws -> Bool {
        let statement = try db.cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM blobs WHERE hash = ?)")
        return try Bool.fetchOne(statement, arguments: [hash]) ?? false
    }

    /// The hashes of the sources that items at work may be about to use.
    private static func leasedSources(in db: Database) throws -> Set<String> {
        let source = try db.cachedStatement(sql: "SELECT hash FROM sources WHERE key = ?")
        let items = try Row.fetchAll(
            db,
            sql: """
                SELECT items.url, CASE WHEN jobs.options LIKE '%cache-key=%' THEN jobs.options END
                FROM items CROSS JOIN jobs ON jobs.id = items.job WHERE items.state = 'active'
                """)
        var rules: [String: CacheKeyRule] = [:]
        return try items.reduce(into: []) { hashes, item in
            let url: String = item[0]
            var keys = [URLText.cacheKey(url)]
            // What can't be read is of a job that doesn't run.
            if let options = item[1] as String?,
                let rule = rules[options] ?? (try? JobSettings(parsing: options))?.cacheKey
            {
                rules[options] = rule
                if let key = try? rule.key(of: url) { keys.append(key) }
            }
            for key in keys {
                if let hash = try String.fetchOne(source, arguments: [key]) { hashes.insert(hash) }
            }
        }
    }

    private static func isHeld(_ hash: String, _ leased: Set<String>, in db: Database) throws -> Bool {
        if leased.contains(hash) { return true }
        if !leased.isEmpty {
            let sources = try String.fetchAll(
                db.cachedStatement(sql: "SELECT source FROM variants WHERE blob = ?"), arguments: [hash])
            if sources.contains(where: leased.contains) { return true }
        }
        let statement = try db.cachedStatement(sql: "SELECT \(isPinned) FROM blobs WHERE hash = ?")
        return try Bool.fetchOne(statement, arguments: [hash]) ?? true
    }
}
