import CCurl
import Core
import Synchronization

/// The state that callers and the curl thread share: the queue, the counts, and the bell that wakes the thread.
///
/// Everything lies behind one lock that is only held for moments; answers are given outside it.
final class DownloadScheduler: Sendable {
    let state: Mutex<State>

    struct State {
        var queue: WaitingQueue
        var concurrency: Int
        /// This worker's share of ``concurrency``; nil for all.
        var share: Int?
        /// A transfer starts only while running ones and unconsumed bodies are fewer.
        var maxUnconsumed: Int
        /// `maxUnconsumed` minus the concurrency; constant when the concurrency changes.
        let headRoom: Int
        var running: [UInt64: Running] = [:]
        /// Transfers that are silent. They hold no place that another host could use.
        var silent = 0
        /// Since when no place has become free.
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
        /// Since when only what runs already may go on.
        var settlingSince: ContinuousClock.Instant?
        /// Nothing starts before; set when something comes to an idle queue.
        var gatherUntil: ContinuousClock.Instant?
    }

    struct Running {
        let host: String
        let start: ContinuousClock.Instant
        var isSilent: Bool
    }

    enum Phase {
        case open
        /// No more requests; the thread fails its transfers. Holds the callers that wait for its end.
        case closing([CheckedContinuation<Void, Never>])
        case closed
    }

    /// - Parameter bell: nil where no thread is to be woken.
    init(configuration: DownloadConfiguration, bell: Bell?) {
        state = Mutex(
            State(
                queue: WaitingQueue(limits: configuration.hostLimits, parking: configuration.parking),
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
    /// How long an idle queue waits for the rest of a group, so that the first of them starts first and not the one
    /// whose task happened to run first.
    private static let gathering = Duration.milliseconds(3)

    func nextID() -> UInt64 {
        state.withLock {
            $0.lastID += 1
            return $0.lastID
        }
    }

    /// - Parameter isCancelled: asked once the transfer can be found by ``cancel(_:)``, so that no cancellation falls
    ///   between the two.
    func submit(_ queued: QueuedTransfer, isCancelled: () -> Bool) {
        let isAccepted = state.withLock { state in
            guard case .open = state.phase, state.settlingSince == nil else { return false }
            // The next hop of a redirect comes alone.
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

    /// Cancels what waits at once and tells the thread about what runs. An unknown id has ended already.
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

    /// A transfer that paused for want of room may go on.
    func hasRoom(_ id: UInt64) {
        state.withLock { state in
            guard state.running[id] != nil else { return }
            state.withRoom.append(id)
            state.ring()
        }
    }

    func settle() {
        let transfers = state.withLock { state in
            state.settlingSince = state.settlingSince ?? .now
            // The thread has to look for those that get nothing.
            state.ring()
            return state.queue.removeWaiting()
        }
        for queued in transfers { queued.answer(.failed(.stopped())) }
    }

    /// Sends away what waits at hosts that are blocked for longer than `time` yet, or were given up.
    func sendAwayBlocked(longerThan time: Duration) {
        let transfers = state.withLock { $0.queue.removeHopeless(longerThan: time, now: .now) }
        for queued in transfers { queued.answer(.crowded(queued.host)) }
    }

    /// Sends away what waits at the hosts where more than `limit` do.
    func shed(over limit: Int) -> Int {
        let transfers = state.withLock { $0.queue.shed(over: limit) }
        for queued in transfers { queued.answer(.crowded(queued.host)) }
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
                running: $0.running.count, silent: $0.silent, waiting: $0.queue.count, room: max(0, $0.room),
                unconsumed: $0.unconsumed, bytes: $0.bytes, saved: $0.saved)
        }
    }

    func close() {
        state.withLock { $0.close() }
    }

    /// Returns once the thread has ended and everything of curl's is freed.
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
    /// Wakes the thread, once for any number of reasons.
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

/// Wakes the thread out of `curl_multi_poll`.
///
/// Unchecked: `curl_multi_wakeup` may be called from any thread as long as the handle lives, and the scheduler forgets
/// its bell, under its lock, before the handle is freed. See https://curl.se/libcurl/c/curl_multi_wakeup.html
struct Bell: @unchecked Sendable {
    let multi: UnsafeMutableRawPointer

    func ring() { curl_multi_wakeup(multi) }
}
