internal import ContentCache
internal import Synchronization

/// What the quarantine takes up, for whoever keeps the cache within its limit: read anew only when something came or went.
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
        // Before it is read: what comes meanwhile makes the stamp an old one.
        let stamp = cache.stampOfQuarantine()
        if let stamp, let known = known.withLock({ $0 }), known.stamp == stamp { return known.bytes }
        let bytes = try cache.quarantined().bytes
        known.withLock { $0 = stamp.map { Known(stamp: $0, bytes: bytes) } }
        return bytes
    }
}
