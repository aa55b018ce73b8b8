public import ContentCache
internal import Core
internal import Glibc
public import Jobs
internal import SystemPackage

/// Finds the cached files of a URL, and returns only verified ones: each is verified once after each boot.
public struct CacheReader: Sendable {
    /// The file that was found.
    public struct Found: Sendable {
        public var entry: CacheEntry?
        /// The file's path, absolute.
        public var path: String?
        /// Damaged files that were found on the way, as sentences. The index has forgotten them.
        public var damage: [String] = []
    }

    private let store: JobStore
    private let cache: ContentCache
    private let readOnly: [String]
    private let disk = BlockingQueue("cache.reader")

    /// - Parameter readOnly: folders of caches to search after the main one, each with its database in or beside it.
    public init(store: JobStore, cache: ContentCache, readOnly: [String] = []) {
        self.store = store
        self.cache = cache
        self.readOnly = readOnly
    }

    public func find(_ url: String, variant: String) async throws -> Found {
        var found = Found()
        if let entry = try await store.cache.entry(ofURL: url, variant: variant), let hash = BlobHash(entry.blob) {
            do {
                try await verify(hash, entry.key)
                found.entry = entry
                found.path = cache.path(of: hash).string
                return found
            } catch let error as CacheError where error.code == .damaged {
                try await unlessBusy {
                    try await store.cache.forget(blobs: [entry.blob])
                    try await LinkKeeper(store: store, cache: cache).unlinkRemoved()
                }
                found.damage.append(error.message)
            }
        }
        for folder in readOnly {
            let other = try ReadOnlyCache(folder)
            let entry = try await other.store.cache.entry(ofURL: url, variant: variant)
            try await other.store.close()
            guard let entry, let hash = BlobHash(entry.blob),
                try await disk.run({ Result { try other.cache.openWhole(hash) } }).get() != nil
            else { continue }
            found.entry = entry
            found.path = other.cache.path(of: hash).string
            return found
        }
        return found
    }

    private func verify(_ hash: BlobHash, _ key: String) async throws {
        let known = try await store.cache.lastUse(of: hash.hex, by: key)
        let before = await disk.run { [cache] in cache.stamp(of: hash) }
        if let before, known?.verified == before {
            // Recorded at most once an hour, so that most reads need no write lock.
            let hourAgo = try await store.database.cacheTime() - 3_600_000
            if let known, known.usedAt < hourAgo.milliseconds {
                try await unlessBusy { try await store.cache.noteUses([CacheIndex.BlobUse(hash: hash.hex, key: key)]) }
            }
            return
        }
        try await disk.run { [cache] in Result { _ = try cache.openVerified(hash) } }.get()
        // The verification is recorded only if the file has not changed meanwhile.
        let after = await disk.run { [cache] in cache.stamp(of: hash) }
        let use = CacheIndex.BlobUse(hash: hash.hex, verified: before == after ? after : nil, key: key)
        try await unlessBusy { try await store.cache.noteUses([use]) }
    }

    /// A read needs no write: its notes are dropped if another program is writing, or if the database is read-only.
    private func unlessBusy(_ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch let error as JobsError where error.code == .busy || error.code == .cannotOpen {
            return
        }
    }
}

/// A read-only cache that is searched after the main one.
struct ReadOnlyCache: Sendable {
    let cache: ContentCache
    let store: JobStore

    /// - Parameter folder: the cache's folder; its database is `worker.db` in it or beside it.
    init(_ folder: String) throws {
        cache = try ContentCache(readOnly: FilePath(folder))
        let places = [cache.directory, cache.directory.removingLastComponent()].map { $0.appending("worker.db").string }
        let database = try places.first { place in
            if access(place, R_OK) == 0 { return true }
            guard errno == ENOENT || errno == ENOTDIR else {
                throw WorkerError(
                    .cannotCreate, "The database \(place) can't be read: \(Errno(rawValue: errno)).")
            }
            return false
        }
        guard let database else {
            throw WorkerError(
                .cannotCreate,
                "The read-only cache \(folder) has no database: worker.db must be in the folder or beside it.")
        }
        store = try JobStore(readOnly: database)
    }
}
