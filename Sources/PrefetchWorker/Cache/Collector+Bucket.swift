internal import ContentCache
internal import Core
internal import Jobs

/// A cache in a bucket: the folder in front of it, and objects that the index does not know.
extension Collector {
    /// Deletes files of the folder that were not used for the longest time, down to its size and to the disk's minimum
    /// of free space. The bucket keeps its blobs.
    func trimFolder(keepingFree minimum: Int64) async throws {
        let limit = policy.folderBytes
        try await disk.run { [cache] in
            Result {
                guard let front = cache.front else { return }
                let used = try front.bytes()
                let missing = max(0, minimum - (try cache.freeBytes()))
                guard used > limit || missing > 0 else { return }
                // Some more than necessary, so that the next blobs find space.
                try front.trim(to: max(0, min(limit / 10 * 9, used - min(used, missing))))
            }
        }.get()
    }

    /// Deletes a bucket's objects without a row in the index: a crash between publishing and the commit leaves them. A
    /// running worker does not look for them, since every thousand objects cost a request.
    ///
    /// - Returns: how many were deleted.
    public func removeUnknownObjects() async throws -> Int {
        guard let backing = cache.backing else { return 0 }
        var count = 0
        for shard in 0..<256 where !Task.isCancelled {
            let objects = try await disk.run { Result { try backing.blobs(inShard: shard) } }.get()
            let left = objects.filter { ($0.age ?? 0) >= policy.orphanGrace }.map(\.hash.hex)
            let unknown = try await store.eviction.unknown(blobs: left)
            for start in stride(from: 0, to: unknown.count, by: 64) {
                count += try await remover.removeUnknown(Array(unknown[start..<min(start + 64, unknown.count)])).count
            }
        }
        return count
    }
}
