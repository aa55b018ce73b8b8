public import ContentCache
public import Jobs
internal import SystemPackage

/// What a check of the cache against its index found.
public struct CacheAudit: Sendable, Encodable {
    /// Blobs that were read and are what their names say.
    public var good = 0
    public var bytes: Int64 = 0
    /// Blobs the index knows and the disk doesn't have.
    public var missing: [String] = []
    /// Blobs whose bytes are not what their name says; they are in quarantine now.
    public var damaged: [String] = []
    /// Blobs nothing refers to: what a crash between publishing and writing down leaves. Harmless.
    public var unreferenced = 0
    /// Files that have no business in the cache.
    public var strangers: [String] = []
    /// Rules that the database breaks.
    public var inconsistencies: [String] = []

    /// Whether every invariant holds.
    public var isSound: Bool {
        missing.isEmpty && damaged.isEmpty && strangers.isEmpty && inconsistencies.isEmpty
    }

    /// Reads every blob. What is missing or damaged is forgotten, so that the next job that wants it makes it anew.
    public static func run(
        store: JobStore, cache: ContentCache, progress: (Int) -> Void = { _ in },
    ) async throws -> CacheAudit {
        var audit = CacheAudit()
        try await audit.checkIndex(store, cache, progress)
        try await audit.checkFolders(store, cache)
        audit.inconsistencies += try await store.inconsistencies()
        try await store.forget(blobs: audit.missing + audit.damaged)
        return audit
    }

    private mutating func checkIndex(_ store: JobStore, _ cache: ContentCache, _ progress: (Int) -> Void) async throws {
        let reading = BlockingQueue("cache.verify")
        var last = ""
        while true {
            let page = try await store.blobs(after: last, limit: 200)
            guard let end = page.last?.hash else { return }
            last = end
            for (hex, size) in page {
                guard let hash = BlobHash(hex) else {
                    inconsistencies.append("The index names a blob '\(hex.prefix(80))', which is no SHA-256.")
                    continue
                }
                switch await reading.run({ cache.check(hash, size: size) }) {
                case .good:
                    good += 1
                    bytes += size
                case .missing: missing.append(hex)
                case .damaged: damaged.append(hex)
                }
            }
            progress(good)
        }
    }

    private mutating func checkFolders(_ store: JobStore, _ cache: ContentCache) async throws {
        var found: [BlobHash] = []
        try cache.forEachFile { path, hash in
            if let hash { found.append(hash) } else { strangers.append(path.string) }
        }
        unreferenced = found.count - (try await store.known(blobs: found.map(\.hex)))
    }
}
