public import Jobs

/// How much the cache may hold, for how long, and what goes first. The numbers are SDWebImage's where it has them.
public struct CachePolicy: Sendable {
    /// What goes first when the cache is too large.
    public enum First: String, Sendable, CaseIterable {
        /// Variants are what is served; sources can be fetched again.
        case sources
        case variants
        /// Whatever is oldest.
        case oldest
    }

    /// How long a file stays after its last use, in milliseconds; negative for ever, 0 for not at all.
    public var maxAge: Int64 = 7 * 86_400_000
    public var expiry = JobStore.Expiry.used
    /// Bytes of all files with names; nil for no limit.
    public var maxBytes: Int64?
    /// What is left of `maxBytes` when it was exceeded, as a part of it.
    public var lowWater = 0.5
    public var first = First.sources
    /// Bytes kept free on the cache's disk.
    public var minimumFree: Int64 = 0
    /// How long a file without a row in the index stays, in milliseconds: somebody may be about to write the row.
    public var orphanGrace: Int64 = 600_000

    /// How long damaged bytes stay in quarantine, in milliseconds; negative for ever.
    public var quarantineAge: Int64 = 30 * 86_400_000

    public init() {}
}
