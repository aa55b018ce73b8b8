internal import Core

extension CacheIndex {
    /// The cache's place when it was last used, as `CachePlaces` stored it.
    public static let placeProperty = "cache-place"

    public func name() async throws(JobsError) -> String? { try await property(CacheProperty.name) }

    /// The cache's name before a copied pair got its own.
    public static let nameBeforeProperty = "cache-name-before"

    /// Sets the new name of a copied pair's cache, and stores the old one.
    public func rename(from old: String, to new: String) async throws(JobsError) {
        try await gate.write { db in
            try CacheProperty.set(Self.nameBeforeProperty, to: old, in: db)
            try CacheProperty.set(CacheProperty.name, to: new, in: db)
        }
    }

    public func setName(_ name: String) async throws(JobsError) {
        try await setProperty(CacheProperty.name, to: name)
    }

    public func totals() async throws(JobsError) -> CacheTotals {
        try await gate.read { [path = gate.path] db in
            guard
                let row = try db.row(
                    """
                    SELECT *, (SELECT \(Schema.sum("bytes")) FROM reservations) AS reserved FROM cache_totals
                    """)
            else { throw JobsError(.corrupt, "The database \(path) has lost the row of cache_totals.") }
            return CacheTotals(
                blobs: row["blobs"], bytes: row.size("bytes"), reservedBytes: row.size("reserved"), hits: row["hits"],
                misses: row["misses"], fromMemory: row["from_memory"], fromLoaders: row["from_loaders"],
                fromFiles: row["from_files"], revalidatedBytes: row["revalidated_bytes"],
                dedupedBytes: row["deduped_bytes"], evictedBlobs: row["evicted_blobs"],
                evictedBytes: row["evicted_bytes"], failedSyncs: row["failed_syncs"],
            )
        }
    }

    /// Records failed syncs, for `doctor` and the metrics.
    public func countFailedSyncs(_ count: Int) async throws(JobsError) {
        try await gate.write { db in
            try db.run("UPDATE cache_totals SET failed_syncs = failed_syncs + ? WHERE id = 1", [count])
        }
    }

    /// A stored fact about the cache.
    public func property(_ name: String) async throws(JobsError) -> String? {
        try await gate.readOne { db in try CacheProperty.value(name, in: db) }
    }

    /// - Parameter value: nil to delete it.
    public func setProperty(_ name: String, to value: String?) async throws(JobsError) {
        try await gate.write { db in try CacheProperty.set(name, to: value, in: db) }
    }

    public enum ShareKind: Sendable {
        case format, variant, host, age
    }

    /// A part of the cache. A file that belongs to several parts, such as one picture from two hosts, counts in each.
    public struct CacheShare: Hashable, Sendable, Codable {
        public let name: String
        public var files: Int
        public var bytes: Int64
    }

    /// The cache grouped by one property, the largest part first; ages from young to old. Reads the whole index.
    public func shares(by kind: ShareKind) async throws(JobsError) -> [CacheShare] {
        switch kind {
        case .format: try await shares(column: "format")
        case .variant: try await shares(column: "variant")
        case .host: try await shares(of: { URLText.host($0) })
        case .age: try await ages()
        }
    }

    private func shares(column: String) async throws(JobsError) -> [CacheShare] {
        try await gate.read { db in
            try db.rows(
                """
                SELECT name, count(*) AS files, sum(size) AS bytes FROM
                    (SELECT DISTINCT cache_entries.\(column) AS name, blobs.hash, blobs.size FROM cache_entries
                        JOIN blobs ON blobs.hash = cache_entries.blob AND blobs.dying = 0)
                GROUP BY name ORDER BY bytes DESC, name LIMIT 1000
                """
            ).map { CacheShare(name: $0["name"], files: $0["files"], bytes: $0["bytes"]) }
        }
    }

    private func shares(of name: @escaping @Sendable (String) -> String) async throws(JobsError) -> [CacheShare] {
        try await gate.read { db in
            var shares: [String: CacheShare] = [:]
            try db.forEachRow(
                """
                SELECT key, size FROM (SELECT DISTINCT cache_entries.key, blobs.hash, blobs.size FROM cache_entries
                    JOIN blobs ON blobs.hash = cache_entries.blob AND blobs.dying = 0)
                """
            ) { row in
                let host = name(row["key"])
                var share = shares[host] ?? CacheShare(name: host, files: 0, bytes: 0)
                share.files += 1
                share.bytes.add(bytes: row["size"])
                shares[host] = share
            }
            return shares.values.sorted { ($1.bytes, $0.name) < ($0.bytes, $1.name) }
        }
    }

    private func ages() async throws(JobsError) -> [CacheShare] {
        let reading = gate.reading
        let limits: [(name: String, milliseconds: Int64)] = [
            ("1 hour", 3_600_000), ("1 day", 86_400_000), ("7 days", 604_800_000), ("30 days", 2_592_000_000),
        ]
        return try await gate.read { db in
            let time = try reading.time(in: db)
            var shares = limits.map { CacheShare(name: $0.name, files: 0, bytes: 0) }
            shares.append(CacheShare(name: "longer", files: 0, bytes: 0))
            try db.forEachRow("SELECT used_at, size FROM blobs WHERE dying = 0") { row in
                let age = time - SteadyTime(milliseconds: row["used_at"])
                let index = limits.firstIndex { age <= $0.milliseconds } ?? limits.count
                shares[index].files += 1
                shares[index].bytes.add(bytes: row["size"])
            }
            return shares.filter { $0.files > 0 }
        }
    }
}
