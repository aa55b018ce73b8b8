internal import GRDB

extension JobStore {
    public enum ShareKind: Sendable {
        case format, variant, host, age
    }

    /// A part of the cache. Files that count in several parts, such as one picture at two hosts, stand in each.
    public struct CacheShare: Hashable, Sendable, Codable {
        public let name: String
        public var files: Int
        public var bytes: Int64
    }

    /// The cache by one property, the largest part first; ages from young to old. Reads the whole index.
    public func cacheShares(by kind: ShareKind) async throws(JobsError) -> [CacheShare] {
        switch kind {
        case .format: try await shares(column: "format")
        case .variant: try await shares(column: "variant")
        case .host: try await shares(of: { URLText.host($0) })
        case .age: try await ages()
        }
    }

    private func shares(column: String) async throws(JobsError) -> [CacheShare] {
        try await read { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT name, count(*) AS files, sum(size) AS bytes FROM
                        (SELECT DISTINCT entries.\(column) AS name, blobs.hash, blobs.size FROM entries
                            JOIN blobs ON blobs.hash = entries.blob AND blobs.dying = 0)
                    GROUP BY name ORDER BY bytes DESC, name LIMIT 1000
                    """
            ).map { CacheShare(name: $0["name"], files: $0["files"], bytes: $0["bytes"]) }
        }
    }

    private func shares(of name: @escaping @Sendable (String) -> String) async throws(JobsError) -> [CacheShare] {
        try await read { db in
            var shares: [String: CacheShare] = [:]
            let rows = try Row.fetchCursor(
                db,
                sql: """
                    SELECT key, size FROM (SELECT DISTINCT entries.key, blobs.hash, blobs.size FROM entries
                        JOIN blobs ON blobs.hash = entries.blob AND blobs.dying = 0)
                    """)
            while let row = try rows.next() {
                let host = name(row["key"])
                var share = shares[host] ?? CacheShare(name: host, files: 0, bytes: 0)
                share.files += 1
                share.bytes += row["size"]
                shares[host] = share
            }
            return shares.values.sorted { ($1.bytes, $0.name) < ($0.bytes, $1.name) }
        }
    }

    private func ages() async throws(JobsError) -> [CacheShare] {
        let reading = reading
        let limits: [(name: String, milliseconds: Int64)] = [
            ("1 hour", 3_600_000), ("1 day", 86_400_000), ("7 days", 604_800_000), ("30 days", 2_592_000_000),
        ]
        return try await read { db in
            let time = try Self.cacheTime(reading, in: db)
            var shares = limits.map { CacheShare(name: $0.name, files: 0, bytes: 0) }
            shares.append(CacheShare(name: "longer", files: 0, bytes: 0))
            let rows = try Row.fetchCursor(db, sql: "SELECT used_at, size FROM blobs WHERE dying = 0")
            while let row = try rows.next() {
                let age: Int64 = time - row["used_at"]
                let index = limits.firstIndex { age <= $0.milliseconds } ?? limits.count
                shares[index].files += 1
                shares[index].bytes += row["size"]
            }
            return shares.filter { $0.files > 0 }
        }
    }
}
