internal import Download
internal import Jobs
internal import Logging
internal import Synchronization

/// Claims items and sets them on their way, never more than the stages behind it can hold.
final class ClaimLoop: Sendable {
    /// Items that aren't yet with the publisher: enough that no download slot waits for the database, few enough that an
    /// urgent job isn't late.
    static let target = 256
    /// The same, with those that wait to be written down: what a few groups of the publisher hold. Each has files open, and
    /// where few may be, fewer are held.
    let mostUnwritten = max(target, min(4 * Publisher.groupItems, DescriptorLimit.current / 8))
    /// Milliseconds between two looks for jobs that are more urgent than all that is in hand.
    static let urgentEvery: Int64 = 20
    /// Items in flight when most of them wait for hosts that are busy or blocked while other hosts could be served.
    static let ceiling = 4_096
    /// How long places must be free before that counts.
    static let patience = Duration.milliseconds(250)
    /// One claim of so many takes from the oldest job, so that an endless stream of urgent ones stops nobody.
    static let claimsPerElder = 16
    static let group = 64

    private let store: JobStore
    private let pipeline: Pipeline
    private let downloader: Downloader
    private let disk: DiskWatch
    private let probe: DiskProbe
    private let tasks: ItemTasks
    private let statistics: RunStatistics
    private let wakeup: Wakeup
    private let stop: StopSignal
    private let worker: Int64
    private let concurrency: Int
    private let order: ExecutionOrder
    private let drains: Bool
    private let logger: Logger
    private let starving = Mutex<ContinuousClock.Instant?>(nil)
    private let claims = Atomic(0)
    /// Items that aren't yet with the publisher.
    private let making = JobsInHand()
    private let lookedForUrgent = Atomic<Int64>(0)
    private let lastFault = Mutex<JobsError?>(nil)
    private let suspects = SuspectTurns()
    private let drainWatch: DrainWatch
    private let fileLookedAt = Atomic<Int64>(0)

    init(
        pipeline: Pipeline, probe: DiskProbe, tasks: ItemTasks, statistics: RunStatistics, wakeup: Wakeup,
        stop: StopSignal,
        worker: Int64, concurrency: Int, order: ExecutionOrder, drains: Bool, logger: Logger,
    ) {
        store = pipeline.store
        downloader = pipeline.downloader
        disk = pipeline.disk
        self.probe = probe
        self.pipeline = pipeline
        self.tasks = tasks
        self.statistics = statistics
        self.wakeup = wakeup
        self.stop = stop
        self.worker = worker
        self.concurrency = concurrency
        self.order = order
        self.drains = drains
        self.logger = logger
        drainWatch = DrainWatch(store: pipeline.store, logger: logger)
    }

    /// Runs until a stop is asked for or, when draining, nothing is left.
    func run() async throws(WorkerError) -> RunEnd {
        var plans = PlanCache()
        while true {
            if stop.isRequested { return .stopped }
            if let failure = pipeline.publisher.failure { throw WorkerError(failure) }
            try checkFile()
            let trouble = disk.trouble()
            if let trouble {
                if drains, tasks.count == 0, await hasNothingToDo() { return .drained }
                if disk.announce() {
                    logger.error("The worker pauses until the disk lets it work.", metadata: ["reason": "\(trouble)"])
                }
                let wasTried = await probe.act()
                if drains, wasTried, tasks.count == 0, try isHopeless() { return .disk(trouble) }
                if wasTried, !disk.isInTrouble { continue }
            }
            if trouble == nil { try await lookForSuspects() }
            var claimed = trouble == nil ? try await claimSome(&plans) : 0
            if claimed == 0, trouble == nil, tasks.count == 0 { claimed = try await claimSuspects(&plans) }
            if claimed > 0 || tasks.count > 0 { drainWatch.isBusy() }
            if claimed == 0 {
                if trouble == nil, tasks.count == 0, disk.rests() { disk.sayItWorks(logger) }
                if drains, trouble == nil, tasks.count == 0, try await isDrained() { return .drained }
                await wakeup.wait()
            }
        }
    }

    /// A second at most after the database's file was deleted or replaced, the run ends.
    private func checkFile() throws(WorkerError) {
        let now = monotonicMilliseconds()
        guard now - fileLookedAt.load(ordering: .relaxed) >= 1_000 else { return }
        fileLookedAt.store(now, ordering: .relaxed)
        do { try store.checkFile() } catch { throw WorkerError(error) }
    }

    /// Whether a draining run gives up: nothing is in flight, and the disk still doesn't work, or does so only until
    /// something is written.
    private func isHopeless() throws(WorkerError) -> Bool {
        guard disk.trouble() != nil || disk.relapses > 8 else { return false }
        if let fault, fault.code != .diskFull, fault.code != .busy { throw WorkerError(fault) }
        return true
    }

    /// What the database failed with last, as long as nothing has worked since.
    private var fault: JobsError? {
        get { lastFault.withLock { $0 } }
        set { lastFault.withLock { $0 = newValue } }
    }

