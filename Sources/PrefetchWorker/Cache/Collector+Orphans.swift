internal import ContentCache
internal import Jobs

/// Files without a row: what a crash leaves between publishing and writing down.
///
/// Each is asked for again under the write lock before it goes. Whoever is about to write the row of one notices there that
/// it is gone, and its item is done again: so a guess that was wrong costs time, and nothing else.
extension Collector {
    /// What dead workers had set aside is given back, and the files that they had named go.
    ///
    /// - Returns: the bytes that others may set aside now.
    func settleDead(myself: Int64?) async throws -> Int64 {
        var report = Report()
        let dead = try await store.deadReservations(myself: myself)
        return dead.isEmpty ? 0 : try await removeOrphans(&report, of: dead, myself: myself)
    }

    /// Those that are older than the grace; and those that nobody can own who is alive, where a dead worker's room waits
    /// for them.
    ///
    /// - Returns: the bytes that dead workers no longer hold.
    @discardableResult
    func removeOrphans(_ report: inout Report, of dead: [Int64], myself: Int64?) async throws -> Int64 {
        let now = store.currentTime
        // Files of a live worker were named after it started, and this one knows its own.
        let bound = dead.isEmpty ? Int64.min : min(now, try await store.earliestStart(butNot: myself) ?? now)
        var left: Int64 = 0
        for shard in 0..<256 {
            if Task.isCancelled { return 0 }
            let hashes = try await disk.run { [cache] in Result { try cache.files(inShard: shard) } }.get()
            let unknown = try await store.unknown(blobs: hashes.map(\.hex))
            if unknown.isEmpty { continue }
            let mine = inHand.all
            let others = unknown.filter { !mine.contains($0) }
            let old = others.filter { isLeft($0, now: now, bound: bound) }
            var gone: Set<String> = []
            for start in stride(from: 0, to: old.count, by: 64) {
                gone.formUnion(
                    try await store.removeUnknown(Array(old[start..<min(start + 64, old.count)]), in: folder))
            }
            report.orphans += gone.count
            for name in try await store.unknown(blobs: others.filter { !gone.contains($0) }) {
                left += BlobHash(name).flatMap { cache.size(of: $0) } ?? 0
            }
        }
        return try await store.limitReservations(of: dead, to: left)
    }

    private func isLeft(_ name: String, now: Int64, bound: Int64) -> Bool {
        guard let age = BlobHash(name).flatMap({ cache.age(of: $0, now: now) }) else { return false }
        // Of a clock that was ahead: nobody can say how old it is.
        let isStrange = age < -60_000
        return age >= policy.orphanGrace || policy.orphanGrace == 0 || isStrange || now - age <= bound
    }
}
