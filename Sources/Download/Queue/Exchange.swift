import CCurl
import Synchronization

/// What callers and the curl thread share: the queue, the counts, and the bell that wakes the thread.
///
/// Everything lies behind one lock that is only held for moments; answers are given outside it.
final class Exchange: Sendable {
    let state: Mutex<State>

    struct State {
        var queue: WaitingQueue
        var concurrency: Int
        /// What this worker has of ``concurrency`` where others have some as well; nil for all.
        var share: Int?
        /// A transfer starts only while running ones and unconsumed bodies are fewer.
        var maxUnconsumed: Int
        /// What that is over the places; it stays so when there are more or fewer of them.
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
        /// No more requests; the thread is failing what it has. Holds who waits for its end.
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

// What callers do.
extension Exchange {
    /// How long an idle queue waits for the rest of a group, so that the first of them starts first and not the one
    /// whose task happened to run first.
    private static let gathering = Duration.milliseconds(3)

    func nextID() -> UInt64 {
        state.withLock {
            $0.lastID += 1
            return $0.lastID
        }
    }

    /// - Parameter isCancelled: asked once the ticket can be found by ``cancel(_:)``, so that no cancellation falls
    ///   between the two.
    func submit(_ ticket: Ticket, isCancelled: () -> Bool) {
        let isAccepted = state.withLock { state in
            guard case .open = state.phase, state.settlingSince == nil else { return false }
            // The next hop of a redirect comes alone.
            if state.queue.count == 0, state.running.isEmpty, ticket.hop.redirects == 0 {
                state.gatherUntil = .now + Self.gathering
            }
            state.queue.insert(ticket)
            guard !isCancelled() else { return state.queue.remove(ticket.id) == nil }
            state.ring()
            return true
        }
        if !isAccepted { ticket.answer(.failed(.cancelled)) }
    }

    /// Cancels what waits at once and tells the thread about what runs. An unknown id has ended already.
    func cancel(_ id: UInt64) {
        let waiting: Ticket? = state.withLock { state in
            if let ticket = state.queue.remove(id) { return ticket }
            guard state.running[id] != nil else { return nil }
            state.cancelled.append(id)
            state.ring()
            return nil
        }
        waiting?.answer(.failed(.cancelled))
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
        let tickets = state.withLock { state in
            state.settlingSince = state.settlingSince ?? .now
            // The thread has to look for those that get nothing.
            state.ring()
            return state.queue.removeWaiting()
        }
        for ticket in tickets { ticket.answer(.failed(.cancelled)) }
    }

    /// Sends away what waits at hosts that are blocked for longer than `time` yet, or were given up.
    func sendAwayBlocked(longerThan time: Duration) {
        let tickets = state.withLock { $0.queue.removeHopeless(longerThan: time, now: .now) }
        for ticket in tickets { ticket.answer(.failed(.crowded(ticket.host))) }
    }

    /// Sends away what waits at the hosts where more than `limit` do.
    func shed(over limit: Int) -> Int {
        let tickets = state.withLock { $0.queue.shed(over: limit) }
        for ticket in tickets { ticket.answer(.failed(.crowded(ticket.host))) }
        return tickets.count
    }

    func update(priority: Int, rank: Int64, for name: Int64) {
        state.withLock {
            $0.queue.update(priority: priority, rank: rank, for: name)
            $0.ring()
        }
    }

    func block(_ host: String, until: ContinuousClock.Instant, _ reason: HostBlock) {
        state.withLock {
            $0.queue.block(host, until: until, reason)
            $0.ring()
        }
    }

    func restore(_ host: String, window: Double?, parks: Int) {
        state.withLock { $0.queue.restore(host, window: window, parks: parks) }
    }

    func blocked(_ host: String) -> (until: ContinuousClock.Instant, reason: HostBlock)? {
        state.withLock { $0.queue.blocked(host) }
    }

    func adopt(_ host: String, _ silence: HostSilence) {
        let now = ContinuousClock.now
        let failure = DownloadFailure(silence.failure, silence.message, host: host)
        state.withLock { $0.queue.adopt(host, since: now - silence.since, last: now - silence.last, failure) }
    }

    func noteAnswered(_ host: String) { state.withLock { $0.queue.noteAnswered(host) } }

    func givenUp(_ host: String) -> HostSilence? { state.withLock { $0.queue.givenUp(host, now: .now) } }

    func waits(longerThan time: Duration) -> [DownloadWait] {
        state.withLock { $0.queue.waits(longerThan: time, now: .now) }
    }

    func setShares(concurrency: Int?, hosts: [String: HostShare]?) {
        state.withLock {
            $0.share = concurrency
            $0.queue.setShares(hosts)
            $0.ring()
        }
    }

    var holdsBack: Bool { state.withLock { $0.queue.holdsBack } }

    func snapshots() -> [HostSnapshot] { state.withLock { $0.queue.snapshots(now: .now) } }

    func setLimits(concurrency: Int, limits: HostLimits, special: [String: HostLimits]) {
        state.withLock {
            $0.concurrency = concurrency
            if $0.headRoom > 0 { $0.maxUnconsumed = concurrency + $0.headRoom }
            $0.queue.setLimits(limits, special: special)
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

extension Exchange.State {
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
/// Unchecked: `curl_multi_wakeup` may be called from any thread as long as the handle lives, and the exchange forgets
/// its bell, under its lock, before the handle is freed. See https://curl.se/libcurl/c/curl_multi_wakeup.html
struct Bell: @unchecked Sendable {
    let multi: UnsafeMutableRawPointer

    func ring() { curl_multi_wakeup(multi) }
}
