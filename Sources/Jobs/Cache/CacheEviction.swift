public import Core

/// Blobs are evicted in steps: one transaction marks them as dying; a later one deletes the index rows that refer to
/// them; then their files are deleted, outside any transaction, and last their own rows. After a crash in between, a
/// dying row explains a missing file. A worker that needs a dying blob holds its file and then revives it.
public struct CacheEviction: Sendable {
    let gate: DatabaseGate

    /// The time from which a blob's age is counted.
    public enum Expiry: String, Sendable, CaseIterable {
        case used, modified, created

        fileprivate var column: String { rawValue + "_at" }
    }

    /// The kinds of blobs that may be evicted first.
    public enum Kind: Sendable, CaseIterable {
        case sources, variants

        fileprivate var condition: String { self == .sources ? " AND is_source <> 0" : " AND is_source = 0" }
    }

    public struct Candidate: Hashable, Sendable {
        public let hash: String
        public let size: Int64
        /// In the requested column, by the cache's clock.
        public let time: Int64
        let usedAt: Int64
    }

    /// The oldest blobs that are not held: not pinned, and not a source, or a variant of a source, of an active item.
    ///
    /// - Parameters:
    ///   - notAfter: leaves out blobs with a later time, by the cache's clock, and those with a lifetime of their own;
    ///     nil for all.
    ///   - last: continues after this one. Held blobs are skipped, so a page may be empty without being the last.
    /// - Returns: the page, and where to continue; nil at the end.
    public func candidates(
        _ kind: Kind?, by expiry: Expiry, notAfter: SteadyTime? = nil, after last: Candidate? = nil,
        limit: Int = 256,
    ) async throws(JobsError) -> (page: [Candidate], next: Candidate?) {
        let column = expiry.column
        let common = notAfter == nil ? "" : " AND lifetime IS NULL"
        return try await page(
            """
            SELECT hash, size, \(column) AS time, used_at FROM blobs
            WHERE (\(column), hash) > (?, ?) AND \(column) <= ? AND dying = 0\(common)\(kind?.condition ?? "")
            ORDER BY \(column), hash LIMIT ?
            """,
            [last?.time ?? .min, last?.hash ?? "", (notAfter ?? .max).milliseconds, limit], limit: limit
        ) { end in
            last.map {
                PageOrder.isBeyond(
                    [.integer($0.time), .text($0.hash)], [.integer(end.time), .text(end.hash)])
            } ?? true
        }
    }

    /// The blobs whose own lifetime is over, and which are not held.
    ///
    /// - Parameter last: continues after this one, as in ``candidates(_:by:notAfter:after:limit:)``.
    public func expired(
        by expiry: Expiry, after last: Candidate? = nil, limit: Int = 256,
    ) async throws(JobsError) -> (page: [Candidate], next: Candidate?) {
        let column = expiry.column
        let now = try await gate.cacheTime()
        return try await page(
            """
            SELECT hash, size, \(column) AS time, used_at FROM blobs
            WHERE lifetime IS NOT NULL AND hash > ? AND lifetime >= 0 AND \(column) + lifetime <= ? AND dying = 0
            ORDER BY hash LIMIT ?
            """, [last?.hash ?? "", now.milliseconds, limit], limit: limit
        ) { end in PageOrder.isBeyond([last?.hash ?? ""], [end.hash]) }
    }

    /// - Parameter isBeyond: whether a candidate comes after the one that the page continues after.
    private func page(
        _ sql: String, _ values: SQLValues, limit: Int, _ isBeyond: @escaping @Sendable (Candidate) -> Bool,
    ) async throws(JobsError) -> (page: [Candidate], next: Candidate?) {
        try await gate.read { db in
            let all = try db.rows(sql, values).map {
                Candidate(hash: $0["hash"], size: $0.size("size"), time: $0["time"], usedAt: $0["used_at"])
            }
            let leased = try LeasedSources(in: db)
            let free = try all.filter { try !leased.hold($0.hash, in: db) }
            return (free, all.count < limit ? nil : all.last.flatMap { isBeyond($0) ? $0 : nil })
        }
    }

