internal import Core

/// The cache's index: sources, variants, entries, keys and pins.
public struct CacheIndex: Sendable {
    let gate: DatabaseGate
    private let sourcesOfBytes: GroupedReads<String, SourceRecord?>

    init(gate: DatabaseGate) {
        self.gate = gate
        sourcesOfBytes = GroupedReads { hashes throws(JobsError) in
            try await gate.readOne { db in try Self.sources(ofBytes: hashes, in: db) }
        }
    }

    /// The source of a cache key. Callers read it again after the claim, because it may have changed.
    public func source(key: String) async throws(JobsError) -> SourceRecord? {
        try await gate.readOne { db in try Self.source(key: key, in: RowStatements(db)) }
    }

    /// The existing renditions, by identity.
    public func variants(identities: [String]) async throws(JobsError) -> [String: VariantRecord] {
        guard !identities.isEmpty else { return [:] }
        return try await gate.readOne { db in
            let places = Array(repeating: "?", count: identities.count).joined(separator: ", ")
            let rows = try db.rows(
                "SELECT * FROM variants WHERE identity IN (\(places))", SQLValues(identities.map(SQLValue.text)))
            return Dictionary(rows.map { ($0["identity"], VariantRecord(row: $0)) }) { first, _ in first }
        }
    }

    /// Every rendition of a source.
    public func variants(ofSource hash: String) async throws(JobsError) -> [VariantRecord] {
        try await gate.read { db in
            try db.rows("SELECT * FROM variants WHERE source = ? ORDER BY spec", [hash])
                .map(VariantRecord.init(row:))
        }
    }

    /// The renditions of a URL's latest finished item whose files are in the index.
    public func renditions(ofURL url: String, named name: String?) async throws(JobsError) -> [RenditionRecord] {
        try await gate.read { db in
            try db.rows(
                """
                SELECT renditions.* FROM items JOIN renditions ON renditions.item = items.id
                JOIN blobs ON blobs.hash = renditions.blob AND blobs.dying = 0
                WHERE items.url = ?1 AND items.state = 'done' AND (?2 IS NULL OR renditions.name = ?2)
                ORDER BY items.finished_at DESC, items.id DESC LIMIT 64
                """, [url, name]
            ).map(rendition)
        }
    }

    /// All blobs in the index except dying ones, in the order of their hashes, `after` the given one.
    public func blobs(after hash: String, limit: Int) async throws(JobsError) -> [IndexedBlob] {
        try await gate.read { db in
            try db.rows(
                "SELECT hash, size, modified_at FROM blobs WHERE hash > ? AND dying = 0 ORDER BY hash LIMIT ?",
                [hash, limit]
            ).map {
                IndexedBlob(
                    hash: $0["hash"], size: $0["size"], modifiedAt: SteadyTime(milliseconds: $0["modified_at"]))
            }.filter { PageOrder.isBeyond([hash], [$0.hash]) }
        }
    }

    /// Forgets missing or damaged blobs, so that the next job that needs them makes them again; until then they are
    /// listed as lost. The results of jobs stay, without their paths.
    public func forget(blobs hashes: [String]) async throws(JobsError) {
        let reading = gate.reading
        for hash in hashes {
            while try await gate.write({ db in
                try !CacheEviction.forget(blob: hash, lostAt: try reading.time(in: db), in: db)
            }) {}
        }
    }

    /// Forgets blobs that a verification found missing or damaged, unless they are dying or were published again
    /// since they were read from the index.
    ///
    /// - Returns: the hashes of the forgotten blobs.
    public func forget(lost blobs: [IndexedBlob]) async throws(JobsError) -> [String] {
        var forgotten: [String] = []
        let reading = gate.reading
        for blob in blobs {
            var isLeft = true
            while isLeft {
                let (isSame, isDone) = try await gate.write { db in
                    let isSame = try db.exists(
                        "SELECT 1 FROM blobs WHERE hash = ? AND dying = 0 AND modified_at = ?",
                        [blob.hash, blob.modifiedAt.milliseconds])
                    guard isSame else { return (false, true) }
                    return (true, try CacheEviction.forget(blob: blob.hash, lostAt: try reading.time(in: db), in: db))
                }
                if isSame, isDone { forgotten.append(blob.hash) }
                isLeft = !isDone
            }
        }
        return forgotten
    }

