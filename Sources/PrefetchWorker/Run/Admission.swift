internal import Download
internal import Jobs
internal import Synchronization

/// Decides which items a worker claims: how many, of which jobs, and when suspects (items that were active when a
/// worker died) run.
final class Admission: Sendable {
    /// Items that have not reached the publisher: enough that no download slot waits for the database, few enough that
    /// an urgent job need not wait for long.
    static let target = 256
    /// Milliseconds between two lookups of jobs that are more urgent than all items in flight.
    static let urgentEvery: Int64 = 20
    /// Maximum items in flight if most of them wait for busy or blocked hosts while other hosts could be served.
    static let ceiling = 4_096
    /// How long download slots must be free before the worker claims beyond `target`.
    static let patience = Duration.milliseconds(250)
    /// One claim of this many takes from the oldest job, so that an endless stream of urgent jobs starves none.
    static let claimsPerElder = 16
    static let group = 64
    /// Items of a crowded host that a worker keeps in flight.
    static let atHand = 256

    /// The next claim.
    enum Turn {
        case nothing
        case next(limit: Int, eldest: Bool, StalledJobPolicy)
        /// Only items that are more urgent than all items in flight.
        case urgent(above: Precedence, StalledJobPolicy)
        /// Only suspects with this many deaths, apart from all other items.
        case suspects(deaths: Int)
    }

    let tasks: InFlightItems
    private let downloader: Downloader
    private let concurrency: Int
    /// Maximum items in flight, including those that wait for the publisher: a few groups of it. Each item has open
    /// files, so the number is lower if the process may open few files.
    private let maxUnwritten = max(target, min(4 * Publisher.groupItems, DescriptorLimit.current / 8))
    /// Items that have not reached the publisher.
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

    // MARK: - Items in flight

    func began(_ item: ClaimedItem) { making.began(item.job) }

    /// The item has reached the publisher.
    func cameThrough(_ item: ClaimedItem) { making.cameThrough(item.job) }

    /// Items in flight, including those at the publisher, without the unfinished items of stalled jobs.
    var countInMotion: Int { tasks.count - (making.count - making.countInMotion) }

    /// Whether another group may be claimed. Items of stalled jobs and items at the publisher do not count toward
    /// `target`; otherwise the worker would run short whenever the database is busy for a moment.
    var hasRoom: Bool {
        making.countInMotion + Self.group <= Self.target && tasks.count + Self.group <= maxUnwritten
    }

    /// How many items may be in flight together with suspects.
    var caution: Caution {
        Caution(
            // An item that waits for a host without an answer does nothing that could kill a worker.
            inFlight: countInMotion, hasSuspects: tasks.hasSuspects,
            window: max(Suspicion.window(deaths: 1), 2 * concurrency))
    }

    // MARK: - Turns

    /// The next claim.
    func turn() -> Turn {
        let inFlight = tasks.count
        if suspects.holdsBack(inFlight: inFlight) {
            // Items that wait for their hosts go back to the queue, so that the suspects' turn comes when the running
            // items have ended.
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
                    making.stuck(), otherwise: isStarving ? .least : making.count < Self.target ? .asUsual : .nothing))
        }
        if inFlight + Self.group > Self.ceiling, isStarving, downloader.shed(over: Self.atHand) > 0 { return .nothing }
        guard inFlight < maxUnwritten + Self.target, takeUrgentTurn(), let lowest = tasks.lowestPrecedence else {
            return .nothing
        }
        // More items of a stalled job are not urgent just because an item of a later job is in flight.
        return .urgent(above: lowest, StalledJobPolicy(making.stuck(), otherwise: .nothing))
    }

    /// Limits lookups in the database; otherwise every item that ends would cause one.
    private func takeUrgentTurn() -> Bool {
        let now = monotonicMilliseconds()
        guard now - lookedForUrgent.load(ordering: .relaxed) >= Self.urgentEvery else { return false }
        lookedForUrgent.store(now, ordering: .relaxed)
        return true
    }

    /// Whether download slots are free although items wait: their hosts are at their limit or blocked.
    ///
    /// A slot must be free for `patience`, since a claim takes a while to reach the downloader.
    private var isStarving: Bool {
        let counts = downloader.counts
        let isIdle = counts.waiting > 0 && counts.freeSlots > 0
        return starving.withLock { since in
            since = isIdle ? since ?? .now : nil
            return since.map { .now - $0 >= Self.patience } ?? false
        }
    }

    // MARK: - Suspects

    /// Whether to look in the database for suspects: once a second.
    func takeSuspectLook() -> Bool { suspects.isTimeToLook() }

    /// - Parameter deaths: the fewest deaths among suspects; nil if there are none.
    func foundSuspects(_ deaths: Int?) { suspects.found(deaths) }

    /// The claim of suspects; only if nothing else is in flight.
    func suspectsTurn() -> Turn {
        guard tasks.count == 0, let deaths = suspects.next() else { return .nothing }
        return .suspects(deaths: deaths)
    }

    func suspectsBegan() { suspects.began() }
}

/// Counts a worker's items in flight by job, and recognises stalled jobs.
///
/// Without it, the items of one unresponsive host would fill the worker while items of other hosts wait in the
/// database.
final class InFlightCounts: Sendable {
    /// A job can be stalled only with this many items in flight.
    static let enough = 128
    /// A job is not stalled if its last item reached the publisher less than this ago, in milliseconds.
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

    /// Items without those of stalled jobs.
    var countInMotion: Int { count - stuck().values.reduce(0, +) }

    /// The stalled jobs, and the number of their items.
    func stuck(at now: Int64 = monotonicMilliseconds()) -> [JobID: Int] {
        state.withLock { state in
            guard state.count >= Self.enough else { return [:] }
            return state.jobs.filter { _, entry in
                entry.count >= Self.enough && entry.movedAt.map { now - $0 > Self.moving } ?? true
            }.mapValues(\.count)
        }
    }
}
