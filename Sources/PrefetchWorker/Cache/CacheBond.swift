public import ContentCache
internal import Glibc
public import Jobs

/// Sees to it that a database and a cache belong together. Files that an index doesn't know are taken for what a crash has left
/// and go in time, and files that aren't there are forgotten: with another's cache that would be all of them.
public enum CacheBond {
    private static let property = "cache-id"

    /// Binds them to each other where neither is bound yet. Blocks on the disk for a moment.
    ///
    /// - Throws: `cannotCreate` where one of them belongs to another; what goes wrong with either.
    public static func check(_ store: JobStore, _ cache: ContentCache) async throws {
        let expected = try await store.cacheProperty(property)
        let found = try cache.identity()
        switch (found, expected) {
        case (let found?, let expected?):
            guard found == expected else { throw refusal(store, cache) }
        case (nil, let expected?):
            // The cache was emptied by hand, or is of a version before.
            guard try cache.identify(as: expected) == expected else { throw refusal(store, cache) }
        case (let found?, nil):
            guard try await isItsIndex(store, cache) else { throw refusal(store, cache) }
            try await store.setCacheProperty(property, to: found)
        case (nil, nil):
            guard try await isItsIndex(store, cache) else { throw refusal(store, cache) }
            let name = (0..<2).map { _ in String(UInt64.random(in: .max / 16 ... .max), radix: 16) }.joined()
            try await store.setCacheProperty(property, to: try cache.identify(as: name))
        }
    }

    /// Whether an index that has never heard of this cache may be its own: it knows some of its files, or there are none.
    private static func isItsIndex(_ store: JobStore, _ cache: ContentCache) async throws -> Bool {
        var known = ""
        for _ in 0..<10 {
            let page = try await store.blobs(after: known, limit: 100)
            for blob in page where BlobHash(blob.hash).map({ cache.exists($0, size: blob.size) }) ?? false {
                return true
            }
            guard let last = page.last else { break }
            known = last.hash
        }
        return try cache.hasNoBlobs()
    }

    private static func refusal(_ store: JobStore, _ cache: ContentCache) -> WorkerError {
        WorkerError(
            .cannotCreate,
            """
            The cache \(cache.directory) belongs to another database than \(store.path): this one knows nothing of its files. \
            Name the database with --db or another folder with --cache; where the database is lost, make a new index of the \
            files with: worker db rebuild
            """)
    }
}