    /// Marks blobs as dying, unless they were used or pinned since they were chosen.
    ///
    /// - Returns: the number of marked blobs.
    public func markDying(_ candidates: [Candidate]) async throws(JobsError) -> Int {
        let now = max(1, gate.now().milliseconds)
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
        _ candidates: ArraySlice<Candidate>, at now: Int64,
    ) async throws(JobsError) -> (marked: Int, seen: Int) {
        try await gate.writeSlice(.marking) { db, rows in
            var count = 0
            let seen = try DatabaseGate.untilTimeIsUp(candidates.prefix(rows)) { candidate in
                try db.run(
                    """
                    UPDATE blobs SET dying = ? WHERE hash = ? AND used_at = ? AND dying = 0 AND NOT \(CacheIndex.isPinned)
                    """, [now, candidate.hash, candidate.usedAt])
                count += try db.changesCount()
            }
            return ((count, seen), seen)
        }
    }

    /// The result of one slice of removals.
    public struct Removal: Sendable {
        /// Files that were deleted or did not exist.
        public var gone: [String] = []
        public var bytes: Int64 = 0
        /// Whether dying blobs are left.
        public var isUnfinished = false
        /// Blobs that stay, since a worker or a helper has them open.
        public var inUse: [String] = []
        /// Blobs whose files could not be deleted, and the error of the last one.
        public var stuck: [String] = []
        public var trouble: String?

        public init() {}
    }

    /// The mark of a blob whose file could not be deleted: `dying` skips it, so that it does not block the others.
    private static let stuck = Int64.max

    /// Makes the next collection try again to delete files that could not be deleted.
    public func releaseStuck() async throws(JobsError) {
        guard try await gate.exists("SELECT 1 FROM blobs WHERE dying = ?", [Self.stuck]) else { return }
        try await gate.write { db in
            try db.run("UPDATE blobs SET dying = 1 WHERE dying = ?", [Self.stuck])
        }
    }

    /// Whether there are dying blobs, or links of removed entries.
    public func hasMarked() async throws(JobsError) -> Bool {
        try await gate.read { db in
            try db.exists(
                """
                SELECT 1 WHERE EXISTS (SELECT 1 FROM blobs WHERE dying <> 0 AND dying < ?)
                    OR EXISTS (SELECT 1 FROM removed_links)
                """, [Self.stuck])
        }
    }

    /// Some dying blobs, as many as one slice takes.
    ///
    /// - Returns: their hashes, and whether there are more.
    public func dying() async throws(JobsError) -> (hashes: [String], isUnfinished: Bool) {
        let limit = gate.slices.rows(.eviction)
        return try await gate.read { db in
            let hashes = try db.texts(
                "SELECT hash FROM blobs WHERE dying <> 0 AND dying < ? LIMIT ?", [Self.stuck, limit])
            return (hashes, hashes.count == limit)
        }
    }

    /// Deletes the index rows that refer to dying blobs, for one slice; the blobs' own rows stay until their files are
    /// deleted. A blob that was pinned since is revived.
    ///
    /// - Returns: the blobs without references, those that a worker of another machine is about to store, and whether
    ///   dying blobs are left.
    public func forgetDying(
        _ hashes: [String],
    ) async throws(JobsError) -> (forgotten: [String], announced: Set<String>, isUnfinished: Bool) {
        guard !hashes.isEmpty else { return ([], [], false) }
        let now = gate.now()
        return try await gate.writeSlice(.eviction) { db, _ in
            var forgotten: [String] = []
            var isUnfinished = false
            let announced = try Self.announced(hashes, now: now, in: db)
            let seen = try DatabaseGate.untilTimeIsUp(hashes) { hash in
                guard !announced.contains(hash) else { return }
                guard try db.integer("SELECT dying FROM blobs WHERE hash = ?", [hash]) ?? 0 != 0 else { return }
                if try Self.revivePinned(hash, in: db) { return }
                // A blob with thousands of entries takes more than one slice.
                if try Self.forget(blob: hash, keepingRow: true, in: db) {
                    forgotten.append(hash)
                } else {
                    isUnfinished = true
                }
            }
            try Self.announceRemoval(of: forgotten, now: now, in: db)
            return ((forgotten, announced, isUnfinished || seen < hashes.count), seen)
        }
    }

