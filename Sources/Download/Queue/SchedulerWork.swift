import Core
import Synchronization

// Calls from the curl thread.
extension DownloadScheduler {
    /// The thread's next work.
    struct Work {
        var starts: [QueuedTransfer] = []
        /// Transfers that waited for disk space and may resume.
        var withRoom: [UInt64] = []
        var cancelled: [UInt64] = []
        var isClosing = false
        /// The next time at which a request may start without another event.
        var nextRelease: ContinuousClock.Instant?
        /// Whether requests wait for a slot.
        var isCrowded = false
        /// Since when the downloader has been settling.
        var drainingSince: ContinuousClock.Instant?
    }

    func takeWork(now: ContinuousClock.Instant) -> Work {
        state.withLock { state in
            state.isRung = false
            var work = Work()
            work.drainingSince = state.drainingSince
            swap(&work.cancelled, &state.cancelled)
            swap(&work.withRoom, &state.withRoom)
            guard case .open = state.phase else {
                work.isClosing = true
                return work
            }
            if let until = state.gatherUntil, now < until {
                work.nextRelease = until
                return work
            }
            state.gatherUntil = nil
            // Needed even if no request can start: otherwise a time that is over would wake the thread again and again.
            state.queue.release(now)
            state.noteTurnover()
            guard state.lease.allowsStarts(now, isSharing: state.share != nil) else {
                work.isCrowded = state.queue.count > 0
                return work
            }
            while state.freeSlots > 0, let queued = state.queue.start(now: now, freeSlots: state.freeSlots) {
                state.began(queued, now)
                work.starts.append(queued)
            }
            while state.allowsOvercommit(now), let queued = state.queue.start(now: now, isOvercommit: true) {
                state.began(queued, now)
                work.starts.append(queued)
            }
            work.nextRelease = state.queue.nextRelease
            work.isCrowded = state.queue.count > 0
            return work
        }
    }

    /// Whether a request that was started may be sent; see ``ShareLease/allowsSending(_:isSharing:)``.
    func allowsSending(now: ContinuousClock.Instant) -> Bool {
        state.withLock { $0.lease.allowsSending(now, isSharing: $0.share != nil) }
    }

    /// - Parameter pause: the host's `Retry-After`. The host is blocked before a waiting request could start.
    func finished(_ id: UInt64, _ signal: HostSignal, withBody: Bool, pause: Duration? = nil) {
        state.withLock { state in
            guard let ended = state.running.removeValue(forKey: id) else { return }
            if ended.isStalled { state.changeStalled(ended.host, by: -1) }
            if withBody { state.unconsumed += 1 }
            if let pause, pause > .zero { state.queue.block(ended.host, until: .now + pause, .retryAfter) }
            state.queue.finished(host: ended.host, signal, start: ended.start, now: .now)
        }
    }

    /// How long a transfer has received nothing.
    struct IdleTime {
        let time: Duration
        /// Whether the transfer has never received anything.
        let isNew: Bool

        func isStalled(hasNeverResponded: Bool, patience: Duration) -> Bool {
            time >= (isNew && hasNeverResponded ? patience / DownloadScheduler.newHostPatienceDivisor : patience)
        }
    }

    /// A host that has never answered gets this fraction of the patience, since its first requests may occupy all
    /// slots before it shows itself as slow.
    static let newHostPatienceDivisor = 8

    /// Marks transfers that have stalled, and unmarks those that receive bytes again.
    ///
    /// - Returns: whether some marked transfers are the first of a host that has not answered yet.
    func markStalled(_ idleTimes: [UInt64: IdleTime], patience: Duration) -> Bool {
        state.withLock { state in
            var hasUnansweredHosts = false
            for (id, idleTime) in idleTimes {
                guard let running = state.running[id] else { continue }
                let hasNeverResponded = state.queue.hasNeverResponded(running.host)
                let isStalled = idleTime.isStalled(hasNeverResponded: hasNeverResponded, patience: patience)
                if hasNeverResponded, !isStalled { hasUnansweredHosts = true }
                guard running.isStalled != isStalled else { continue }
                state.running[id]?.isStalled = isStalled
                state.changeStalled(running.host, by: isStalled ? 1 : -1)
            }
            return hasUnansweredHosts
        }
    }

    func received(_ bytes: Int64, saved: Int64) {
        state.withLock {
            $0.bytes = $0.bytes.addingSaturated(bytes)
            $0.saved = $0.saved.addingSaturated(saved)
        }
    }

    /// The thread's last call: fails the waiting requests, drops the bell, and resumes the callers of
    /// ``closeAndWait()``.
    func closed() {
        let (transfers, waiters) = state.withLock { state in
            state.bell = nil
            let waiters =
                if case .closing(let waiters) = state.phase { waiters } else { [CheckedContinuation<Void, Never>]() }
            state.phase = .closed
            return (state.queue.removeAll(), waiters)
        }
        for queued in transfers { queued.answer(.failed(.stopped())) }
        for waiter in waiters { waiter.resume() }
    }

    /// Drops the bell, before curl's handle is freed.
    func silence() {
        state.withLock { $0.bell = nil }
    }
}

extension DownloadScheduler.State {
    /// Stalled transfers leave their slots to others; this many times the concurrency may run in all.
    private static let maxSilentFactor = 8

    /// This worker's limit on transfers at once.
    private var slots: Int { max(0, min(concurrency, share ?? .max)) }

    /// Free slots.
    var freeSlots: Int { min(slots - responding, spare) }

    var isHeldByBodies: Bool { unconsumed > 0 && responding < slots && spare <= 0 }

    /// Transfers that occupy a slot.
    private var responding: Int { running.count - stalled }

    /// How many more transfers the limits on memory allow.
    private var spare: Int {
        guard running.count < Self.maxSilentFactor * slots + 64 else { return 0 }
        return maxUnconsumed - responding - unconsumed
    }

    /// How long all slots must be taken before the scheduler overcommits.
    private static let overcommitAfter = Duration.seconds(1)

    fileprivate mutating func noteTurnover() {
        if responding < slots { fullSince = nil }
    }

    /// Whether a host without a running transfer gets a slot beyond the concurrency. A host that keeps sending slowly
    /// may otherwise occupy all slots until the total timeout.
    fileprivate mutating func allowsOvercommit(_ now: ContinuousClock.Instant) -> Bool {
        guard slots > 0, responding >= slots else { return false }
        let since = fullSince ?? now
        fullSince = since
        return now - since >= Self.overcommitAfter && responding < slots + max(1, slots / 2) && spare > 0
    }

    fileprivate mutating func began(_ queued: QueuedTransfer, _ now: ContinuousClock.Instant) {
        // A host with stalled transfers is expected to stall again, so its next requests occupy no slot either.
        let isStalled = queue.isStalled(queued.host)
        running[queued.id] = DownloadScheduler.Running(host: queued.host, start: now, isStalled: isStalled)
        if isStalled { changeStalled(queued.host, by: 1) }
    }

    fileprivate mutating func changeStalled(_ host: String, by change: Int) {
        stalled += change
        queue.changeStalled(host, by: change)
    }
}
