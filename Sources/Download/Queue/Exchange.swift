import CCurl
import Synchronization

/// One call of ``Downloader/download(_:)``, from its arrival to its answer.
final class Ticket: Sendable {
    let id: UInt64
    let request: DownloadRequest
    let url: DownloadURL
    private let continuation: CheckedContinuation<DownloadOutcome, Never>

    init(
        id: UInt64, request: DownloadRequest, url: DownloadURL,
        continuation: CheckedContinuation<DownloadOutcome, Never>
    ) {
        self.id = id
        self.request = request
        self.url = url
        self.continuation = continuation
    }

    /// The host whose budget this counts against.
    var host: String { url.host }

    func answer(_ outcome: DownloadOutcome) { continuation.resume(returning: outcome) }
}

/// What callers and the curl thread share: the queue, the counts, and the bell that wakes the thread.
///
/// Everything lies behind one lock that is only held for moments; answers are given outside it.
final class Exchange: Sendable {
    private let state: Mutex<State>

    fileprivate struct State {
        var queue: WaitingQueue
        var concurrency: Int
        let maxUnconsumed: Int
        var running: [UInt64: String] = [:]
        var unconsumed = 0
        var bytes: Int64 = 0
        var cancelled: [UInt64] = []
        var lastID: UInt64 = 0
        var phase = Phase.open
        var bell: Bell?
        var isRung = false
        /// Only what runs already may go on.
        var isSettling = false
        /// Nothing starts before; set when something comes to an idle queue.
        var gatherUntil: ContinuousClock.Instant?
    }

    fileprivate enum Phase {
        case open
        /// No more requests; the thread is failing what it has. Holds who waits for its end.
        case closing([CheckedContinuation<Void, Never>])
        case closed
    }

    /// What the thread is to do next.
    struct Work {
        var starts: [Ticket] = []
        var cancelled: [UInt64] = []
        var isClosing = false
        /// When there will be something to do even if nothing happens before.
        var nextRelease: ContinuousClock.Instant?
    }

    init(configuration: DownloadConfiguration, bell: Bell) {
        state = Mutex(
            State(
                queue: WaitingQueue(perHost: configuration.perHost),
                concurrency: configuration.concurrency,
                maxUnconsumed: configuration.maxUnconsumedBodies,
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
            guard case .open = state.phase, !state.isSettling else { return false }
            if state.queue.count == 0, state.running.isEmpty { state.gatherUntil = .now + Self.gathering }
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

    func settle() {
        let tickets = state.withLock { state in
            state.isSettling = true
            return state.queue.removeWaiting()
        }
        for ticket in tickets { ticket.answer(.failed(.cancelled)) }
    }

    func update(priority: Int, rank: Int64, for name: Int64) {
        state.withLock { $0.queue.update(priority: priority, rank: rank, for: name) }
    }

    func block(_ host: String, until: ContinuousClock.Instant) {
        state.withLock {
            $0.queue.block(host, until: until)
            $0.ring()
        }
    }

    func blockedUntil(_ host: String) -> ContinuousClock.Instant? {
        state.withLock { $0.queue.blockedUntil(host) }
    }

    func setLimits(concurrency: Int, perHost: Int) {
        state.withLock {
            $0.concurrency = concurrency
            $0.queue.setPerHost(perHost)
            $0.ring()
        }
    }

    func consumed() {
        state.withLock {
            $0.unconsumed -= 1
            if $0.queue.count > 0 { $0.ring() }
        }
    }

    var counts: (running: Int, waiting: Int, unconsumed: Int, bytes: Int64) {
        state.withLock { ($0.running.count, $0.queue.count, $0.unconsumed, $0.bytes) }
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

// What the thread does.
extension Exchange {
    func takeWork(now: ContinuousClock.Instant) -> Work {
        state.withLock { state in
            state.isRung = false
            var work = Work()
            swap(&work.cancelled, &state.cancelled)
            guard case .open = state.phase else {
                work.isClosing = true
                return work
            }
            if let until = state.gatherUntil, now < until {
                work.nextRelease = until
                return work
            }
            state.gatherUntil = nil
            while state.hasRoom, let ticket = state.queue.start(now: now) {
                state.running[ticket.id] = ticket.host
                work.starts.append(ticket)
            }
            work.nextRelease = state.queue.nextRelease
            return work
        }
    }

    func finished(_ id: UInt64, withBody: Bool) {
        state.withLock { state in
            guard let host = state.running.removeValue(forKey: id) else { return }
            if withBody { state.unconsumed += 1 }
            state.queue.finished(host: host)
        }
    }

    func received(_ bytes: Int64) {
        state.withLock { $0.bytes += bytes }
    }

    /// The thread's last word: fails what still waits, silences the bell, wakes those in ``closeAndWait()``.
    func closed() {
        let (tickets, waiters) = state.withLock { state in
            state.bell = nil
            let waiters =
                if case .closing(let waiters) = state.phase { waiters } else { [CheckedContinuation<Void, Never>]() }
            state.phase = .closed
            return (state.queue.removeAll(), waiters)
        }
        for ticket in tickets { ticket.answer(.failed(.cancelled)) }
        for waiter in waiters { waiter.resume() }
    }

    /// Called before curl's handle is freed: from now on nobody rings.
    func silence() {
        state.withLock { $0.bell = nil }
    }
}

extension Exchange.State {
    fileprivate var hasRoom: Bool {
        running.count < concurrency && running.count + unconsumed < maxUnconsumed
    }

    /// Wakes the thread, once for any number of reasons.
    fileprivate mutating func ring() {
        guard !isRung else { return }
        isRung = true
        bell?.ring()
    }

    fileprivate mutating func close() {
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
