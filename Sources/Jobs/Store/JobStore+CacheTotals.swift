internal import GRDB

/// The cache in numbers, all of them counted as things happen.
public struct CacheTotals: Hashable, Sendable, Codable {
    public var blobs: Int64
    public var bytes: Int64
    /// Bytes that workers are about to publish, or had been when they died.
    public var reservedBytes: Int64
    /// Items that ended without the network, and with it.
    public var hits: Int64
    public var misses: Int64
    /// Bytes of sources that an origin confirmed by a 304 instead of sending them.
    public var revalidatedBytes: Int64
    /// Bytes that were there already when they were to be published.
    public var dedupedBytes: Int64
    public var evictedBlobs: Int64
    public var evictedBytes: Int64
    /// Files that were given up because the disk did not confirm them.
    public var failedSyncs: Int64
}

/// The name by which an index and its cache know each other.
enum CacheName {
    static let property = "cache-id"
}

extension JobStore {
    /// Where the cache was when it was last used, as its user has written it down.
    public static let cachePlaceProperty = "cache-place"

    public func cacheName() async throws(JobsError) -> String? { try await cacheProperty(CacheName.property) }

    /// What the cache was called before a copied pair got a name of its own.
    public static let cacheNameBeforeProperty = "cache-name-before"

    /// Gives the cache of a copied pair its new name, and remembers the old one.
    public func renameCache(from old: String, to new: String) async throws(JobsError) {
        try await write { db in
            try Self.setCacheProperty(Self.cacheNameBeforeProperty, to: old, in: db)
            try Self.setCacheProperty(CacheName.property, to: new, in: db)
        }
    }

    public func setCacheName(_ name: String) async throws(JobsError) {
        try await setCacheProperty(CacheName.property, to: name)
    }

    public func cacheTotals() async throws(JobsError) -> CacheTotals {
        try await read { db in
            guard
                let row = try Row.fetchOne(
                    db,
                    sql: """
                        SELECT *, (SELECT ifnull(sum(bytes), 0) FROM reservations) AS reserved FROM cache_totals
                        """)
            else { throw JobsError(.corrupt, "The database \(self.path) has lost the row of cache_totals.") }
            return CacheTotals(
                blobs: row["blobs"], bytes: row["bytes"], reservedBytes: row["reserved"], hits: row["hits"],
                misses: row["misses"], revalidatedBytes: row["revalidated_bytes"],
                dedupedBytes: row["deduped_bytes"], evictedBlobs: row["evicted_blobs"],
                evictedBytes: row["evicted_bytes"], failedSyncs: row["failed_syncs"],
            )
        }
    }

    /// Writes down that files could not be synced, for `doctor` and the metrics.
    public func countFailedSyncs(_ count: Int) async throws(JobsError) {
        try await write { db in
            try db.execute(
                sql: "UPDATE cache_totals SET failed_syncs = failed_syncs + ? WHERE id = 1", arguments: [count])
        }
    }

    /// A small fact about the cache.
    public func cacheProperty(_ name: String) async throws(JobsError) -> String? {
        try await read { db in try Self.cacheProperty(name, in: db) }
    }

    /// - Parameter value: nil forgets it.
    public func setCacheProperty(_ name: String, to value: String?) async throws(JobsError) {
        try await write { db in try Self.setCacheProperty(name, to: value, in: db) }
    }

    static func cacheProperty(_ name: String, in db: Database) throws -> String? {
        let statement = try db.cachedStatement(sql: "SELECT value FROM cache_properties WHERE name = ?")
        return try String.fetchOne(statement, arguments: [name])
    }

    static func setCacheProperty(_ name: String, to value: String?, in db: Database) throws {
        guard let value else {
            return try db.execute(sql: "DELETE FROM cache_properties WHERE name = ?", arguments: [name])
        }
        try db.execute(sql: "INSERT OR REPLACE INTO cache_properties VALUES (?, ?)", arguments: [name, value])
    }
}
