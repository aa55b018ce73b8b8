internal import GRDB

/// When blobs were last used. Written at most once a minute for each, and together with whatever else is written.
extension JobStore {
    /// How much newer a use has to be to be worth writing down.
    static let useResolution: Int64 = 60_000

    /// What a look at a blob brought: it was used, and perhaps it was read and found whole.
    public struct BlobUse: Sendable {
        public let hash: String
        /// What the file looked like when it was found whole; nil when it was not read.
        public let verified: String?
        /// The cache key it was asked for by.
        public let key: String?

        public init(hash: String, verified: String? = nil, key: String? = nil) {
            self.hash = hash
            self.verified = verified
            self.key = key
        }
    }

    /// Writes down uses that nobody waits for. Where another process holds the write lock, they are forgotten.
    public func noteUses(_ uses: [BlobUse]) async throws(JobsError) {
        guard !uses.isEmpty else { return }
        let reading = reading
        _ = try await writeIfFree { db in
            let time = try Self.cacheTime(reading, in: db)
            for use in uses {
                try db.cachedStatement(
                    sql: """
                        UPDATE blobs SET used_at = max(used_at, ?), verified = ifnull(?, verified)
                        WHERE hash = ? AND dying = 0
                        """
                ).execute(arguments: [time, use.verified, use.hash])
                if let key = use.key { _ = try Self.use(key: key, now: time, in: db) }
            }
        }
    }

    /// When a blob was last used, by this key if one is named, and what its file looked like when it was last read and found whole.
    public func use(
        of hash: String, by key: String? = nil,
    ) async throws(JobsError) -> (usedAt: Int64, verified: String?)? {
        try await read { db in
            try Row.fetchOne(
                db,
                sql: """
                    SELECT min(used_at, ifnull((SELECT used_at FROM sources WHERE key = ?), used_at)) AS used_at, verified
                    FROM blobs WHERE hash = ? AND dying = 0
                    """,
                arguments: [key, hash]
            ).map { (usedAt: $0["used_at"], verified: $0["verified"]) }
        }
    }
}