    /// The item, looked up by a cache key that differs from its URL.
    public func look(up item: ClaimedItem, by key: String) async throws(JobsError) -> ClaimedItem {
        let reading = gate.reading
        return try await gate.read { db in
            let now = try reading.moment(in: db)
            let statements = RowStatements(db)
            return item.looked(
                upBy: key, try Self.source(key: key, in: statements),
                try Blacklist.entries(keys: [key], now: now, in: statements)[0])
        }
    }

    /// A decoded source with these bytes, from any URL.
    public func source(ofBytes hash: String) async throws(JobsError) -> SourceRecord? {
        guard gate.sqlite != nil else { return try await sourcesOfBytes.value(of: hash) }
        return try await gate.readOne { db in try Self.sources(ofBytes: [hash], in: db)[0] }
    }

    private static func sources(ofBytes hashes: [String], in db: Connection) throws -> [SourceRecord?] {
        try sources(
            "the source of bytes", "(SELECT key FROM sources WHERE hash = ? AND frames IS NOT NULL LIMIT 1)", hashes,
            in: RowStatements(db))
    }

    static func source(key: String, in statements: RowStatements) throws -> SourceRecord? {
        try sources(keys: [key], in: statements)[0]
    }

    static func sources(keys: [String], in statements: RowStatements) throws -> [SourceRecord?] {
        try sources("the source of a key", "?", keys, in: statements)
    }

    /// - Parameters:
    ///   - name: of the statement.
    ///   - key: an expression with a parameter.
    ///   - values: for the parameter.
    private static func sources(
        _ name: StaticString, _ key: @autoclosure () -> String, _ values: [String], in statements: RowStatements,
    ) throws -> [SourceRecord?] {
        guard !values.isEmpty else { return [] }
        let statement = try statements(
            name,
            """
            SELECT key, hash, size, kept, final_url, format, width, height, frames, has_alpha, etag, last_modified, http,
                fetched_at, recheck_after, \(placeholderColumns)
            FROM sources LEFT JOIN source_facts USING (hash) WHERE key = \(key())
            """)
        return try statement.firstEach(values, { value in value }) { (row: RowColumns) -> SourceRecord in
            var source = SourceRecord(
                key: row.text(0) ?? "", hash: row.text(1) ?? "", size: row.size(2), isKept: row.integer(3) != 0,
                finalURL: row.text(4), format: row.text(5), width: row.number(6), height: row.number(7),
                frames: row.number(8), hasAlpha: row.flag(9),
                looks: ImagePlaceholders(text: { row.text($0 + 15) }, number: { row.number($0 + 15) }),
                etag: row.text(10),
                lastModified: row.text(11), http: row.text(12).flatMap(HTTPFacts.init(text:)),
                fetchedAt: WallTime(milliseconds: row.integer(13)),
            )
            source.recheckAfter = row.number(14)
            return source
        }
    }

    /// Saves the changes of sources that items used.
    ///
    /// - Parameter sources: with what was known of each when its item was claimed.
    static func save(
        _ sources: [(source: SourceRecord, old: SourceRecord?)], now: SteadyTime, in statements: RowStatements,
    ) throws {
        guard !sources.isEmpty else { return }
        var changed: [(source: SourceRecord, old: SourceRecord?)] = []
        var used: [SourceRecord] = []
        for (source, old) in sources {
            if source == old { used.append(source) } else { changed.append((source, old)) }
        }
        if !used.isEmpty {
            let isKnown = try noteUse(ofKeys: used.map(\.key), now: now, in: statements)
            for (source, isKnown) in zip(used, isKnown) where !isKnown { changed.append((source, nil)) }
        }
        try save(try unconfirmed(changed, now: now, in: statements), now: now, in: statements)
    }

