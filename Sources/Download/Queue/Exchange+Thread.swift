import Synchronization

// What the thread does.
extension Exchange {
    /// What the thread is to do next.
    struct Work {
        var starts: [Ticket] = []
        /// Those that waited for room on the disk.
        var withRoom: [UInt64] = []
        var cancelled: [UInt64] = []
        var isClosing = false
        /// When there will be something to do even if nothing happens before.
        var nextRelease: ContinuousClock.Instant?
        /// Whether somebody waits for a place.
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
            while state.room > 0, let ticket = state.queue.start(now: now, room: state.room) {
                state.began(ticket, now)
                work.starts.append(ticket)
            }
            while state.takesGuests(now), let ticket = state.queue.start(now: now, isGuest: true) {
                state.began(ticket, now)
                work.starts.append(ticket)
            }
            work.nextRelease = state.queue.nextRelease
            work.isCrowded = state.queue.count > 0
            return work
        }
    }

    /// - Parameter pause: how long the host asked to be left alone. Nothing that waits may start in between.
    func finished(_ id: UInt64, _ lesson: HostLesson, withBody: Bool, pause: Duration? = nil) {
        state.withLock { state in
            guard let ended = state.running.removeValue(forKey: id) else { return }
            if ended.isSilent { state.changeSilent(ended.host, by: -1) }
            if withBody { state.unconsumed += 1 }
            if let pause, pause > .zero { state.queue.block(ended.host, until: .now + pause, .asked) }
            state.queue.finished(host: ended.host, lesson, start: ended.start, now: .now)
        }
    }

    /// How long a transfer has had nothing to tell.
    struct Quiet {
        let time: Duration
        /// Whether it has never told anything.
        let isNew: Bool

        func isSilent(isStranger: Bool, patience: Duration) -> Bool {
            time >= (isNew && isStranger ? patience / Exchange.patienceWithStrangers : patience)
        }
    }

    /// So much less patience there is with a host that has never answered: a slow one shows itself with its first requests,
    /// when it may hold all places.
    static let patienceWithStrangers = 8

    /// Takes note of which transfers fell silent, or speak again.
    ///
    /// - Returns: whether some of them are the first of a host that hasn't answered yet.
    func hear(_ quiet: [UInt64: Quiet], patience: Duration) -> Bool {
        state.withLock { state in
            var hasStrangers = false
            for (id, quiet) in quiet {
                guard let running = state.running[id] else { continue }
                let isStranger = state.queue.isStranger(running.host)
                let isSilent = quiet.isSilent(isStranger: isStranger, patience: patience)
                if isStranger, !isSilent { hasStrangers = true }
                guard running.isSilent != isSilent else { continue }
                state.running[id]?.isSilent = isSilent
                state.changeSilent(running.host, by: isSilent ? 1 : -1)
            }
            return hasStrangers
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
    /// Silent transfers leave their places to others, up to this many times the concurrency.
    private static let mostSilent = 8

    /// Transfers at once, of this worker.
    private var places: Int { max(0, min(concurrency, share ?? .max)) }

    /// Places that are free.
    var room: Int { min(places - loud, spare) }

    /// What holds a place.
    private var loud: Int { running.count - silent }

    /// Transfers for which there is memory.
    private var spare: Int {
        guard running.count < Self.mostSilent * places + 64 else { return 0 }
        return maxUnconsumed - loud - unconsumed
    }

    /// So long nothing has to come free before others are let in.
    private static let guestsWait = Duration.seconds(1)

    fileprivate mutating func noteTurnover() {
        if loud < places { fullSince = nil }
    }

    /// Whether a host of which nothing runs gets a place beyond the concurrency. A host that goes on talking, however slowly,
    /// may hold all places for as long as a transfer may take.
    fileprivate mutating func takesGuests(_ now: ContinuousClock.Instant) -> Bool {
        guard places > 0, loud >= places else { return false }
        let since = fullSince ?? now
        fullSince = since
        return now - since >= Self.guestsWait && loud < places + max(1, places / 2) && spare > 0
    }

    fileprivate mutating func began(_ ticket: Ticket, _ now: ContinuousClock.Instant) {
        // A host that keeps others waiting is taken to do so again, so that its next requests take no place either.
        let isSilent = queue.isSilent(ticket.host)
        running[ticket.id] = Exchange.Running(host: ticket.host, start: now, isSilent: isSilent)
        if isSilent { changeSilent(ticket.host, by: 1) }
    }

    fileprivate mutating func changeSilent(_ host: String, by change: Int) {
        silent += change
        queue.changeSilent(host, by: change)
    }
}
