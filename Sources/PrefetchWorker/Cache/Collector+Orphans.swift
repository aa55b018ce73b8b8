internal import ContentCache
internal import Core
internal import Jobs
internal import Synchronization

/// Orphans are files without a row in the index: a crash between publishing and the commit leaves them.
///
/// Each is looked up again before it is deleted, when no worker holds it any more: a worker holds a file until it has
/// written the row.
extension Collector {
    /// Releases dead workers' reservations and removes their unindexed files.
    ///
    /// - Returns: the bytes that were released.
    func reclaimDeadReservations(myself: Int64?) async throws -> Int64 {
        var report = Report()
        let dead = try await store.eviction.deadReservations(myself: myself)
        return dead.isEmpty ? 0 : try await removeOrphans(&report, of: dead, myself: myself)
    }

    /// Removes orphans older than the grace period. If a dead worker has a reservation, it also removes orphans that no
    /// live worker can own.
    ///
    /// - Returns: the bytes of dead workers' reservations that were released.
    @discardableResult
    func removeOrphans(_ report: inout Report, of dead: [Int64], myself: Int64?) async throws -> Int64 {
        let now = store.database.currentTime.milliseconds
        // Live workers named their files after they started, and this worker knows its own files.
        let start = try await store.eviction.earliestStart(butNot: myself)
        let bound = dead.isEmpty ? Int64.min : min(now, start.map { max($0, 0) - Self.fileTimeLag } ?? now)
        var left: Int64 = 0
        for shard in 0..<256 {
            if Task.isCancelled { return 0 }
            let hashes = try await disk.run { [cache] in Result { try cache.files(inShard: shard) } }.get()
            let unknown = try await store.eviction.unknown(blobs: hashes.map(\.hex))
            if unknown.isEmpty { continue }
            let mine = publishing.all
            let others = unknown.filter { !mine.contains($0) }
            let old = others.filter { isLeft($0, now: now, bound: bound) }
            var gone: Set<String> = []
            for start in stride(from: 0, to: old.count, by: 64) {
                gone.formUnion(
                    try await remover.removeUnknown(Array(old[start..<min(start + 64, old.count)])))
            }
            report.orphans += gone.count
            for name in try await store.eviction.unknown(blobs: others.filter { !gone.contains($0) }) {
                left += try BlobHash(name).flatMap { try cache.size(of: $0) } ?? 0
            }
        }
        return try await store.eviction.limitReservations(of: dead, to: left)
    }

    /// Milliseconds by which a file's time may lag behind the clock: file systems use the kernel's last tick.
    private static let fileTimeLag: Int64 = 10

    private func isLeft(_ name: String, now: Int64, bound: Int64) -> Bool {
        guard let age = BlobHash(name).flatMap({ cache.age(of: $0, now: now) }) else { return false }
        // The file's time is in the future, since the clock was set back: its age is unknown.
        let isStrange = age < -60_000
        return age >= policy.orphanGrace || policy.orphanGrace == 0 || isStrange || now - age <= bound
    }
}

/// Files that this worker is publishing and the index does not have yet.
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
