internal import ContentCache
internal import Jobs
internal import Logging

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
            // What is no hash has no file.
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
