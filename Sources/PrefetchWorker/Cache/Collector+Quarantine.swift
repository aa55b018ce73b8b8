internal import ContentCache
internal import Core
internal import Jobs
internal import Synchronization

/// Removes quarantined files when they expire, or when their space is needed.
extension Collector {
    /// Removes all quarantined files, at any age.
    public func clearQuarantine() async throws -> Report {
        var report = Report()
        let all = try await inQuarantine()
        await remove(fromQuarantine: all, &report)
        return report
    }

    /// Removes draft markers that a killed process left.
    func removeDrafts() async throws {
        let now = store.database.currentTime.milliseconds
        // Creating a cache takes less than an hour.
        try await disk.run { [cache] in
            Result { try cache.removeDrafts(before: now - 3_600_000, ofDeadBefore: .max) }
        }.get()
    }

    func removeLeftovers(_ report: inout Report) async throws {
        try await removeDrafts()
        let all = try await inQuarantine()
        // Also called if quarantined files never expire: each file's age counts from the first call that sees it.
        let expired = Set(
            try await store.eviction.expired(inQuarantine: all.map(\.name), after: max(0, policy.quarantineAge)))
        guard policy.quarantineAge >= 0 else { return }
        await remove(fromQuarantine: all.filter { expired.contains($0.name) }, &report)
    }

    /// Removes the oldest files, until `excess` bytes are freed.
    func evictQuarantine(_ report: inout Report, _ excess: Int64) async throws {
        guard excess > 0 else { return }
        var left = excess
        var chosen: [QuarantinedFile] = []
        for thing in try await inQuarantine() where left > 0 {
            chosen.append(thing)
            left -= thing.bytes
        }
        await remove(fromQuarantine: chosen, &report)
    }

    private func inQuarantine() async throws -> [QuarantinedFile] {
        try await disk.run { [cache] in Result { try cache.inQuarantine() } }.get()
    }

    private func remove(fromQuarantine things: [QuarantinedFile], _ report: inout Report) async {
        guard !things.isEmpty else { return }
        let gone = await disk.run { [cache] in cache.remove(fromQuarantine: things) }
        report.quarantined += gone.files
        report.quarantinedBytes += gone.bytes
        report.stuck += things.count - gone.files
        report.trouble = gone.trouble ?? report.trouble
    }
}

/// The quarantine's bytes, which count toward the cache's limit. It reads the folder again only after a change.
final class QuarantineMeter: Sendable {
    private struct Known {
        var stamp: String
        var bytes: Int64
    }

    private let cache: ContentCache
    private let known = Mutex<Known?>(nil)

    init(_ cache: ContentCache) { self.cache = cache }

    /// Blocks on the disk.
    func bytes() throws(CacheError) -> Int64 {
        // Taken before the folder is read: a later change then differs from this stamp.
        let stamp = cache.stampOfQuarantine()
        if let stamp, let known = known.withLock({ $0 }), known.stamp == stamp { return known.bytes }
        let bytes = try cache.quarantined().bytes
        known.withLock { $0 = stamp.map { Known(stamp: $0, bytes: bytes) } }
        return bytes
    }
}
