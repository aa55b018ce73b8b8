internal import Core
public import Jobs

/// The cache's size limit, expiry and eviction order. The numbers are SDWebImage's if it has them.
public struct CachePolicy: Sendable {
    /// The files that are evicted first when the cache is too large.
    public enum First: String, Sendable, CaseIterable {
        /// Sources first: they can be fetched again, while variants are served.
        case sources
        case variants
        /// The oldest files of either kind.
        case oldest
    }

    /// How long a file stays after its last use, in milliseconds; negative for no expiry, 0 to expire at once.
    public var maxAge: Int64 = 7 * 86_400_000
    public var expiry = CacheEviction.Expiry.used
    /// Maximum bytes of all published files; nil for no limit.
    public var maxBytes: Int64?
    /// Low-water mark: the part of `maxBytes` to evict down to.
    public var lowWater = 0.5
    public var first = First.sources
    /// Bytes kept free on the cache's disk.
    public var minimumFree: Int64 = 0
    /// How long an orphan stays, in milliseconds: a worker may be about to write its row.
    public var orphanGrace: Int64 = 600_000

    /// How long damaged bytes stay in quarantine, in milliseconds; negative for no expiry.
    public var quarantineAge: Int64 = 30 * 86_400_000

    /// Bytes that the folder in front of a bucket keeps, approximately.
    public var folderBytes: Int64 = 10 << 30

    public init() {}
}
