public import ContentCache
public import Core
public import Jobs
internal import SystemPackage

/// Makes a new database from a broken one and the files in the cache.
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

    /// - Parameters:
    ///   - adopts: whether to take a cache of another database, too, and to make a database if there is none.
    ///   - locksOld: whether programs are locked out of the old database meanwhile; without it that file is only read.
    /// - Throws: `cannotOpen` for the cache of another database.
    public func run(adopts: Bool = false, locksOld: Bool = true) async throws -> Salvage.Report {
        try await disk.run { [database, cache, now] in
            Result {
                var name: String?
                let report = try Salvage.run(
                    database: database, now: now, mayBeMissing: adopts, locksOld: locksOld,
                    bind: { index in
                        name = try CacheOwnership.name(database, index, cache, adopts: adopts)
                        return name
                    },
                    files: { try Self.wholeFiles(in: cache) })
                // After the database: if this fails, the two refuse each other, and the rebuild can be repeated.
                if let name { try cache.identity.change(to: name) }
                try cache.identity.forgetOwner()
                return report
            }
        }.get()
    }

    /// Reads every blob and returns the intact ones; damaged ones go to quarantine.
    private static func wholeFiles(in cache: ContentCache) throws -> [(hash: String, size: Int64)] {
        var found: [(hash: String, size: Int64)] = []
        for shard in 0..<256 {
            if let backing = cache.backing {
                // The bucket compared each with its hash when it was stored.
                found += try backing.blobs(inShard: shard).map { ($0.hash.hex, $0.size) }
                continue
            }
            for hash in try cache.files(inShard: shard) {
                // Damaged blobs are in quarantine by now.
                guard let size = try size(of: hash, in: cache) else { continue }
                found.append((hash.hex, size))
            }
        }
        return found
    }

    /// - Returns: nil for a damaged blob.
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
