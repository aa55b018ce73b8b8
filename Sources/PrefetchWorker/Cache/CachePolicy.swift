internal import ContentCache
internal import Core
public import Jobs
internal import Logging

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

extension CacheFolder {
    /// The files of a cache, as the index sees them.
    init(_ cache: ContentCache, logger: Logger) {
        @Sendable func report(_ body: () throws(CacheError) -> Void) -> String? {
            do throws(CacheError) {
                try body()
                return nil
            } catch {
                return error.message
            }
        }
        self.init(
            exists: { hash, size in BlobHash(hash).map { cache.exists($0, size: size) } ?? false },
            // A text that is no hash has no file.
            remove: { hash in
                BlobHash(hash).flatMap { hash in report { () throws(CacheError) in try cache.remove(hash) } }
            },
            isInUse: { hash in BlobHash(hash).map { cache.isInUse($0) } ?? false },
            link: { entry in
                guard let hash = BlobHash(entry.blob) else { return }
                let trouble = report { () throws(CacheError) in
                    try cache.link(hash, key: entry.key, variant: entry.variant, format: entry.format)
                }
                // A link that is missing costs a web server a miss; `worker cache verify` makes it.
                if let trouble { logger.warning("A link is missing.", metadata: ["error": "\(trouble)"]) }
            },
            unlink: { entry in
                let trouble = report { () throws(CacheError) in
                    try cache.unlink(key: entry.key, variant: entry.variant, format: entry.format)
                }
                if let trouble { logger.warning("A link is left over.", metadata: ["error": "\(trouble)"]) }
            },
        )
    }
}
