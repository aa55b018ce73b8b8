internal import ContentCache
internal import Synchronization

/// Whether the disk lets us work. Its faults are nobody's failed try: the items go back, and the worker waits.
final class DiskWatch: Sendable {
    private struct State {
        var trouble: String?
        var probeAt: Int64 = 0
    }

    private let cache: ContentCache
    private let minimumFree: Int64
    private let state = Mutex(State())

    /// - Parameter minimumFree: bytes that stay free on the cache's disk.
    init(cache: ContentCache, minimumFree: Int64) {
        self.cache = cache
        self.minimumFree = minimumFree
    }

    /// Something could not be written.
    func report(_ trouble: String) {
        state.withLock {
            $0.trouble = trouble
            $0.probeAt = monotonicMilliseconds() + 5_000
        }
    }

    /// What is wrong, or `nil`. Looks at the free space at most once a second, and every 5 s in trouble.
    func trouble() -> String? {
        let now = monotonicMilliseconds()
        let (isDue, known) = state.withLock { state in
            defer { if now >= state.probeAt { state.probeAt = now + 1_000 } }
            return (now >= state.probeAt, state.trouble)
        }
        guard isDue else { return known }
        let found = probe()
        state.withLock {
            $0.trouble = found
            if found != nil { $0.probeAt = now + 5_000 }
        }
        return found
    }

    private func probe() -> String? {
        do {
            let free = try cache.freeBytes()
            guard free < minimumFree else { return nil }
            return
                "Only \(free >> 20) MiB are free for the cache \(cache.directory), less than the \(minimumFree >> 20) MiB "
                + "that --min-free keeps."
        } catch {
            return error.message
        }
    }
}
