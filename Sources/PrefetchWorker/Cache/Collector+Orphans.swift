internal import ContentCache
internal import Core
internal import Jobs
internal import Synchronization

/// Files without a row: a crash between publishing and the commit leaves them.
///
/// Each is looked up again before it goes, when no worker holds it any more: a worker that is about to write its row does.
extension Collector {
    /// What dead workers had set aside is given back, and the files that they had named go.
    ///
    /// - Returns: the bytes that others may set aside now.
    func settleDead(myself: Int64?) async throws -> Int64 {
        var report = Report()
        let dead = try await store.eviction.deadReservations(myself: myself)
        return dead.isEmpty ? 0 : try await removeOrphans(&report, of: dead, myself: myself)
    }

    /// Those that are older than the grace; and those that no live worker can own, where a dead worker's reservation waits
    /// for them.
    ///
    /// - Returns: the bytes that dead workers no longer hold.
    @discardableResult
    func removeOrphans(_ report: inout Report, of dead: [Int64], myself: Int64?) async throws -> Int64 {
        let now = store.database.currentTime.milliseconds
        // Files of a live worker were named after it started, and this one knows its own.
        let bound = dead.isEmpty ? Int64.min : min(now, try await store.eviction.earliestStart(butNot: myself) ?? now)
        var left: Int64 = 0
        for shard in 0..<256 {
            if Task.isCancelled { return 0 }
            let hashes = try await disk.run { [cache] in Result { try cache.files(inShard: shard) } }.get()
            let unknown = try await store.eviction.unknown(blobs: hashes.map(\.hex))
            if unknown.isEmpty { continue }
            let mine = inHand.all
            let others = unknown.filter { !mine.contains($0) }
            let old = others.filter { isLeft($0, now: now, bound: bound) }
            var gone: Set<String> = []
            for start in stride(from: 0, to: old.count, by: 64) {
                gone.formUnion(
                    try await remover.removeUnknown(Array(old[start..<min(start + 64, old.count)])))
            }
            report.orphans += gone.count
            for name in try await store.eviction.unknown(blobs: others.filter { !gone.contains($0) }) {
                left += BlobHash(name).flatMap { cache.size(of: $0) } ?? 0
            }
        }
        return try await store.eviction.limitReservations(of: dead, to: left)
    }

    private func isLeft(_ name: String, now: Int64, bound: Int64) -> Bool {
        guard let age = BlobHash(name).flatMap({ cache.age(of: $0, now: now) }) else { return false }
        // Its time lies ahead, after the clock was set back: its age isn't known.
        let isStrange = age < -60_000
        return age >= policy.orphanGrace || policy.orphanGrace == 0 || isStrange || now - age <= bound
    }
}

/// Files that this worker has named, or is about to, and that the index doesn't know yet: no other than they is what a
/// crash left.
final class PublishingBlobs: Sendable {
    private let names = Mutex<[String: Int]>([:])

    func take(_ hashes: [String]) {
        names.withLock { names in for hash in hashes { names[hash, default: 0] += 1 } }
    }

    func letGo(_ hashes: [String]) {
        names.withLock { names in
            for hash in hashes {
                let count = names[hash, default: 0] - 1
                names[hash] = count > 0 ? count : nil
            }
        }
    }

    var all: Set<String> { names.withLock { Set($0.keys) } }
}
