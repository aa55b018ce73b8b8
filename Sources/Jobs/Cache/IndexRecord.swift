internal import Core

/// Writes a group's files into the cache index, in the transaction that ends the group's items.
struct IndexRecord {
    /// By the cache's own clock.
    private let now: SteadyTime
    private let wall: WallTime
    /// Blobs whose files the worker holds; nil if files are not checked.
    let held: HeldBlobs?
    private var areLinksKept: Bool?
    private var hasNewLinkRound: Bool?
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

    /// The results of which a file may be deleted at this moment: the worker does not hold it, and the index does not
    /// have its blob or is about to delete it; or the worker's announcement is gone. Takes announcements back.
    ///
    /// - Returns: for each result, whether that is so.
    func areDoubtful(_ completions: [Completion]) throws -> [Bool] {
        var isDoubtful = Array(repeating: false, count: completions.count)
        guard let held else { return isDoubtful }
        if let owner = held.owner, db.sqlite == nil {
            let blobs = completions.map { $0.renditions.map(\.blob).filter(held.contains) }
            let announced = try CacheEviction.takeBack(Set(blobs.joined()), of: owner, in: statements)
            for (place, blobs) in blobs.enumerated() where !announced.isSuperset(of: blobs) { isDoubtful[place] = true }
        }
        var others: [(place: Int, blob: String)] = []
        for (place, completion) in completions.enumerated() {
            for rendition in completion.renditions where !held.contains(rendition.blob) {
                others.append((place, rendition.blob))
            }
        }
        guard !others.isEmpty else { return isDoubtful }
        let select = try statements("SELECT dying FROM blobs WHERE hash = ?")
        let dying = try select.firstEach(others, { $0.blob }) { $0.integer(0) }
        for (other, dying) in zip(others, dying) where dying != 0 { isDoubtful[other.place] = true }
        return isDoubtful
    }

    mutating func add(_ done: [(item: ClaimedItem, completion: Completion)]) throws {
        var files: [UsedFile] = []
        for (item, completion) in done {
            for rendition in completion.renditions {
                files.append(
                    UsedFile(
                        key: item.key, record: rendition, isCached: completion.isCached, lifetime: completion.lifetime))
            }
        }
        try addBlobs(files)
        try addEntries(files)
        try settleLost {
            done.flatMap { item, completion in
                (completion.renditions.map(\.name) + (completion.source.isKept ? [""] : [])).map { (item.key, $0) }
            }
        }
        try CacheIndex.extendPins(of: done.map(\.item), now: wall, in: statements)
        for (item, completion) in done { count(completion, of: item) }
    }

    private mutating func count(_ completion: Completion, of item: ClaimedItem) {
        if completion.origin.stored != nil { origins[completion.origin, default: 0] += 1 }
        guard completion.isCached else {
            misses += 1
            return
        }
        hits += 1
        // Only a revalidation changes the fetch time without transferring bytes.
        if let known = item.source, known.fetchedAt != completion.source.fetchedAt {
            revalidatedBytes += completion.source.size
        }
    }

    /// Pictures that were stored by hand: they count neither as hits nor as misses.
    mutating func add(_ pictures: [StoredPicture]) throws {
        let files = pictures.map { UsedFile(key: $0.key, record: $0.rendition, isCached: false, lifetime: nil) }
        try addBlobs(files)
        try addEntries(files)
        try settleLost {
            pictures.flatMap { picture in
                ([picture.rendition.name] + (picture.source == nil ? [] : [""])).map { (picture.key, $0) }
            }
        }
    }

    /// A file of a result.
    private struct UsedFile {
        let key: String
        let record: RenditionRecord
        /// Whether the result came from the cache. Then the index most likely has the file.
        let isCached: Bool
        let lifetime: FileLifetime?

        var isSource: Bool { record.name == CacheEntry.original }
    }

    /// Takes files off the list of lost files.
    private mutating func settleLost(_ files: () -> [(key: String, variant: String)]) throws {
        let hasSome = try hasLostFiles ?? LostFiles.exist(in: db)
        hasLostFiles = hasSome
        if hasSome { try LostFiles.markRestored(files(), in: db) }
    }

    // MARK: - Blobs

    /// Adds or updates blobs. A dying blob is revived, since it is used again.
    private mutating func addBlobs(_ files: [UsedFile]) throws {
        // A rendition made just now is usually new, and then needs no look-up.
        var known = files.filter(\.isCached)
        let made = files.filter { !$0.isCached }
        for (file, isNew) in zip(made, try insert(made)) where !isNew { known.append(file) }
        for round in Self.rounds(of: known) { try use(round) }
    }

    /// Parts in which no blob comes twice: how a blob changes depends on what the file before has made of it.
    private static func rounds(of files: [UsedFile]) -> [[UsedFile]] {
        guard files.count > 1 else { return files.isEmpty ? [] : [files] }
        var met: [String: Int] = [:]
        var rounds: [[UsedFile]] = []
        for file in files {
            let round = met[file.record.blob, default: 0]
            met[file.record.blob] = round + 1
            if round == rounds.count { rounds.append([]) }
            rounds[round].append(file)
        }
        return rounds
    }

