internal import ContentCache
internal import Logging
internal import Synchronization

/// Whether the disk lets us work. Its faults cost no try: the items go back, and the worker waits, looks again
/// every second, and goes on by itself.
final class DiskWatch: Sendable {
    private struct State {
        /// What could not be written.
        var reported: String?
        /// When to try whether it works again.
        var probeAt: Int64 = 0
        /// Reports since something last went well: each makes the next wait longer.
        var relapses = 0
        /// Too little room, found by looking.
        var low: String?
        var lookAt: Int64 = 0
        /// Whether it was said that the worker pauses, and not yet that it goes on.
        var isAnnounced = false
    }

    static let longestWait: Int64 = 1_000
    /// How often the free room is looked at, in milliseconds.
    private static let lookEvery: Int64 = 1_000

    /// How long a disk that doesn't work is left alone until it is tried again, in milliseconds.
    static func wait(relapses: Int) -> Int64 { min(longestWait, 250 << min(relapses, 10)) }

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
        state.withLock { state in
            guard state.reported == nil else { return }
            state.reported = trouble
            state.probeAt = monotonicMilliseconds() + Self.wait(relapses: state.relapses)
            state.relapses += 1
        }
    }

    /// Something was written, so the reported trouble is over.
    ///
    /// - Returns: whether a pause was announced, so that its end is to be told.
    func worked() -> Bool {
        state.withLock { state in
            guard state.reported == nil else { return false }
            state.relapses = 0
            return Self.endAnnouncement(&state)
        }
    }

    /// The worker pauses.
    ///
    /// - Returns: whether it is to be said: once, however often it is found again before something has worked.
    func announce() -> Bool {
        state.withLock { state in
            defer { state.isAnnounced = true }
            return !state.isAnnounced
        }
    }

    /// Nothing is wrong, and there is nothing to do that could show it.
    ///
    /// - Returns: as `worked()`.
    func rests() -> Bool { state.withLock { $0.reported == nil && Self.endAnnouncement(&$0) } }

    func sayItWorks(_ logger: Logger) { logger.notice("The disk works again; the worker goes on.") }

    private static func endAnnouncement(_ state: inout State) -> Bool {
        defer { state.isAnnounced = false }
        return state.isAnnounced
    }

    var isInTrouble: Bool { state.withLock { $0.reported != nil || $0.low != nil } }

    /// How often in a row the disk was found to work and then did not.
    var relapses: Int { state.withLock { $0.relapses } }

    /// Whether `trouble()` is that there is too little room, which evicting may help.
    var isLow: Bool { state.withLock { $0.reported == nil && $0.low != nil } }

    /// The present trouble, or `nil`. Looks at the free space at most once a second.
    func trouble() -> String? {
        let now = monotonicMilliseconds()
        let (isDue, known) = state.withLock { state in
            let isDue = now >= state.lookAt && state.reported == nil
            if isDue { state.lookAt = now + Self.lookEvery }
            return (isDue, state.reported ?? state.low)
        }
        guard isDue else { return known }
        let found = tooLittleRoom()
        state.withLock { $0.low = found }
        return found
    }

    /// Tries whether the reported trouble is over, if it is time to.
    ///
    /// - Parameter attempt: writes something, and says what went wrong.
    /// - Returns: whether it was tried.
    func probe(_ attempt: () async -> String?) async -> Bool {
        let now = monotonicMilliseconds()
        let isDue = state.withLock { state in
            guard state.reported != nil, now >= state.probeAt else { return false }
            state.probeAt = now + Self.longestWait
            return true
        }
        guard isDue else { return false }
        let found = await attempt()
        state.withLock { state in
            state.reported = found
            state.lookAt = 0
            if found != nil {
                state.probeAt = monotonicMilliseconds() + Self.wait(relapses: state.relapses)
                state.relapses += 1
            }
        }
        return true
    }

    /// Says better why there is too little room, until the next look.
    func explain(_ reason: String) { state.withLock { if $0.low != nil { $0.low = reason } } }

    /// Looks at the room again at once: something was removed.
    func lookAgain() { state.withLock { $0.lookAt = 0 } }

    private func tooLittleRoom() -> String? {
        do {
            let free = try cache.freeBytes()
            guard free < minimumFree else { return nil }
            return
                "Only \(free >> 20) MiB are free for the cache \(cache.directory), less than the \(minimumFree >> 20) MiB "
                + "that --min-free keeps; lower it, or make room on the disk."
        } catch {
            return error.message
        }
    }
}
