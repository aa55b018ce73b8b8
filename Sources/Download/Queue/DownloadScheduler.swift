import CCurl
import Core
import Synchronization

/// The state that callers and the curl thread share: the queue, the counts, and the bell that wakes the thread.
///
/// All of it is behind one lock, which is held briefly; callbacks run outside it.
final class DownloadScheduler: Sendable {
    let state: Mutex<State>

    struct State {
        var queue: WaitingQueue
        var concurrency: Int
        /// This worker's share of ``concurrency``; nil for all of it.
        var share: Int?
        var lease = ShareLease()
        /// A transfer starts only while running transfers and unconsumed bodies together are fewer than this.
        var maxUnconsumed: Int
        /// `maxUnconsumed` minus the concurrency; it stays the same when the concurrency changes.
        let headRoom: Int
        var running: [UInt64: Running] = [:]
        /// Number of stalled transfers. They hold no slot that another host could use.
        var stalled = 0
        /// Since when no slot has become free.
        var fullSince: ContinuousClock.Instant?
        var unconsumed = 0
        var bytes: Int64 = 0
        var saved: Int64 = 0
        var progress: [DownloadProgress] = []
        var withRoom: [UInt64] = []
        var cancelled: [UInt64] = []
        var lastID: UInt64 = 0
        var phase = Phase.open
        var bell: Bell?
        var isRung = false
        /// Since when the downloader has been settling: only running transfers may continue.
        var drainingSince: ContinuousClock.Instant?
        /// No request starts before this time. Set when a request arrives at an idle queue.
        var gatherUntil: ContinuousClock.Instant?
    }

    struct Running {
        let host: String
        let start: ContinuousClock.Instant
        var isStalled: Bool
    }

    enum Phase {
        case open
        /// Accepts no more requests; the thread ends its transfers as failed. Holds the callers of ``closeAndWait()``.
        case closing([CheckedContinuation<Void, Never>])
        case closed
    }

    /// - Parameter bell: nil if there is no thread to wake.
    init(configuration: DownloadConfiguration, bell: Bell?) {
        state = Mutex(
            State(
                queue: WaitingQueue(limits: configuration.hostLimits, circuitBreaker: configuration.circuitBreaker),
                concurrency: configuration.concurrency,
                maxUnconsumed: configuration.maxUnconsumedBodies,
                headRoom: configuration.maxUnconsumedBodies - configuration.concurrency,
                bell: bell,
            ),
        )
    }
}

// Calls from any thread.
extension DownloadScheduler {
    /// How long an idle queue waits for the rest of a group, so that the most urgent of them starts first.
    private static let gathering = Duration.milliseconds(3)

    func nextID() -> UInt64 {
        state.withLock {
            $0.lastID += 1
            return $0.lastID
        }
    }

    /// - Parameter isCancelled: called once ``cancel(_:)`` can find the transfer, so that no cancellation is lost.
    func submit(_ queued: QueuedTransfer, isCancelled: () -> Bool) {
        let isAccepted = state.withLock { state in
            guard case .open = state.phase, state.drainingSince == nil else { return false }
            // The next hop of a redirect belongs to no group.
            if state.queue.count == 0, state.running.isEmpty, queued.hop.redirects == 0 {
                state.gatherUntil = .now + Self.gathering
            }
            state.queue.insert(queued)
            guard !isCancelled() else { return state.queue.remove(queued.id) == nil }
            state.ring()
            return true
        }
        if !isAccepted { queued.answer(.failed(.stopped())) }
    }

    /// Cancels a waiting request immediately, and has the thread cancel a running one. An unknown id has ended.
    func cancel(_ id: UInt64) {
        let waiting: QueuedTransfer? = state.withLock { state in
            if let queued = state.queue.remove(id) { return queued }
            guard state.running[id] != nil else { return nil }
            state.cancelled.append(id)
            state.ring()
            return nil
        }
        waiting?.answer(.failed(.stopped()))
    }

    /// Resumes a transfer that paused for lack of disk space.
    func resumePaused(_ id: UInt64) {
        state.withLock { state in
            guard state.running[id] != nil else { return }
            state.withRoom.append(id)
            state.ring()
        }
    }

    func drain() {
        let transfers = state.withLock { state in
            state.drainingSince = state.drainingSince ?? .now
            // The thread has to look for transfers that receive nothing.
            state.ring()
            return state.queue.removeWaiting()
        }
        for queued in transfers { queued.answer(.failed(.stopped())) }
    }

    /// Ends the requests that wait for hosts which are given up, or blocked for longer than `time`.
    func shedBlocked(longerThan time: Duration) {
        let transfers = state.withLock { $0.queue.removeHopeless(longerThan: time, now: .now) }
        for queued in transfers { queued.answer(.shed(queued.host)) }
    }

    /// Ends the last requests of the hosts where more than `limit` wait.
    func shed(over limit: Int) -> Int {
        let transfers = state.withLock { $0.queue.shed(over: limit) }
        for queued in transfers { queued.answer(.shed(queued.host)) }
        return transfers.count
    }

    func update(priority: Int, rank: Int64, for name: Int64) {
        state.withLock {
            $0.queue.update(priority: priority, rank: rank, for: name)
            $0.ring()
        }
    }

    func consumed() {
        state.withLock {
            $0.unconsumed -= 1
            if $0.queue.count > 0 { $0.ring() }
        }
    }

    var counts: DownloadCounts {
        state.withLock {
            DownloadCounts(
                running: $0.running.count, stalled: $0.stalled, waiting: $0.queue.count,
                freeSlots: max(0, $0.freeSlots),
                unconsumed: $0.unconsumed, isHeldByBodies: $0.isHeldByBodies, bytes: $0.bytes, saved: $0.saved)
        }
    }

    func close() {
        state.withLock { $0.close() }
    }

    /// Returns when the thread has ended and all of curl's resources are freed.
    func closeAndWait() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                state.close()
                guard case .closing(let others) = state.phase else { return true }
                state.phase = .closing(others + [continuation])
                return false
            }
            if isOver { continuation.resume() }
        }
    }
}

extension DownloadScheduler.State {
    /// Wakes the thread; several calls before it wakes cost one wake-up.
    mutating func ring() {
        guard !isRung else { return }
        isRung = true
        bell?.ring()
    }

    mutating func close() {
        guard case .open = phase else { return }
        phase = .closing([])
        ring()
    }
}

/// Wakes the thread from `curl_multi_poll`.
///
/// Unchecked: `curl_multi_wakeup` may be called from any thread while the handle exists, and the scheduler drops its
/// bell, under its lock, before the handle is freed. See https://curl.se/libcurl/c/curl_multi_wakeup.html
struct Bell: @unchecked Sendable {
    let multi: UnsafeMutableRawPointer

    func ring() { curl_multi_wakeup(multi) }
}