    /// - Returns: how many items were claimed.
    private func claimSome(_ plans: inout PlanCache) async throws(WorkerError) -> Int {
        let inFlight = tasks.count
        if suspects.holdsBack(inFlight: inFlight) {
            // What waits for its host goes back, so that the turn comes as soon as what is at work has ended.
            if !suspects.isTurn { _ = downloader.shed(over: 0) }
            return 0
        }
        do throws(JobsError) {
            let claim: Claim
            let isStarving = isStarving
            if hasRoom || (inFlight + Self.group <= Self.ceiling && isStarving) {
                let turn = claims.wrappingAdd(1, ordering: .relaxed).newValue
                let room = max(Self.group, (Self.target - making.countInMotion) / 2)
                claim = try await store.claim(
                    limit: room, worker: worker, order: order, eldest: turn % Self.claimsPerElder == 0,
                    sparing: JobStore.Sparing(
                        making.stuck(), otherwise: isStarving ? .least : making.count < Self.target ? .asEver : .nothing
                    ), caution: caution)
            } else if inFlight + Self.group > Self.ceiling, isStarving, downloader.shed(over: HostKeeper.atHand) > 0 {
                return 0
            } else if inFlight < mostUnwritten + Self.target, isTimeForUrgent, let lowest = tasks.lowestPrecedence {
                // Of what doesn't move, more is not urgent because something of a later job is on its way.
                claim = try await store.claim(
                    limit: Self.group, worker: worker, order: order, above: lowest,
                    sparing: JobStore.Sparing(making.stuck(), otherwise: .nothing), caution: caution)
            } else {
                return 0
            }
            try await start(claim, &plans)
            fault = nil
            return claim.items.count
        } catch {
            return try pause(after: error)
        }
    }

    /// Once a second, whatever else there is to do: items that wait for their turn get it after a while.
    private func lookForSuspects() async throws(WorkerError) {
        guard suspects.isTimeToLook() else { return }
        do {
            suspects.found(try await store.leastSuspicion())
        } catch {
            _ = try pause(after: error)
        }
    }

    /// Claims items that several workers died of, when nothing else is in flight.
    ///
    /// - Returns: how many.
    private func claimSuspects(_ plans: inout PlanCache) async throws(WorkerError) -> Int {
        do throws(JobsError) {
            guard let deaths = suspects.next() else { return 0 }
            let claim = try await store.claimSuspects(deaths: deaths, worker: worker, order: order)
            guard !claim.items.isEmpty else {
                suspects.found(nil)
                return 0
            }
            suspects.began()
            logger.warning(
                "\(claim.items.count) items run apart from others, since \(deaths) workers died while they held them.")
            try await start(claim, &plans)
            return claim.items.count
        } catch {
            return try pause(after: error)
        }
    }

    /// How many items may be in flight beside those that were active when a worker died.
    private var caution: Caution {
        Caution(
            // What waits for a host that doesn't answer does nothing that could end a worker.
            inFlight: countInMotion, hasSuspects: tasks.hasSuspects,
            window: max(Suspicion.window(deaths: 1), 2 * concurrency))
    }

    /// Items in flight, those handed to the publisher included, without those that don't move.
    var countInMotion: Int { tasks.count - (making.count - making.countInMotion) }

    /// What doesn't move takes no room from what does: it would run short each time the database is busy for a moment.
    private var hasRoom: Bool {
        making.countInMotion + Self.group <= Self.target && tasks.count + Self.group <= mostUnwritten
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
    /// A place that is free for a moment is none: it takes a while until a claim has reached the downloader.
    private var isStarving: Bool {
        let counts = downloader.counts
        let isIdle = counts.waiting > 0 && counts.room > 0
        return starving.withLock { since in
            since = isIdle ? since ?? .now : nil
            return since.map { .now - $0 >= Self.patience } ?? false
        }
    }

    private func start(_ claim: Claim, _ plans: inout PlanCache) async throws(JobsError) {
        statistics.saw(jobs: claim.jobs.keys)
        var usable: [JobID: JobPlan] = [:]
        for job in claim.jobs.values {
            switch plans.plan(for: job) {
            case .success(let plan): usable[job.id] = plan
            case .failure(let error):
                logger.error("Job \(job.id) can't be run.", metadata: ["error": "\(error.message)"])
                try await store.fail(job: job.id, error: error.message)
            }
        }
        for item in claim.items {
            guard let plan = usable[item.job] else { continue }
            making.began(item.job)
            tasks.start(item, precedence: plan.definition.precedence) { [self] in
                let ending = await pipeline.process(item, plan) {
                    making.cameThrough(item.job)
                    if hasRoom { wakeup.ring() }
                }
                statistics.count(ending)
                if hasRoom { wakeup.ring() }
            }
        }
    }

    /// Whether the queue is empty, so that the disk's trouble stops nothing.
    private func hasNothingToDo() async -> Bool {
        // A database that can't be asked is looked at by the probe.
        do { return try await store.backlog().isEmpty } catch _ { return false }
    }

    private func isDrained() async throws(WorkerError) -> Bool {
        do {
            if try await store.backlog().isEmpty { return true }
            try await drainWatch.isIdle(worker: worker)
            return false
        } catch {
            return try pause(after: error) > 0
        }
    }

    /// A disk that is full or fails, and a peer that hogs the lock, pass; a damaged database doesn't.
    private func pause(after error: JobsError) throws(WorkerError) -> Int {
        guard error.mayPass else { throw WorkerError(error) }
        fault = error
        disk.report(error.message)
        return 0
    }
}

/// How a run came to its end.
enum RunEnd: Sendable {
    case drained
    case stopped
    case disk(String)
}

/// Jobs as they were parsed last; a changed row is parsed anew.
private struct PlanCache {
    private var plans: [JobDefinition: Result<JobPlan, JobPlanError>] = [:]

    mutating func plan(for job: JobDefinition) -> Result<JobPlan, JobPlanError> {
        if let plan = plans[job] { return plan }
        if plans.count >= 1_000 { plans.removeAll() }
        let plan: Result<JobPlan, JobPlanError>
        do throws(JobPlanError) {
            plan = .success(try JobPlan(job))
        } catch {
            plan = .failure(error)
        }
        plans[job] = plan
        return plan
    }
}