    /// Deletes the rows of deleted files, unless the files were published again since. Blobs in use are revived, and
    /// stuck ones wait for ``releaseStuck()``.
    ///
    /// - Returns: the same removal, with its bytes.
    public func settle(_ removal: Removal) async throws(JobsError) -> Removal {
        let count = removal.gone.count + removal.inUse.count + removal.stuck.count
        guard count > 0 else { return removal }
        let now = gate.now()
        let reading = gate.reading
        return try await gate.writeSlice(.eviction) { db, _ in
            var settled = removal
            settled.gone = []
            let late = try Self.endRemoval(of: removal.gone + removal.stuck, now: now, in: db)
            try Self.forgetLate(late.filter(removal.gone.contains), at: try reading.time(in: db), in: db)
            for hash in removal.gone {
                let size = try db.integer("SELECT size FROM blobs WHERE hash = ? AND dying <> 0", [hash])
                guard let size, try db.change("DELETE FROM blobs WHERE hash = ?", [hash]) > 0 else { continue }
                settled.gone.append(hash)
                settled.bytes.add(bytes: size)
            }
            for hash in removal.inUse { try db.run("UPDATE blobs SET dying = 0 WHERE hash = ?", [hash]) }
            for hash in removal.stuck {
                try db.run("UPDATE blobs SET dying = ? WHERE hash = ? AND dying <> 0", [Self.stuck, hash])
            }
            try db.run(
                """
                UPDATE cache_totals SET evicted_blobs = evicted_blobs + ?, evicted_bytes = evicted_bytes + ?
                WHERE id = 1
                """, [settled.gone.count, settled.bytes])
            return (settled, count)
        }
    }

    /// The blobs among these that the index does not have.
    public func unknown(blobs hashes: [String]) async throws(JobsError) -> [String] {
        guard !hashes.isEmpty else { return [] }
        return try await gate.readOne { db in
            let isKnown = try CacheIndex.areKnown(blobs: hashes, in: db)
            return zip(hashes, isKnown).filter { !$1 }.map(\.0)
        }
    }

    // MARK: - Steps

    private static let entriesPerSlice = 100

    /// Deletes the index rows of a blob, a bounded number at a time.
    ///
    /// - Parameter lostAt: when it was found missing or damaged, by the cache's clock; nil if it is evicted.
    /// - Returns: whether no row refers to it any more.
    static func forget(
        blob hash: String, keepingRow: Bool = false, lostAt: SteadyTime? = nil, in db: Connection,
    ) throws -> Bool {
        let entries = try CacheIndex.entries(ofBlob: hash, limit: entriesPerSlice, in: db)
        let sources = try db.texts(
            "SELECT key FROM sources WHERE hash = ? AND kept <> 0 LIMIT \(entriesPerSlice)", [hash])
        var changes = 0
        if let lostAt {
            let lost =
                entries.map { LostFile(key: $0.key, variant: $0.variant, blob: hash) }
                + sources.map { LostFile(key: $0, variant: "", blob: hash) }
            try LostFiles.note(lost, now: lostAt, in: db)
        }
        for entry in entries {
            try LinkList.note(entry, in: db)
            changes += try db.change(
                "DELETE FROM cache_entries WHERE key = ? AND variant = ?", [entry.key, entry.variant])
        }
        for key in sources {
            changes += try db.change("UPDATE sources SET kept = 0 WHERE key = ?", [key])
        }
        // Rows whose keys are no text stay.
        guard (entries.count < entriesPerSlice && sources.count < entriesPerSlice) || changes == 0 else { return false }
        try db.run("DELETE FROM variants WHERE blob = ?", [hash])
        if !keepingRow { try db.run("DELETE FROM blobs WHERE hash = ?", [hash]) }
        return true
    }

    /// Revives a dying blob of a pinned URL, but only while the index refers to the blob: entries that a user removes
    /// are removed although their URL is pinned.
    private static func revivePinned(_ hash: String, in db: Connection) throws -> Bool {
        try db.change(
            """
            UPDATE blobs SET dying = 0 WHERE hash = ? AND \(CacheIndex.isPinned)
                AND (EXISTS (SELECT 1 FROM cache_entries WHERE blob = blobs.hash)
                OR EXISTS (SELECT 1 FROM sources WHERE hash = blobs.hash AND kept <> 0))
            """, [hash]) > 0
    }
}
