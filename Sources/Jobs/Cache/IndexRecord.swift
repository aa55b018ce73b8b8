internal import Core

/// Writes a group's files into the cache index, in the transaction that ends the group's items.
struct IndexRecord {
    /// By the cache's own clock.
    private let now: SteadyTime
    private let wall: WallTime
    /// Blobs whose files the worker holds; nil if files are not checked.
    let held: HeldBlobs?
    private var keepsLinks: Bool?
    private var hasLostFiles: Bool?
    private var hits = 0
    private var misses = 0
    /// Of the hits and misses, those whose source came from memory, a loader or a file.
    private var origins: [SourceOrigin: Int] = [:]
    private var revalidatedBytes: Int64 = 0
    private var dedupedBytes: Int64 = 0
    /// Files that the index did not have before, with their sizes.
    private(set) var added: [String: Int64] = [:]
    /// New or changed entries, if links are kept.
    private(set) var links: [CacheEntry] = []

    private let statements: RowStatements
    private var db: Connection { statements.db }

    init(now: Moment, held: HeldBlobs?, _ statements: RowStatements) {
        self.statements = statements
        self.now = now.steady
        wall = now.wall
        self.held = held
    }

    /// Whether every file of a result certainly exists: the worker holds it, or the index has its blob and the blob is
    /// not dying. Any other file may be deleted at this moment.
    func hasFiles(of completion: Completion) throws -> Bool {
        guard let held else { return true }
        for rendition in completion.renditions where !held.contains(rendition.blob) {
            let select = try statements("SELECT dying FROM blobs WHERE hash = ?")
            if try select.first(rendition.blob, read: { $0.integer(0) }) != 0 { return false }
        }
        return true
    }

    mutating func add(_ completion: Completion, of item: ClaimedItem) throws {
        for rendition in completion.renditions {
            try add(rendition, isCached: completion.isCached, completion.lifetime)
            let entry = CacheEntry(
                key: item.key, variant: rendition.name, blob: rendition.blob, format: rendition.format)
            try add(entry, isLikelyNew: !completion.isCached)
        }
        try settleLost(completion, of: item.key)
        try CacheIndex.extendPin(of: item.url, to: item.key, now: wall, in: db)
        if completion.origin.stored != nil { origins[completion.origin, default: 0] += 1 }
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

    /// A picture that was stored by hand: it counts neither as a hit nor as a miss.
    mutating func add(_ picture: StoredPicture) throws {
        try add(picture.rendition, isCached: false)
        try add(picture.entry, isLikelyNew: true)
        try settleLost([picture.rendition.name] + (picture.source == nil ? [] : [""]), of: picture.key)
    }

    /// Takes the item's files off the list of lost files.
    private mutating func settleLost(_ completion: Completion, of key: String) throws {
        let names = completion.renditions.map(\.name) + (completion.source.isKept ? [""] : [])
        try settleLost(names, of: key)
    }

    private mutating func settleLost(_ names: [String], of key: String) throws {
        let hasSome = try hasLostFiles ?? LostFiles.exist(in: db)
        hasLostFiles = hasSome
        guard hasSome else { return }
        try LostFiles.markRestored(names, of: key, in: db)
    }

    /// Adds or updates a blob. A dying blob is revived, since it is used again.
    private mutating func add(
        _ rendition: RenditionRecord, isCached: Bool, _ lifetime: FileLifetime? = nil,
    ) throws {
        let isSource = rendition.name == CacheEntry.original
        // A rendition made just now is usually new, and then needs no look-up.
        if !isCached, try insert(rendition, isSource, lifetime?.own) { return }
        let select = try statements(
            "SELECT dying = 0 AND used_at > ? AND is_source >= ?, lifetime FROM blobs WHERE hash = ?")
        let known = try select.first(now - CacheIndex.useResolution, isSource, rendition.blob) {
            (isCurrent: $0.integer(0) != 0, lifetime: $0.number(1) as Int64?)
        }
        guard let known else {
            _ = try insert(rendition, isSource, lifetime?.own)
            return
        }
        if isSource, !isCached { dedupedBytes += rendition.size }
        let isPublished = !isCached || held?.published.contains(rendition.blob) ?? false
        let longest = lifetime.map { $0.longest(with: known.lifetime) } ?? known.lifetime
        if known.isCurrent, !isPublished, longest == known.lifetime { return }
        try db.run(
            """
            UPDATE blobs SET dying = 0, used_at = max(used_at, ?), is_source = max(is_source, ?),
                modified_at = CASE WHEN ? THEN ? ELSE modified_at END, lifetime = ?
            WHERE hash = ?
            """, [now.milliseconds, isSource, isPublished, now.milliseconds, longest, rendition.blob])
    }

    /// - Returns: whether it was missing in the index.
    private mutating func insert(
        _ rendition: RenditionRecord, _ isSource: Bool, _ lifetime: Int64?,
    ) throws -> Bool {
        let insert = try statements(
            """
            INSERT INTO blobs (hash, size, created_at, used_at, modified_at, is_source, lifetime)
                VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (hash) DO NOTHING
            """)
        try insert.run(rendition.blob, rendition.size, now, now, now, isSource, lifetime)
        guard db.changesCount > 0 else { return false }
        added[rendition.blob] = rendition.size
        return true
    }

    /// - Parameter isLikelyNew: whether the index most likely has no entry of this name.
    private mutating func add(_ entry: CacheEntry, isLikelyNew: Bool) throws {
        if isLikelyNew, try insert(entry, orReplace: false) { return try link(entry, replacing: nil) }
        guard try !has(entry) else { return }
        let known = try CacheIndex.entry(key: entry.key, variant: entry.variant, in: db)
        _ = try insert(entry, orReplace: true)
        try link(entry, replacing: known)
    }

    private func has(_ entry: CacheEntry) throws -> Bool {
        let select = try statements(
            "SELECT 1 FROM cache_entries WHERE key = ? AND variant = ? AND blob = ? AND format = ?")
        return try select.first(entry.key, entry.variant, entry.blob, entry.format) { _ in true } ?? false
    }

    /// - Returns: whether a row was written.
    private func insert(_ entry: CacheEntry, orReplace: Bool) throws -> Bool {
        let insert =
            orReplace
            ? try statements("INSERT OR REPLACE INTO cache_entries (key, variant, blob, format) VALUES (?, ?, ?, ?)")
            : try statements("INSERT OR IGNORE INTO cache_entries (key, variant, blob, format) VALUES (?, ?, ?, ?)")
        try insert.run(entry.key, entry.variant, entry.blob, entry.format)
        return db.changesCount > 0
    }

    private mutating func link(_ entry: CacheEntry, replacing known: CacheEntry?) throws {
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
    func addUp() throws {
        guard hits + misses > 0 else { return }
        try db.run(
            """
            UPDATE cache_totals SET hits = hits + ?, misses = misses + ?, revalidated_bytes = revalidated_bytes + ?,
                deduped_bytes = deduped_bytes + ?, from_memory = from_memory + ?, from_loaders = from_loaders + ?,
                from_files = from_files + ? WHERE id = 1
            """,
            [
                hits, misses, revalidatedBytes, dedupedBytes, origins[.memory] ?? 0, origins[.loader] ?? 0,
                origins[.file] ?? 0,
            ])
    }
}
