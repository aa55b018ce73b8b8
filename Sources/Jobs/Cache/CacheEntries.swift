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

    /// Up to 256 entries, spread evenly over all blobs.
    public func sampledEntries() async throws(JobsError) -> [CacheEntry] {
        try await gate.read { db in
            return try (0..<256).compactMap { number in
                let start = (number < 16 ? "0" : "") + String(number, radix: 16)
                return try db.row("SELECT * FROM cache_entries WHERE blob >= ? ORDER BY blob LIMIT 1", [start]).map(
                    CacheEntry.init(row:))
            }
        }
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
        guard !hashes.isEmpty else { return 0 }
        return try await gate.readOne { db in try Self.areKnown(blobs: hashes, in: db).count { $0 } }
    }

    static func areKnown(blobs hashes: [String], in db: Connection) throws -> [Bool] {
        try RowStatement("SELECT 1 FROM blobs WHERE hash = ?", in: db)
            .firstEach(hashes, { $0 }, read: { _ in true }).map { $0 != nil }
    }
}
