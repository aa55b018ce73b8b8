/// The current file of each URL and variant.
extension CacheIndex {
    /// The entry of a URL, made by any job, if its file is in the index.
    public func entry(ofURL url: String, variant: String) async throws(JobsError) -> CacheEntry? {
        try await gate.read { db in
            for key in try Self.keys(ofURL: url, in: db) {
                guard let entry = try Self.entry(key: key, variant: variant, in: db) else { continue }
                if try db.exists("SELECT 1 FROM blobs WHERE hash = ? AND dying = 0", [entry.blob]) { return entry }
            }
            return nil
        }
    }

    /// A page of all entries, in their order, after the given one.
    public func entries(after last: CacheEntry?, limit: Int) async throws(JobsError) -> [CacheEntry] {
        try await gate.read { db in
            try db.rows(
                "SELECT * FROM cache_entries WHERE (key, variant) > (?, ?) ORDER BY key, variant LIMIT ?",
                [last?.key ?? "", last?.variant ?? "", limit]
            ).map(CacheEntry.init(row:)).filter { $0.isBeyond(last) }
        }
    }

    /// The entries of a blob.
    public func entries(ofBlob hash: String, limit: Int) async throws(JobsError) -> [CacheEntry] {
        try await gate.read { db in try Self.entries(ofBlob: hash, limit: limit, in: db) }
    }

    static func entries(ofBlob hash: String, limit: Int, in db: Connection) throws -> [CacheEntry] {
        return try db.rows("SELECT * FROM cache_entries WHERE blob = ? LIMIT ?", [hash, limit]).map(
            CacheEntry.init(row:))
    }

    static func entry(key: String, variant: String, in db: Connection) throws -> CacheEntry? {
        return try db.row("SELECT * FROM cache_entries WHERE key = ? AND variant = ?", [key, variant]).map(
            CacheEntry.init(row:))
    }

    // MARK: - Links

    static func keepsLinks(in db: Connection) throws -> Bool {
        try CacheProperty.value(Schema.linksProperty, in: db) == "tree"
    }

    /// Whether a tree of links is kept in step with the entries: a property of the database, so that all of its
    /// programs keep it.
    public func keepsLinks() async throws(JobsError) -> Bool {
        try await gate.read { db in try Self.keepsLinks(in: db) }
    }

    public func setKeepsLinks(_ keeps: Bool) async throws(JobsError) {
        try await setProperty(Schema.linksProperty, to: keeps ? "tree" : nil)
        if !keeps { try await setHasMadeLinks(false) }
    }

    private static let madeLinksProperty = "links-made"

    /// Whether the tree of links was made completely; false if a crash interrupted that.
    public func hasMadeLinks() async throws(JobsError) -> Bool {
        try await property(Self.madeLinksProperty) != nil
    }

    public func setHasMadeLinks(_ isMade: Bool) async throws(JobsError) {
        guard try await hasMadeLinks() != isMade else { return }
        try await setProperty(Self.madeLinksProperty, to: isMade ? "1" : nil)
    }

    /// Up to 256 entries, spread evenly over all blobs.
    public func entriesFromAllOver() async throws(JobsError) -> [CacheEntry] {
        try await gate.read { db in
            return try (0..<256).compactMap { number in
                let start = (number < 16 ? "0" : "") + String(number, radix: 16)
                return try db.row("SELECT * FROM cache_entries WHERE blob >= ? ORDER BY blob LIMIT 1", [start]).map(
                    CacheEntry.init(row:))
            }
        }
    }

    /// The blobs to which some links should point now.
    ///
    /// - Parameter links: each is named by a key, a variant and a format; its blob is ignored.
    /// - Returns: a hash for each, in order; nil for a link that should not exist.
    public func blobs(ofLinks links: [CacheEntry]) async throws(JobsError) -> [String?] {
        try await gate.read { db in try Self.blobs(ofLinks: links, in: db) }
    }

    private static func blobs(ofLinks links: [CacheEntry], in db: Connection) throws -> [String?] {
        guard try keepsLinks(in: db) else { return links.map { _ in nil } }
        let select = try RowStatement("SELECT blob, format FROM cache_entries WHERE key = ? AND variant = ?", in: db)
        let found = try select.firstEach(links, { ($0.key, $0.variant) }) { (blob: $0.text(0), format: $0.text(1)) }
        return zip(links, found).map { link, entry in entry?.format == link.format ? entry?.blob : nil }
    }

