/// The links of the cache's entries, and the list of those to settle.
public struct LinkList: Sendable {
    let gate: DatabaseGate
    private var index: CacheIndex { CacheIndex(gate: gate) }

    init(gate: DatabaseGate) { self.gate = gate }

    static func areKept(in db: Connection) throws -> Bool {
        try CacheProperty.value(Schema.linksProperty, in: db) == "tree"
    }

    /// Whether a tree of links is kept in step with the entries: a property of the database, so that all of its
    /// programs keep it.
    public func areKept() async throws(JobsError) -> Bool {
        try await gate.readOne { db in try Self.areKept(in: db) }
    }

    public func keep(_ keeps: Bool) async throws(JobsError) {
        try await index.setProperty(Schema.linksProperty, to: keeps ? "tree" : nil)
        if !keeps { try await setComplete(false) }
    }

    private static let completeProperty = "links-made"

    /// Whether the tree of links was made completely; false if a crash interrupted that.
    public func areComplete() async throws(JobsError) -> Bool {
        try await index.property(Self.completeProperty) != nil
    }

    public func setComplete(_ isComplete: Bool) async throws(JobsError) {
        guard try await areComplete() != isComplete else { return }
        try await index.setProperty(Self.completeProperty, to: isComplete ? "1" : nil)
    }

    /// The blobs to which some links should point now.
    ///
    /// - Parameter links: each is named by a key, a variant and a format; its blob is ignored.
    /// - Returns: a hash for each, in order; nil for a link that should not exist.
    public func blobs(of links: [CacheEntry]) async throws(JobsError) -> [String?] {
        try await gate.read { db in try Self.blobs(of: links, in: db) }
    }

    private static func blobs(of links: [CacheEntry], in db: Connection) throws -> [String?] {
        guard try areKept(in: db) else { return links.map { _ in nil } }
        let select = try RowStatement("SELECT blob, format FROM cache_entries WHERE key = ? AND variant = ?", in: db)
        let found = try select.firstEach(links, { ($0.key, $0.variant) }) { (blob: $0.text(0), format: $0.text(1)) }
        return zip(links, found).map { link, entry in entry?.format == link.format ? entry?.blob : nil }
    }

    private static let roundProperty = "links-settled"

    /// How often links have been struck off the list of removed ones; nil if no links are kept.
    ///
    /// A worker reads it before it makes the links of new entries, and gives it to the transaction that adds them. If
    /// it has changed by then, a program that found the entries missing may have deleted the new links, and the
    /// transaction puts them on the list: they are made again although the worker may be killed.
    public func round() async throws(JobsError) -> Int64? {
        try await gate.readOne { db in
            let row = try db.row(
                """
                SELECT (SELECT value FROM cache_properties WHERE name = ?) AS kept,
                    (SELECT value FROM cache_properties WHERE name = ?) AS round
                """, [Schema.linksProperty, Self.roundProperty])
            return row?.text("kept") == "tree" ? row?.text("round").flatMap { Int64($0) } ?? 0 : nil
        }
    }

    static func round(in db: Connection) throws -> Int64 {
        try CacheProperty.value(roundProperty, in: db).flatMap { Int64($0) } ?? 0
    }

    /// The link of a removed entry, as it is on the list of links to delete.
    public struct Removed: Sendable {
        public let link: CacheEntry
        /// Its row: the bytes of its key, variant and format, which may be no text, and the number that each removal has of
        /// its own.
        fileprivate let row: [SQLValue]
    }

    /// Some links of removed entries.
    public func removed(limit: Int) async throws(JobsError) -> [Removed] {
        try await gate.read { db in
            try db.rows(
                """
                SELECT key, variant, '' AS blob, format,
                    CAST(key AS BLOB), CAST(variant AS BLOB), CAST(format AS BLOB), CAST(removal AS INTEGER)
                FROM removed_links LIMIT ?
                """, [limit]
            ).map { Removed(link: CacheEntry(row: $0), row: Array($0.values.suffix(4))) }
        }
    }

    /// Takes links off the list of links to delete, except those whose entries have changed since they were settled.
    ///
    /// - Parameter blobs: for each link, the blob to which it was made to point; nil if it was deleted.
    public func forget(
        _ links: [Removed], settledTo blobs: [String?],
    ) async throws(JobsError) {
        var rest = Array(zip(links, blobs))[...]
        while !rest.isEmpty {
            let seen = try await gate.writeSlice(.links) { [rest] db, rows in
                let part = rest.prefix(rows)
                let now = try Self.blobs(of: part.map(\.0.link), in: db)
                // Also finds rows with bytes instead of text, which a user's SQL may have written. If the statement
                // missed them, the caller would settle the same links for ever.
                let delete = try RowStatement(
                    """
                    DELETE FROM removed_links
                        WHERE key IN (CAST(?1 AS TEXT), ?1) AND variant IN (CAST(?2 AS TEXT), ?2)
                            AND format IN (CAST(?3 AS TEXT), ?3) AND CAST(removal AS INTEGER) = ?4
                    """, in: db)
                let seen = try DatabaseGate.untilTimeIsUp(zip(part, now)) { settled, now in
                    if settled.1 == now { try delete.run(all: SQLValues(settled.0.row)) }
                }
                try CacheProperty.set(Self.roundProperty, to: "\(Self.round(in: db) &+ 1)", in: db)
                return (seen, seen)
            }
            rest = rest.dropFirst(seen)
        }
    }

    /// Puts a link on the list of those to settle, if links are kept: in the transaction that changes its entry.
    static func note(_ entry: CacheEntry, in db: Connection) throws {
        try db.run(
            """
            INSERT OR REPLACE INTO removed_links (key, variant, format) SELECT ?, ?, ?
                WHERE EXISTS (SELECT 1 FROM cache_properties WHERE name = ?)
            """, [entry.key, entry.variant, entry.format, Schema.linksProperty])
    }
}

extension CacheIndex {
    public var links: LinkList { LinkList(gate: gate) }
}
