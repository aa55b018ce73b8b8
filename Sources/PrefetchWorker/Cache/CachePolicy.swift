internal import Core
public import Jobs

/// How much the cache may hold, for how long, and which files are evicted first. The numbers are SDWebImage's where it has them.
public struct CachePolicy: Sendable {
    /// The files that are evicted first when the cache is too large.
    public enum First: String, Sendable, CaseIterable {
        /// Sources first: they can be fetched again, and variants are served.
        case sources
        case variants
        /// Whatever is oldest.
        case oldest
    }

    /// How long a file stays after its last use, in milliseconds; negative for ever, 0 for not at all.
    public var maxAge: Int64 = 7 * 86_400_000
    public var expiry = CacheEviction.Expiry.used
    /// Bytes of all files with names; nil for no limit.
    public var maxBytes: Int64?
    /// Low-water mark: the part of `maxBytes` to evict down to.
    public var lowWater = 0.5
    public var first = First.sources
    /// Bytes kept free on the cache's disk.
    public var minimumFree: Int64 = 0
    /// How long a file without a row in the index stays, in milliseconds: a worker may be about to write the row.
    public var orphanGrace: Int64 = 600_000

    /// How long damaged bytes stay in quarantine, in milliseconds; negative for ever.
    public var quarantineAge: Int64 = 30 * 86_400_000

    public init() {}
}
