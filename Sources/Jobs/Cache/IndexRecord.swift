internal import Core
internal import GRDB

/// Writes a group's files into the cache index, in the transaction that ends the group's items.
struct IndexRecord {
    /// By the cache's own clock.
    let now: SteadyTime
    /// Blobs whose files the worker holds; nil if files are not checked.
    let held: HeldBlobs?
    private var keepsLinks: Bool?
    private var hasLostFiles: Bool?
    private var hits = 0
    private var misses = 0
    private var revalidatedBytes: Int64 = 0
    private var dedupedBytes: Int64 = 0
    /// Files that the index did not have before, with their sizes.
    private(set) var added: [String: Int64] = [:]
    /// New or changed entries, if links are kept.
    private(set) var links: [CacheEntry] = []

    init(now: SteadyTime, held: HeldBlobs?) {
        self.now = now
        self.held = held
    }

    /// Whether every file of a result certainly exists: a blob that the index has and that is not dying does, and so
    /// does one that the worker holds. Any other file may be deleted at this moment.
    func hasFiles(of completion: Completion, in db: Database) throws -> Bool {
        guard let held else { return true }
        for rendition in completion.renditions where !held.contains(rendition.blob) {
            let select = try RowStatement("SELECT dying FROM blobs WHERE hash = ?", in: db)
            if try select.first(rendition.blob, read: { $0.integer(0) }) != 0 { return false }
        }
        return true
    }

    mutating func add(_ completion: Completion, of item: ClaimedItem, in db: Database) throws {
        for rendition in completion.renditions {
            try add(rendition, of: completion, in: db)
            let entry = CacheEntry(
                key: item.key, variant: rendition.name, blob: rendition.blob, format: rendition.format)
            try add(entry, isLikelyNew: !completion.isCached, in: db)
        }
        try settleLost(completion, of: item, in: db)
        try CacheIndex.extendPin(of: item.url, to: item.key, now: now, in: db)
        if completion.isCached {
            hits += 1
            // Only a revalidation changes the fetch time without transferring bytes.
            if let known = item.source, known.fetchedAt != completion.source.fetchedAt {
                revalidatedBytes += completion.source.size
            }
        } else {
            misses += 1
        }
    }

    /// Takes the item's files off the list of lost files.
    private mutating func settleLost(_ completion: Completion, of item: ClaimedItem, in db: Database) throws {
        let hasSome = try hasLostFiles ?? CacheIndex.hasLostFiles(in: db)
        hasLostFiles = hasSome
        guard hasSome else { return }
        let names = completion.renditions.map(\.name) + (completion.source.isKept ? [""] : [])
        try CacheIndex.found(names, of: item.key, in: db)
    }

    /// Adds or updates a blob. A dying blob is revived, since it is used again.
    private mutating func add(_ rendition: RenditionRecord, of completion: Completion, in db: Database) throws {
        let isSource = rendition.name == "original"
        // A rendition made just now is usually new, and then needs no look-up.
        if !completion.isCached, try insert(rendition, isSource, in: db) { return }
        let select = try RowStatement(
            "SELECT dying = 0 AND used_at > ? AND is_source >= ? FROM blobs WHERE hash = ?", in: db)
        let isCurrent = try select.first(now - CacheIndex.useResolution, isSource, rendition.blob) {
            $0.integer(0) != 0
        }
        guard let isCurrent else {
            _ = try insert(rendition, isSource, in: db)
            return
        }
        if isSource, !completion.isCached { dedupedBytes += rendition.size }
        let isPublished = !completion.isCached || held?.published.contains(rendition.blob) ?? false
        if isCurrent, !isPublished { return }
        try db.run(
            """
            UPDATE blobs SET dying = 0, used_at = max(used_at, ?), is_source = max(is_source, ?),
                modified_at = CASE WHEN ? THEN ? ELSE modified_at END
            WHERE hash = ?
            """, [now.milliseconds, isSource, isPublished, now.milliseconds, rendition.blob])
    }

    /// - Returns: whether it was missing in the index.
    private mutating func insert(_ rendition: RenditionRecord, _ isSource: Bool, in db: Database) throws -> Bool {
        let insert = try RowStatement(
            """
            INSERT INTO blobs (hash, size, created_at, used_at, modified_at, is_source) VALUES (?, ?, ?, ?, ?, ?)
                ON CONFLICT (hash) DO NOTHING
            """, in: db)
        try insert.run(rendition.blob, rendition.size, now, now, now, isSource)
        guard db.changesCount > 0 else { return false }
        added[rendition.blob] = rendition.size
        return true
    }

    /// - Parameter isLikelyNew: whether the index most likely has no entry of this name.
    private mutating func add(_ entry: CacheEntry, isLikelyNew: Bool, in db: Database) throws {
        if isLikelyNew, try insert(entry, orReplace: false, in: db) { return try link(entry, replacing: nil, in: db) }
        guard try !has(entry, in: db) else { return }
        let known = try CacheIndex.entry(key: entry.key, variant: entry.variant, in: db)
        _ = try insert(entry, orReplace: true, in: db)
        try link(entry, replacing: known, in: db)
    }

    private func has(_ entry: CacheEntry, in db: Database) throws -> Bool {
        let select = try RowStatement(
            "SELECT 1 FROM cache_entries WHERE key = ? AND variant = ? AND blob = ? AND format = ?", in: db)
        return try select.first(entry.key, entry.variant, entry.blob, entry.format) { _ in true } ?? false
    }

    /// - Returns: whether a row was written.
    private func insert(_ entry: CacheEntry, orReplace: Bool, in db: Database) throws -> Bool {
        let insert = try RowStatement(
            "INSERT OR \(orReplace ? "REPLACE" : "IGNORE") INTO cache_entries (key, variant, blob, format) VALUES (?, ?, ?, ?)",
            in: db)
        try insert.run(entry.key, entry.variant, entry.blob, entry.format)
        return db.changesCount > 0
    }

    private mutating func link(_ entry: CacheEntry, replacing known: CacheEntry?, in db: Database) throws {
        let keepsLinks = try self.keepsLinks ?? CacheIndex.keepsLinks(in: db)
        self.keepsLinks = keepsLinks
        guard keepsLinks else { return }
        // Another format has another link name.
        if let known, known.format != entry.format {
            try CacheIndex.noteRemovedLink(of: known, in: db)
            links.append(known)
        }
        links.append(entry)
    }

    /// Writes the totals, with one statement for the whole group.
    func addUp(in db: Database) throws {
        guard hits + misses > 0 else { return }
        try db.run(
            """
            UPDATE cache_totals SET hits = hits + ?, misses = misses + ?, revalidated_bytes = revalidated_bytes + ?,
                deduped_bytes = deduped_bytes + ? WHERE id = 1
            """, [hits, misses, revalidatedBytes, dedupedBytes])
    }
}
