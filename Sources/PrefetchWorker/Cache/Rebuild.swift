public import ContentCache
public import Core
public import Jobs
internal import SystemPackage

/// Makes a new database from a broken one and from the files in the cache.
public struct Rebuild: Sendable {
    private let database: String
    private let cache: ContentCache
    private let now: WallTime
    private let disk = BlockingQueue("cache.rebuild")

    public init(database: String, cache: ContentCache, now: WallTime = DatabaseGate.wallClock()) {
        self.database = database
        self.cache = cache
        self.now = now
    }

    /// - Parameter adopts: takes a cache that isn't the database's own, and makes a database where there is none.
    /// - Throws: `cannotOpen` for the cache of another database.
    public func run(adopts: Bool = false) async throws -> Salvage.Report {
        try await disk.run { [database, cache, now] in
            Result {
                var name: String?
                let report = try Salvage.run(
                    database: database, now: now, mayBeMissing: adopts,
                    bind: { index in
                        name = try CacheOwnership.name(database, index, cache, adopts: adopts)
                        return name
                    },
                    files: { try Self.wholeFiles(in: cache) })
                // After the database: where this comes to nothing, they refuse each other, and it can be done again.
                if let name { try cache.changeIdentity(to: name) }
                try cache.forgetOwner()
                return report
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