    private static let linkRoundProperty = "links-settled"

    /// How often links have been struck off the list of removed ones; nil if no links are kept.
    ///
    /// A worker reads it before it makes the links of new entries, and gives it to the transaction that adds them. If
    /// it has changed by then, a program that found the entries missing may have deleted the new links, and the
    /// transaction puts them on the list: they are made again although the worker may be killed.
    public func linkRound() async throws(JobsError) -> Int64? {
        try await gate.read { db in try Self.keepsLinks(in: db) ? Self.linkRound(in: db) : nil }
    }

    static func linkRound(in db: Connection) throws -> Int64 {
        try CacheProperty.value(linkRoundProperty, in: db).flatMap { Int64($0) } ?? 0
    }

    /// The link of a removed entry, as it is on the list of links to delete.
    public struct RemovedLink: Sendable {
        public let link: CacheEntry
        /// Its row: the bytes of its key, variant and format, which may be no text, and the number that each removal has of
        /// its own.
        fileprivate let row: [SQLValue]
    }

    /// Some links of removed entries.
    public func removedLinks(limit: Int) async throws(JobsError) -> [RemovedLink] {
        try await gate.read { db in
            try db.rows(
                """
                SELECT key, variant, '' AS blob, format,
                    CAST(key AS BLOB), CAST(variant AS BLOB), CAST(format AS BLOB), CAST(removal AS INTEGER)
                FROM removed_links LIMIT ?
                """, [limit]
            ).map { RemovedLink(link: CacheEntry(row: $0), row: Array($0.values.suffix(4))) }
        }
    }

    /// Takes links off the list of links to delete, except those whose entries have changed since they were settled.
    ///
    /// - Parameter blobs: for each link, the blob to which it was made to point; nil if it was deleted.
    public func forgetRemovedLinks(
        _ links: [RemovedLink], settledTo blobs: [String?],
    ) async throws(JobsError) {
        var rest = Array(zip(links, blobs))[...]
        while !rest.isEmpty {
            let seen = try await gate.writeSlice(.links) { [rest] db, rows in
                let part = rest.prefix(rows)
                let now = try Self.blobs(ofLinks: part.map(\.0.link), in: db)
                let settled = zip(part, now).filter { $0.0.1 == $0.1 }.map { $0.0.0 }
                // Also finds rows with bytes instead of text, which a user's SQL may have written. If the statement
                // missed them, the caller would settle the same links for ever.
                let delete = try RowStatement(
                    """
                    DELETE FROM removed_links
                        WHERE key IN (CAST(?1 AS TEXT), ?1) AND variant IN (CAST(?2 AS TEXT), ?2)
                            AND format IN (CAST(?3 AS TEXT), ?3) AND CAST(removal AS INTEGER) = ?4
                    """, in: db)
                for link in settled { try delete.run(all: SQLValues(link.row)) }
                try CacheProperty.set(Self.linkRoundProperty, to: "\(Self.linkRound(in: db) &+ 1)", in: db)
                return (part.count, part.count)
            }
            rest = rest.dropFirst(seen)
        }
    }

    /// Puts a link on the list of those to settle, if links are kept: in the transaction that changes its entry.
    static func noteLink(of entry: CacheEntry, in db: Connection) throws {
        try db.run(
            """
            INSERT OR REPLACE INTO removed_links (key, variant, format) SELECT ?, ?, ?
                WHERE EXISTS (SELECT 1 FROM cache_properties WHERE name = ?)
            """, [entry.key, entry.variant, entry.format, Schema.linksProperty])
    }
}

extension CacheEntry {
    /// Whether it comes after another one in the order of pages.
    func isBeyond(_ last: CacheEntry?) -> Bool {
        PageOrder.isBeyond([last?.key ?? "", last?.variant ?? ""], [key, variant])
    }

    init(row: Row) {
        self.init(key: row["key"], variant: row["variant"], blob: row["blob"], format: row["format"])
    }
}

extension CacheIndex {
    /// How many of these blobs the index has.
    public func known(blobs hashes: [String]) async throws(JobsError) -> Int {
        try await gate.read { db in
            return try hashes.reduce(0) { count, hash in
                try db.exists("SELECT 1 FROM blobs WHERE hash = ?", [hash]) ? count + 1 : count
            }
        }
    }
}