    /// Writes only the columns that a 304 changes, none of which is indexed, for the sources in which nothing else has
    /// changed.
    ///
    /// - Returns: the other sources, and those without a row.
    private static func unconfirmed(
        _ sources: [(source: SourceRecord, old: SourceRecord?)], now: SteadyTime, in statements: RowStatements,
    ) throws -> [SourceRecord] {
        let confirmed = sources.filter { source, old in old.map { source.confirms($0) } ?? false }.map(\.source)
        guard !confirmed.isEmpty else { return sources.map(\.source) }
        let update = try statements(
            """
            UPDATE sources SET etag = ?, last_modified = ?, http = ?, fetched_at = ?, recheck_after = ?,
                used_at = CASE WHEN used_at < ? THEN ? ELSE used_at END WHERE key = ? AND hash = ?
            """)
        let isThere = try update.changeEach(confirmed) { source in
            (
                source.etag, source.lastModified, source.http?.text, source.fetchedAt, source.recheckAfter,
                now - useResolution, now, source.key, source.hash
            )
        }
        return sources.filter { source, old in !(old.map { source.confirms($0) } ?? false) }.map(\.source)
            + zip(confirmed, isThere).filter { !$1 }.map(\.0)
    }

    private static let placeholderColumns = ImagePlaceholders.columns.map(\.name).joined(separator: ", ")

    private static func save(looks: [(hash: String, looks: ImagePlaceholders)], in db: Connection) throws {
        guard !looks.isEmpty else { return }
        let marks = ImagePlaceholders.columns.map { _ in ", ?" }.joined()
        let updates = ImagePlaceholders.columns.map { "\($0.name) = excluded.\($0.name)" }.joined(separator: ", ")
        let insert = try RowStatement(
            """
            INSERT INTO source_facts (hash, \(placeholderColumns)) VALUES (?\(marks))
            ON CONFLICT (hash) DO UPDATE SET \(updates)
            """, in: db)
        try insert.runEach(all: looks.map { [$0.hash] + $0.looks.values })
    }

    static func save(_ sources: [SourceRecord], now: SteadyTime, in statements: RowStatements) throws {
        guard !sources.isEmpty else { return }
        let insert = try statements(
            """
            INSERT OR REPLACE INTO sources (key, hash, size, kept, final_url, format, width, height, frames,
                has_alpha, etag, last_modified, http, fetched_at, used_at, recheck_after)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """)
        try insert.runEach(sources) { source in
            (
                source.key, source.hash, source.size, source.isKept, source.finalURL, source.format, source.width,
                source.height, source.frames, source.hasAlpha, source.etag, source.lastModified, source.http?.text,
                source.fetchedAt, now, source.recheckAfter
            )
        }
        try save(looks: sources.compactMap { source in source.looks.map { (source.hash, $0) } }, in: statements.db)
    }

    static func save(_ variants: [VariantRecord], now: WallTime, in statements: RowStatements) throws {
        guard !variants.isEmpty else { return }
        let insert = try statements(
            """
            INSERT OR REPLACE INTO variants (identity, source, spec, coder, blob, size, format, width, height, created_at)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """)
        try insert.runEach(variants) { variant in
            (
                variant.identity, variant.source, variant.spec, variant.coder, variant.blob, variant.size,
                variant.format, variant.width, variant.height, now
            )
        }
    }

    static func save(_ renditions: [(item: Int64, record: RenditionRecord)], in statements: RowStatements) throws {
        guard !renditions.isEmpty else { return }
        let insert = try statements(
            """
            INSERT OR REPLACE INTO renditions (item, name, blob, size, format, width, height)
            VALUES (?, ?, ?, ?, ?, ?, ?)
            """)
        try insert.runEach(renditions) { item, one in
            (item, one.name, one.blob, one.size, one.format, one.width, one.height)
        }
    }
}

extension SourceRecord {
    /// Whether it differs from the old record only in what a 304 changes.
    fileprivate func confirms(_ old: SourceRecord) -> Bool {
        var confirmed = old
        (confirmed.etag, confirmed.lastModified, confirmed.http) = (etag, lastModified, http)
        (confirmed.fetchedAt, confirmed.recheckAfter) = (fetchedAt, recheckAfter)
        return confirmed == self
    }
}

extension VariantRecord {
    init(row: Row) {
        self.init(
            identity: row["identity"], source: row["source"], spec: row["spec"], coder: row["coder"], blob: row["blob"],
            size: row.size("size"), format: row["format"], width: row["width"], height: row["height"],
        )
    }
}

private func rendition(_ row: Row) -> RenditionRecord {
    RenditionRecord(
        name: row["name"], blob: row["blob"], size: row.size("size"), format: row["format"], width: row["width"],
        height: row["height"],
    )
}
