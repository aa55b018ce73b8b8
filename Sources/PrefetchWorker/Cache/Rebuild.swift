public import ContentCache
public import Jobs
internal import SystemPackage

/// Makes a new database from a broken one and from the files in the cache.
public struct Rebuild: Sendable {
    private let database: String
    private let cache: ContentCache
    private let now: Int64
    private let disk = BlockingQueue("cache.rebuild")

    public init(database: String, cache: ContentCache, now: Int64 = JobStore.wallClock()) {
        self.database = database
        self.cache = cache
        self.now = now
    }

    public func run() async throws -> Salvage.Report {
        try await disk.run { [database, cache, now] in
            Result {
                try Salvage.run(database: database, now: now) { try Self.wholeFiles(in: cache) }
            }
        }.get()
    }

    /// Every blob, read and found whole; the others go to quarantine.
    private static func wholeFiles(in cache: ContentCache) throws -> [(hash: String, size: Int64)] {
        var found: [(hash: String, size: Int64)] = []
        for shard in 0..<256 {
            for hash in try cache.files(inShard: shard) {
                // The damaged ones are out of the way by now.
                guard let size = try size(of: hash, in: cache) else { continue }
                found.append((hash.hex, size))
            }
        }
        return found
    }

    /// - Returns: nil for one that is damaged.
    private static func size(of hash: BlobHash, in cache: ContentCache) throws -> Int64? {
        do {
            let file = try cache.openVerified(hash)
            defer { withExtendedLifetime(file) {} }
            return Int64(try file.descriptor.seek(offset: 0, from: .end))
        } catch let error as CacheError {
            guard error.code == .damaged else { throw error }
            return nil
        }
    }
}
