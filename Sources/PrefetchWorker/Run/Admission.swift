internal import Download
internal import Jobs
internal import Synchronization

/// Decides which items a worker takes in hand: how many, of which jobs, and when items that workers have died of have their
/// turn.
final class Admission: Sendable {
    /// Items that aren't yet with the publisher: enough that no download slot waits for the database, few enough that an
    /// urgent job isn't late.
    static let target = 256
    /// Milliseconds between two looks for jobs that are more urgent than all that is in hand.
    static let urgentEvery: Int64 = 20
    /// Items in flight when most of them wait for hosts that are busy or blocked while other hosts could be served.
    static let ceiling = 4_096
    /// How long download slots must be free before that counts.
    static let patience = Duration.milliseconds(250)
    /// One claim of so many takes from the oldest job, so that an endless stream of urgent ones stops nothing.
    static let claimsPerElder = 16
    static let group = 64
    /// Items of a crowded host that a worker keeps at hand.
    static let atHand = 256

    /// The next claim.
    enum Turn {
        case nothing
        case next(limit: Int, eldest: Bool, StalledJobPolicy)
        /// Only items that go before all that are in hand.
        case urgent(above: Precedence, StalledJobPolicy)
        /// Items that so many workers have died of, apart from all others.
        case suspects(deaths: Int)
    }

    let tasks: InFlightItems
    private let downloader: Downloader
    private let concurrency: Int
    /// Items in flight, with those that wait to be written down: what a few groups of the publisher hold. Each has files
    /// open, and where few may be, fewer are held.
    private let mostUnwritten = max(target, min(4 * Publisher.groupItems, DescriptorLimit.current / 8))
    /// Items that aren't yet with the publisher.
    private let making = InFlightCounts()
    private let suspects = SuspectTurns()
    private let claims = Atomic(0)
    private let lookedForUrgent = Atomic<Int64>(0)
    private let starving = Mutex<ContinuousClock.Instant?>(nil)

    init(tasks: InFlightItems, downloader: Downloader, concurrency: Int) {
        self.tasks = tasks
        self.downloader = downloader
        self.concurrency = concurrency
    }

    // MARK: - Items in hand

    func began(_ item: ClaimedItem) { making.began(item.job) }

    /// Only writing the item down is left.
    func cameThrough(_ item: ClaimedItem) { making.cameThrough(item.job) }

    /// Items in flight, those handed to the publisher included, without those that don't move.
    var countInMotion: Int { tasks.count - (making.count - making.countInMotion) }

    /// Whether another group may be claimed. An item that doesn't move takes no room from one that does: the worker would run
    /// short each time the database is busy for a moment.
    var hasRoom: Bool {
        making.countInMotion + Self.group <= Self.target && tasks.count + Self.group <= mostUnwritten
    }

    /// How many items may be in flight beside those that were active when a worker died.
    var caution: Caution {
        Caution(
            // An item that waits for a host that doesn't answer does nothing that could end a worker.
            inFlight: countInMotion, hasSuspects: tasks.hasSuspects,
            window: max(Suspicion.window(deaths: 1), 2 * concurrency))
    }

    // MARK: - Turns

    /// What to claim now.
    func turn() -> Turn {
        let inFlight = tasks.count
        if suspects.holdsBack(inFlight: inFlight) {
            // Items that wait for their host go back, so that the turn comes as soon as those at work have ended.
            if !suspects.isTurn { _ = downloader.shed(over: 0) }
            return .nothing
        }
        let isStarving = isStarving
        if hasRoom || (inFlight + Self.group <= Self.ceiling && isStarving) {
            let turn = claims.wrappingAdd(1, ordering: .relaxed).newValue
            return .next(
                limit: max(Self.group, (Self.target - making.countInMotion) / 2),
                eldest: turn % Self.claimsPerElder == 0,
                StalledJobPolicy(
                    making.stuck(), otherwise: isStarving ? .least : making.count < Self.target ? .asEver : .nothing))
        }
        if inFlight + Self.group > Self.ceiling, isStarving, downloader.shed(over: Self.atHand) > 0 { return .nothing }
        guard inFlight < mostUnwritten + Self.target, isTimeForUrgent, let lowest = tasks.lowestPrecedence else {
            return .nothing
        }
        // Of a job that doesn't move, more is not urgent because an item of a later job is on its way.
        return .urgent(above: lowest, StalledJobPolicy(making.stuck(), otherwise: .nothing))
    }

    /// Whether it is time to ask the database again; every item that ends would else ask it.
    private var isTimeForUrgent: Bool {
        let now = monotonicMilliseconds()
        guard now - lookedForUrgent.load(ordering: .relaxed) >= Self.urgentEvery else { return false }
        lookedForUrgent.store(now, ordering: .relaxed)
        return true
    }

    /// Whether download slots are free although items wait: their hosts are at their limit or asked to be left alone.
    ///
    /// A slot that is free for a moment doesn't count: it takes a while until a claim has reached the downloader.
    private var isStarving: Bool {
        let counts = downloader.counts
        let isIdle = counts.waiting > 0 && counts.room > 0
        return starving.withLock { since in
            since = isIdle ? since ?? .now : nil
            return since.map { .now - $0 >= Self.patience } ?? false
        }
    }

    // MARK: - Suspects

    /// Whether it is time to ask the database for items that workers have died of: once a second.
    var isTimeToLookForSuspects: Bool { suspects.isTimeToLook() }

    /// - Parameter deaths: the fewest deaths among such items; nil where there are none.
    func foundSuspects(_ deaths: Int?) { suspects.found(deaths) }

    /// The turn of such items, which comes when nothing else is in flight.
    func suspectsTurn() -> Turn {
        guard tasks.count == 0, let deaths = suspects.next() else { return .nothing }
        return .suspects(deaths: deaths)
    }

    func suspectsBegan() { suspects.began() }
}

/// How many items a worker has on their way, by job, and which jobs don't move.
///
/// Without it one host that doesn't answer would fill the worker with its items, while the items of other hosts wait in the
/// database.
final class InFlightCounts: Sendable {
    /// So many items of a job that doesn't move are enough.
    static let enough = 128
    /// How long ago the last item of a job that moves has come through, in milliseconds.
    static let moving: Int64 = 1_000

    private struct Entry {
        var count = 0
        var movedAt: Int64?
    }

    private struct State {
        var jobs: [JobID: Entry] = [:]
        var count = 0
    }

    private let state = Mutex(State())

    /// Items of all jobs.
    var count: Int { state.withLock { $0.count } }

    func began(_ job: JobID) {
        state.withLock { state in
            state.jobs[job, default: Entry()].count += 1
            state.count += 1
        }
    }

    func cameThrough(_ job: JobID, at now: Int64 = monotonicMilliseconds()) {
        state.withLock { state in
            state.count -= 1
            guard var entry = state.jobs[job] else { return }
            entry.count -= 1
            entry.movedAt = now
            state.jobs[job] = entry.count > 0 ? entry : nil
        }
    }

    /// Items of jobs that move, or of which there isn't enough yet.
    var countInMotion: Int { count - stuck().values.reduce(0, +) }

    /// The jobs of which there is enough, and how much.
    func stuck(at now: Int64 = monotonicMilliseconds()) -> [JobID: Int] {
        state.withLock { state in
            guard state.count >= Self.enough else { return [:] }
            return state.jobs.filter { _, entry in
                entry.count >= Self.enough && entry.movedAt.map { now - $0 > Self.moving } ?? true
            }.mapValues(\.count)
        }
    }
}
