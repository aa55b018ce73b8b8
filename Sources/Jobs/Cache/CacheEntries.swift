internal import GRDB

/// Which file stands for a URL and a variant's name now.
extension CacheIndex {
    /// The entry of a URL, made by any job, as long as its file is in the index.
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
            ).map(CacheEntry.init(row:))
        }
    }

    /// The entries that a blob stands for.
    public func entries(ofBlob hash: String, limit: Int) async throws(JobsError) -> [CacheEntry] {
        try await gate.read { db in try Self.entries(ofBlob: hash, limit: limit, in: db) }
    }

    static func entries(ofBlob hash: String, limit: Int, in db: Database) throws -> [CacheEntry] {
        return try db.rows("SELECT * FROM cache_entries WHERE blob = ? LIMIT ?", [hash, limit]).map(
            CacheEntry.init(row:))
    }

    static func entry(key: String, variant: String, in db: Database) throws -> CacheEntry? {
        return try db.row("SELECT * FROM cache_entries WHERE key = ? AND variant = ?", [key, variant]).map(
            CacheEntry.init(row:))
    }

    // MARK: - Links

    static func keepsLinks(in db: Database) throws -> Bool {
        try CacheProperty.value(Schema.linksProperty, in: db) == "tree"
    }

    /// Whether a tree of links is kept in step with the entries: a property of the database, so that all of its
    /// programs do.
    public func keepsLinks() async throws(JobsError) -> Bool {
        try await gate.read { db in try Self.keepsLinks(in: db) }
    }

    public func setKeepsLinks(_ keeps: Bool) async throws(JobsError) {
        try await setProperty(Schema.linksProperty, to: keeps ? "tree" : nil)
        if !keeps { try await setHasMadeLinks(false) }
    }

    private static let madeLinksProperty = "links-made"

    /// Whether every link of the tree was made, and not only the first ones before a crash.
    public func hasMadeLinks() async throws(JobsError) -> Bool {
        try await property(Self.madeLinksProperty) != nil
    }

    public func setHasMadeLinks(_ isMade: Bool) async throws(JobsError) {
        guard try await hasMadeLinks() != isMade else { return }
        try await setProperty(Self.madeLinksProperty, to: isMade ? "1" : nil)
    }

    /// Up to 256 entries from all over the cache, with the same chance for each blob.
    public func entriesFromAllOver() async throws(JobsError) -> [CacheEntry] {
        try await gate.read { db in
            return try (0..<256).compactMap { number in
                let start = (number < 16 ? "0" : "") + String(number, radix: 16)
                return try db.row("SELECT * FROM cache_entries WHERE blob >= ? ORDER BY blob LIMIT 1", [start]).map(
                    CacheEntry.init(row:))
            }
        }
    }

    /// Makes the links of some entries, as they stand at this moment.
    public func link(_ entries: [CacheEntry], in folder: CacheFolder) async throws(JobsError) {
        var rest = entries[...]
        while !rest.isEmpty {
            let seen = try await gate.writeSlice(.links) { [rest] db, rows in
                let count = try DatabaseGate.untilTimeIsUp(rest.prefix(rows)) { entry in
                    let current = try Self.entry(key: entry.key, variant: entry.variant, in: db)
                    if let current { folder.link(current) }
                }
                return (count, count)
            }
            rest = rest.dropFirst(seen)
        }
    }
}

extension CacheEntry {
    init(row: Row) {
        self.init(key: row["key"], variant: row["variant"], blob: row["blob"], format: row["format"])
    }
}

extension CacheIndex {
    /// How many of these blobs the index knows.
    public func known(blobs hashes: [String]) async throws(JobsError) -> Int {
        try await gate.read { db in
            return try hashes.reduce(0) { count, hash in
                try db.exists("SELECT 1 FROM blobs WHERE hash = ?", [hash]) ? count + 1 : count
            }
        }
    }
}
