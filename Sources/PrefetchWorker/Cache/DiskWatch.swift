internal import ContentCache
internal import Jobs
internal import Logging
internal import Synchronization

/// Tracks whether the disk works. A disk fault costs an item no try: the item is released, and the worker pauses, tests
/// the disk at least every second, and resumes by itself.
final class DiskWatch: Sendable {
    private struct State {
        /// The error of the failed write.
        var reported: String?
        /// When to test the disk again.
        var probeAt: Int64 = 0
        /// Failed writes and tests since the last successful write: each makes the next wait longer.
        var relapses = 0
        /// The free space is below the minimum.
        var low: String?
        var lookAt: Int64 = 0
        /// Whether the pause was logged, and its end was not.
        var isAnnounced = false
    }

    static let pause = "The worker pauses until its cache can be written to again."
    static let longestWait: Int64 = 1_000
    /// How often the free space is checked, in milliseconds.
    private static let lookEvery: Int64 = 1_000

    /// How long to wait before a failed disk is tested again, in milliseconds.
    static func wait(relapses: Int) -> Int64 { min(longestWait, 250 << min(relapses, 10)) }

    private let cache: ContentCache
    private let minimumFree: Int64
    private let state = Mutex(State())

    /// - Parameter minimumFree: the bytes to keep free on the cache's disk.
    init(cache: ContentCache, minimumFree: Int64) {
        self.cache = cache
        self.minimumFree = minimumFree
    }

    /// Reports a failed write.
    func report(_ trouble: String) {
        state.withLock { state in
            guard state.reported == nil else { return }
            state.reported = trouble
            state.probeAt = monotonicMilliseconds() + Self.wait(relapses: state.relapses)
            state.relapses += 1
        }
    }

    /// Reports a successful write, after which the failure counts as over.
    ///
    /// - Returns: whether a pause was logged, so that its end is logged as well.
    func worked() -> Bool {
        state.withLock { state in
            guard state.reported == nil else { return false }
            state.relapses = 0
            return Self.endAnnouncement(&state)
        }
    }

    /// Called when the worker pauses.
    ///
    /// - Returns: whether to log it: only once until a write succeeds.
    func announce() -> Bool {
        state.withLock { state in
            defer { state.isAnnounced = true }
            return !state.isAnnounced
        }
    }

    /// Called when no trouble is known and there is no work: no write will show that the disk works again.
    ///
    /// - Returns: as `worked()`.
    func rests() -> Bool { state.withLock { $0.reported == nil && Self.endAnnouncement(&$0) } }

    func sayItWorks(_ logger: Logger) { logger.notice("The cache can be written to again; the worker continues.") }

    private static func endAnnouncement(_ state: inout State) -> Bool {
        defer { state.isAnnounced = false }
        return state.isAnnounced
    }

    var isInTrouble: Bool { known != nil }

    /// The trouble as it was last seen.
    private var known: String? { state.withLock { $0.reported ?? $0.low } }

    /// Failed writes and tests since the last successful write.
    var relapses: Int { state.withLock { $0.relapses } }

    /// Whether the trouble is too little free space, which evicting may fix.
    var isLow: Bool { state.withLock { $0.reported == nil && $0.low != nil } }

    /// The present trouble, or `nil`. It checks the free space at most once a second.
    func trouble() -> String? {
        let now = monotonicMilliseconds()
        let (isDue, known) = state.withLock { state in
            let isDue = now >= state.lookAt && state.reported == nil
            if isDue { state.lookAt = now + Self.lookEvery }
            return (isDue, state.reported ?? state.low)
        }
        guard isDue else { return known }
        let found = tooLittleSpace()
        state.withLock { $0.low = found }
        return found
    }

    /// Tests whether the reported trouble is over, if the test is due.
    ///
    /// - Parameter attempt: writes to the disk, and returns the error.
    /// - Returns: whether the test was made.
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

    /// Replaces the reason for too little free space until the next check.
    func explain(_ reason: String) { state.withLock { if $0.low != nil { $0.low = reason } } }

    /// Checks the free space again at once, since files were removed.
    func lookAgain() { state.withLock { $0.lookAt = 0 } }

    private func tooLittleSpace() -> String? {
        do {
            let free = try cache.freeBytes()
            guard free < minimumFree else { return nil }
            return
                "Only \(diskText(free)) are free for the cache \(cache.directory), less than the \(diskText(minimumFree)) "
                + "that --min-free keeps; lower it, or free space on the disk."
        } catch {
            return error.message
        }
    }
}

/// While the worker pauses, the queue waits. No item in flight is reported, since those continue.
extension DiskWatch: ItemWaits {
    var name: String { WaitPlace.disk }
    var reason: String { "\(Self.pause) \(known ?? "")" }
    var counts: (waiting: Int, running: Int) { (known == nil ? 0 : 1, 0) }

    func waits(longerThan time: Duration) -> [Int64] { [] }
}

/// Bytes of a disk, for messages: in MiB, or in KiB below 10 MiB.
func diskText(_ bytes: Int64) -> String { bytes >= 10 << 20 ? "\(bytes >> 20) MiB" : "\(max(0, bytes) >> 10) KiB" }