    private mutating func use(_ files: [UsedFile]) throws {
        let select = try statements(
            "SELECT dying = 0 AND used_at > ? AND is_source >= ?, lifetime FROM blobs WHERE hash = ?")
        let found = try select.firstEach(
            files, { (now - CacheIndex.useResolution, $0.isSource, $0.record.blob) },
            read: { (isCurrent: $0.integer(0) != 0, lifetime: $0.number(1) as Int64?) })
        var missing: [UsedFile] = []
        var changes: [(file: UsedFile, isPublished: Bool, lifetime: Int64?)] = []
        for (file, found) in zip(files, found) {
            guard let found else {
                missing.append(file)
                continue
            }
            if file.isSource, !file.isCached { dedupedBytes += file.record.size }
            let isPublished = !file.isCached || held?.published.contains(file.record.blob) ?? false
            let longest = file.lifetime.map { $0.longest(with: found.lifetime) } ?? found.lifetime
            if found.isCurrent, !isPublished, longest == found.lifetime { continue }
            changes.append((file, isPublished, longest))
        }
        if !missing.isEmpty { _ = try insert(missing) }
        guard !changes.isEmpty else { return }
        let update = try statements(
            """
            UPDATE blobs SET dying = 0, used_at = max(used_at, ?), is_source = max(is_source, ?),
                modified_at = CASE WHEN ? THEN ? ELSE modified_at END, lifetime = ?
            WHERE hash = ?
            """)
        try update.runEach(changes) { change in
            (now, change.file.isSource, change.isPublished, now, change.lifetime, change.file.record.blob)
        }
    }

    /// - Returns: for each file, whether it was missing in the index.
    private mutating func insert(_ files: [UsedFile]) throws -> [Bool] {
        guard !files.isEmpty else { return [] }
        let insert = try statements(
            """
            INSERT INTO blobs (hash, size, created_at, used_at, modified_at, is_source, lifetime)
                VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (hash) DO NOTHING
            """)
        let isNew = try insert.changeEach(files) { file in
            (file.record.blob, file.record.size, now, now, now, file.isSource, file.lifetime?.own)
        }
        for (file, isNew) in zip(files, isNew) where isNew { added[file.record.blob] = file.record.size }
        return isNew
    }

    // MARK: - Entries

    private mutating func addEntries(_ files: [UsedFile]) throws {
        // The index most likely has no entry of a file that was made just now.
        var known: [CacheEntry] = []
        var made: [CacheEntry] = []
        for file in files {
            let entry = CacheEntry(
                key: file.key, variant: file.record.name, blob: file.record.blob, format: file.record.format)
            if file.isCached { known.append(entry) } else { made.append(entry) }
        }
        for (entry, isNew) in zip(made, try insert(made)) {
            if isNew { try link(entry, replacing: nil) } else { known.append(entry) }
        }
        guard !known.isEmpty else { return }
        let select = try statements(
            "SELECT 1 FROM cache_entries WHERE key = ? AND variant = ? AND blob = ? AND format = ?")
        let isThere = try select.firstEach(
            known, { ($0.key, $0.variant, $0.blob, $0.format) }, read: { _ in true })
        try replace(zip(known, isThere).filter { $1 == nil }.map(\.0))
    }

    /// - Returns: for each entry, whether the index had none of its name.
    private func insert(_ entries: [CacheEntry]) throws -> [Bool] {
        guard !entries.isEmpty else { return [] }
        return try statements("INSERT OR IGNORE INTO cache_entries (key, variant, blob, format) VALUES (?, ?, ?, ?)")
            .changeEach(entries) { ($0.key, $0.variant, $0.blob, $0.format) }
    }

    private mutating func replace(_ entries: [CacheEntry]) throws {
        guard !entries.isEmpty else { return }
        let keepsLinks = try keepsLinks()
        for entry in entries where keepsLinks {
            try link(entry, replacing: try CacheIndex.entry(key: entry.key, variant: entry.variant, in: db))
        }
        try statements("INSERT OR REPLACE INTO cache_entries (key, variant, blob, format) VALUES (?, ?, ?, ?)")
            .runEach(entries) { ($0.key, $0.variant, $0.blob, $0.format) }
    }

    private mutating func keepsLinks() throws -> Bool {
        let keeps = try areLinksKept ?? LinkList.areKept(in: db)
        areLinksKept = keeps
        return keeps
    }

    private mutating func link(_ entry: CacheEntry, replacing known: CacheEntry?) throws {
        guard try keepsLinks() else { return }
        // Another format has another link name.
        if let known, known.format != entry.format {
            try LinkList.note(known, in: db)
            links.append(known)
        }
        links.append(entry)
        // The worker makes the link again after this transaction. If it is killed before that, the list is left.
        if try areLinksDoubtful() { try LinkList.note(entry, in: db) }
    }

    /// Whether another program may have deleted the links that the worker has made for this transaction: it has struck
    /// links off the list of removed ones since.
    private mutating func areLinksDoubtful() throws -> Bool {
        guard let held else { return false }
        let isNew = try hasNewLinkRound ?? (held.linkRound != LinkList.round(in: db))
        hasNewLinkRound = isNew
        return isNew
    }

    /// Writes the totals, with one statement for the whole group.
    func addUp() throws {
        guard hits + misses > 0 || dedupedBytes > 0 else { return }
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
