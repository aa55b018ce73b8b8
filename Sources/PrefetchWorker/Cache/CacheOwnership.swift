public import ContentCache
internal import Core
public import Jobs

/// Checks that a database and a cache belong together. The worker deletes files that its index does not know, as
/// orphans, and forgets files that are missing: with another database's cache these would be all files.
public enum CacheOwnership {
    /// Binds the two to each other if neither is bound yet. Blocks on the disk for a moment.
    ///
    /// - Throws: `cannotCreate` if one of the two belongs to another partner; errors of either.
    public static func check(_ store: JobStore, _ cache: ContentCache) async throws {
        let expected = try await store.cache.name()
        let found = try cache.identity.name()
        switch (found, expected) {
        case (let found?, let expected?):
            if found != expected {
                // In a copied pair, the cache already has its new name and the database does not know it yet.
                guard found == CachePlaces(store, cache).name(ofCopy: expected) else { throw refusal(store, cache) }
                try await store.cache.rename(from: expected, to: found)
            }
        case (nil, let expected?):
            if let backing = cache.backing, case let known = try await store.cache.totals().blobs, known > 0 {
                throw WorkerError(
                    .cannotCreate,
                    """
                    \(backing.name) is no cache yet, and the \(known) files that \(store.path) knows are elsewhere: copy them \
                    with: worker cache upload \(backing.name)
                    """)
            }
            if let other = try await CachePlaces(store, cache).otherFolder() {
                // A folder without files that no worker uses can be replaced. The new name keeps it from coming back.
                if try await store.cache.totals().blobs == 0,
                    try await store.eviction.earliestStart(butNot: nil) == nil
                {
                    try await store.cache.setName(try cache.identity.give(newName()))
                    break
                }
                throw WorkerError(
                    .cannotCreate,
                    """
                    The files of \(store.path) are in the folder \(other), perhaps on another machine, and \(cache.name) has \
                    none of them. Machines share a bucket: name it with --cache s3://…, and copy the files into it with: worker \
                    cache upload. If the folder was moved, copy its file CACHE_ID, too.
                    """)
            }
            // The cache was emptied by hand, or is of an earlier version.
            guard try cache.identity.give(expected) == expected else { throw refusal(store, cache) }
        case (let found?, nil):
            guard try await isItsIndex(store, cache) else { throw refusal(store, cache) }
            try await store.cache.setName(found)
        case (nil, nil):
            guard try await isItsIndex(store, cache) else { throw refusal(store, cache) }
            try await store.cache.setName(try cache.identity.give(newName()))
        }
        guard let name = try cache.identity.name() else { return }
        try await CachePlaces(store, cache).check(name: name)
    }

    /// Whether the cache may belong to an index without a cache name: the index knows some of its files, or there are
    /// none.
    private static func isItsIndex(_ store: JobStore, _ cache: ContentCache) async throws -> Bool {
        var known = ""
        for _ in 0..<10 {
            let page = try await store.cache.blobs(after: known, limit: 100)
            for blob in page where try has(blob.hash, blob.size, cache) {
                return true
            }
            guard let last = page.last else { break }
            known = last.hash
        }
        return try cache.hasNoBlobs()
    }

    /// The same check for an index that is about to be built from a salvaged index and the cache's files.
    ///
    /// - Parameter adopts: whether a cache may be taken that belongs to another index. It gets a new name, so the other
    ///   index is refused from then on: two indexes would delete each other's files as orphans.
    /// - Returns: the cache's name.
    static func name(
        _ database: String, _ index: Salvage.Index, _ cache: ContentCache, adopts: Bool,
    ) throws -> String {
        let found = try cache.identity.name()
        switch (found, index.cache) {
        case (let found?, let expected?) where found == expected: return found
        case (nil, let expected?): return expected
        case (_?, _?): break
        case (_, nil):
            // The unreadable index may have belonged to this cache.
            guard try index.isComplete && !knows(index, cache) else { return found ?? newName() }
        }
        guard adopts else {
            throw JobsError(.cannotOpen, refusal(database, cache).message)
        }
        return newName()
    }

    /// Whether the cache really has a file of the index. A bucket is asked.
    private static func has(_ name: String, _ size: Int64, _ cache: ContentCache) throws -> Bool {
        guard let hash = BlobHash(name) else { return false }
        guard let backing = cache.backing else { return try cache.size(of: hash) == size }
        return try backing.size(of: hash) == size
    }

    private static func knows(_ index: Salvage.Index, _ cache: ContentCache) throws -> Bool {
        let isThere = try index.blobs.contains { try has($0.hash, $0.size, cache) }
        return try isThere || cache.hasNoBlobs()
    }

    private static func newName() -> String {
        (0..<2).map { _ in String(UInt64.random(in: .max / 16 ... .max), radix: 16) }.joined()
    }

    private static func refusal(_ store: JobStore, _ cache: ContentCache) -> WorkerError {
        refusal(store.path, cache)
    }

    private static func refusal(_ database: String, _ cache: ContentCache) -> WorkerError {
        WorkerError(
            .cannotCreate,
            """
            The cache \(cache.name) belongs to another database than \(database): this one knows nothing of its files. \
            Name its database with --db, or another folder with --cache. Where its database is lost, let this one take it \
            over, with a new index of its files: worker db rebuild --adopt --db \(word(database)) \
            --cache \(word(cache.name))
            """)
    }

    /// Quoted so that a shell takes it for one word.
    private static func word(_ text: String) -> String {
        let isPlain = text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "/._-+:@%,=".contains($0)) }
        return isPlain ? text : "'" + text.replacing("'", with: "'\\''") + "'"
    }
}
