import Core
import Synchronization

// Calls from the curl thread.
extension DownloadScheduler {
    /// The thread's next work.
    struct Work {
        var starts: [QueuedTransfer] = []
        /// Those that waited for room on the disk.
        var withRoom: [UInt64] = []
        var cancelled: [UInt64] = []
        var isClosing = false
        /// When there will be something to do even if nothing happens before.
        var nextRelease: ContinuousClock.Instant?
        /// Whether requests wait for a slot.
        var isCrowded = false
        /// Since when no more is wanted than what runs.
        var settlingSince: ContinuousClock.Instant?
    }

    func takeWork(now: ContinuousClock.Instant) -> Work {
        state.withLock { state in
            state.isRung = false
            var work = Work()
            work.settlingSince = state.settlingSince
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
            // Even where nothing can start: the thread would be woken for a time that is over, again and again.
            state.queue.release(now)
            state.noteTurnover()
            while state.room > 0, let queued = state.queue.start(now: now, room: state.room) {
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

    /// - Parameter pause: how long the host asked to be left alone. Nothing that waits may start in between.
    func finished(_ id: UInt64, _ signal: HostSignal, withBody: Bool, pause: Duration? = nil) {
        state.withLock { state in
            guard let ended = state.running.removeValue(forKey: id) else { return }
            if ended.isSilent { state.changeSilent(ended.host, by: -1) }
            if withBody { state.unconsumed += 1 }
            if let pause, pause > .zero { state.queue.block(ended.host, until: .now + pause, .asked) }
            state.queue.finished(host: ended.host, signal, start: ended.start, now: .now)
        }
    }

    /// How long a transfer has had nothing to tell.
    struct Quiet {
        let time: Duration
        /// Whether it has never told anything.
        let isNew: Bool

        func isSilent(hasNeverResponded: Bool, patience: Duration) -> Bool {
            time >= (isNew && hasNeverResponded ? patience / DownloadScheduler.newHostPatienceDivisor : patience)
        }
    }

    /// So much less patience there is with a host that has never answered: a slow one shows itself with its first
    /// requests, when it may hold all places.
    static let newHostPatienceDivisor = 8

    /// Marks transfers that stalled, and those that got bytes again.
    ///
    /// - Returns: whether some of them are the first of a host that hasn't answered yet.
    func markStalled(_ quiet: [UInt64: Quiet], patience: Duration) -> Bool {
        state.withLock { state in
            var hasUnansweredHosts = false
            for (id, quiet) in quiet {
                guard let running = state.running[id] else { continue }
                let hasNeverResponded = state.queue.hasNeverResponded(running.host)
                let isSilent = quiet.isSilent(hasNeverResponded: hasNeverResponded, patience: patience)
                if hasNeverResponded, !isSilent { hasUnansweredHosts = true }
                guard running.isSilent != isSilent else { continue }
                state.running[id]?.isSilent = isSilent
                state.changeSilent(running.host, by: isSilent ? 1 : -1)
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

    /// The thread's last word: fails what still waits, silences the bell, wakes those in ``closeAndWait()``.
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

    /// Called before curl's handle is freed: from now on the bell isn't rung.
    func silence() {
        state.withLock { $0.bell = nil }
    }
}

extension DownloadScheduler.State {
    /// Stalled transfers leave their slots to others, up to this many times the concurrency.
    private static let maxSilentFactor = 8

    /// Transfers at once, of this worker.
    private var places: Int { max(0, min(concurrency, share ?? .max)) }

    /// Places that are free.
    var room: Int { min(places - loud, spare) }

    /// Transfers that hold a slot.
    private var loud: Int { running.count - silent }

    /// Transfers for which there is memory.
    private var spare: Int {
        guard running.count < Self.maxSilentFactor * places + 64 else { return 0 }
        return maxUnconsumed - loud - unconsumed
    }

    /// No slot must have become free for so long before more transfers are allowed.
    private static let overcommitAfter = Duration.seconds(1)

    fileprivate mutating func noteTurnover() {
        if loud < places { fullSince = nil }
    }

    /// Whether a host of which nothing runs gets a place beyond the concurrency. A host that goes on talking, however
    /// slowly, may hold all places for as long as a transfer may take.
    fileprivate mutating func allowsOvercommit(_ now: ContinuousClock.Instant) -> Bool {
        guard places > 0, loud >= places else { return false }
        let since = fullSince ?? now
        fullSince = since
        return now - since >= Self.overcommitAfter && loud < places + max(1, places / 2) && spare > 0
    }

    fileprivate mutating func began(_ queued: QueuedTransfer, _ now: ContinuousClock.Instant) {
        // A host that keeps others waiting is taken to do so again, so that its next requests take no place either.
        let isSilent = queue.isSilent(queued.host)
        running[queued.id] = DownloadScheduler.Running(host: queued.host, start: now, isSilent: isSilent)
        if isSilent { changeSilent(queued.host, by: 1) }
    }

    fileprivate mutating func changeSilent(_ host: String, by change: Int) {
        silent += change
        queue.changeSilent(host, by: change)
    }
}
