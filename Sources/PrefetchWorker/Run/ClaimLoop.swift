internal import Core
internal import Jobs
internal import Logging
internal import Synchronization

/// Claims items and starts them, as many as the admission allows.
final class ClaimLoop: Sendable {
    /// The settings of a claim loop.
    struct Options: Sendable {
        let worker: Int64
        /// The order of jobs that name no order.
        let order: ExecutionOrder
        /// Whether the loop ends when no item is left that could still run.
        let drains: Bool
    }

    private let store: JobStore
    private let stages: Stages
    private let admission: Admission
    private let probe: DiskProbe
    private let statistics: RunStatistics
    private let signals: RunSignals
    private let options: Options
    private let logger: Logger

    private let lastFault = Mutex<JobsError?>(nil)
    /// Jobs that can't be run and are not failed yet, with the reasons.
    private let broken = Mutex<[JobID: String]>([:])
    private let drainWatch: DrainWatch
    private let fileLookedAt = Atomic<Int64>(0)

    init(
        store: JobStore, stages: Stages, admission: Admission, probe: DiskProbe, statistics: RunStatistics,
        signals: RunSignals, _ options: (Options, Logger),
    ) {
        self.store = store
        self.stages = stages
        self.admission = admission
        self.probe = probe
        self.statistics = statistics
        self.signals = signals
        (self.options, logger) = options
        drainWatch = DrainWatch(store: store, logger: logger)
    }

    private var tasks: InFlightItems { admission.tasks }
    private var disk: DiskWatch { probe.disk }

    /// Runs until a stop is requested or, when draining, nothing is left.
    func run() async throws(WorkerError) -> RunEnd {
        while true {
            if signals.stop.isRequested { return .stopped }
            if let failure = stages.publisher.failure { throw WorkerError(failure) }
            try await checkFile()
            let trouble = disk.trouble()
            if let trouble {
                if options.drains, tasks.count == 0, await hasNothingToDo() { return .drained }
                if disk.announce() {
                    logger.error("\(DiskWatch.pause)", metadata: ["reason": "\(trouble)"])
                }
                let wasTried = await probe.act()
                if options.drains, wasTried, tasks.count == 0, try isHopeless() { return .disk(trouble) }
                if wasTried, !disk.isInTrouble { continue }
            }
            let claimed = trouble == nil ? try await claim() : 0
            if claimed > 0 || tasks.count > 0 { drainWatch.noteBusy() }
            if claimed == 0 {
                if trouble == nil, tasks.count == 0, disk.rests() { disk.sayItWorks(logger) }
                if options.drains, trouble == nil, tasks.count == 0, try await isDrained() { return .drained }
                await signals.wakeup.wait()
            }
        }
    }

    /// Ends the run within a second after a file of the database was deleted or replaced.
    private func checkFile() async throws(WorkerError) {
        let now = monotonicMilliseconds()
        guard now - fileLookedAt.load(ordering: .relaxed) >= 1_000 else { return }
        fileLookedAt.store(now, ordering: .relaxed)
        do { try await store.database.checkFile() } catch { throw WorkerError(error) }
    }

    /// Whether a draining run with no item in flight gives up: the disk fails, or has failed in test after test.
    private func isHopeless() throws(WorkerError) -> Bool {
        guard disk.trouble() != nil || disk.relapses > 8 else { return false }
        if let fault, fault.code != .diskFull, fault.code != .busy { throw WorkerError(fault) }
        return true
    }

    /// The database's last error; nil once a call has succeeded since.
    private var fault: JobsError? {
        get { lastFault.withLock { $0 } }
        set { lastFault.withLock { $0 = newValue } }
    }

    // MARK: - Claims

    /// - Returns: the number of claimed items.
    private func claim() async throws(WorkerError) -> Int {
        do throws(JobsError) {
            try await failBroken()
            // Independent of other work: suspects get their turn after a while.
            if admission.takeSuspectLook() { admission.foundSuspects(try await store.queue.leastSuspicion()) }
            let claimed = try await claim(admission.turn())
            if claimed > 0 {
                fault = nil
                return claimed
            }
            return try await claim(admission.suspectsTurn())
        } catch {
            return try pause(after: error)
        }
    }

    private func claim(_ turn: Admission.Turn) async throws(JobsError) -> Int {
        let claim: Claim
        switch turn {
        case .nothing:
            return 0
        case .next(let limit, let eldest, let policy):
            claim = try await store.queue.claim(
                limit: limit, worker: options.worker, order: options.order, eldest: eldest, sparing: policy,
                caution: admission.caution)
            fault = nil
        case .urgent(let lowest, let policy):
            claim = try await store.queue.claim(
                limit: Admission.group, worker: options.worker, order: options.order, above: lowest, sparing: policy,
                caution: admission.caution)
            fault = nil
        case .suspects(let deaths):
            claim = try await store.queue.claimSuspects(deaths: deaths, worker: options.worker, order: options.order)
            guard !claim.items.isEmpty else {
                admission.foundSuspects(nil)
                break
            }
            admission.suspectsBegan()
            logger.warning(
                "\(claim.items.count) items run apart from others, since \(deaths) workers died while processing them.")
        }
        for refused in claim.refused {
            statistics.noteRefused(refused.item, of: refused.job, refused.failure, logger)
        }
        start(claim)
        try await failBroken()
        return claim.items.count + claim.refused.count
    }

    private func start(_ claim: Claim) {
        statistics.saw(jobs: claim.jobs.keys)
        var usable: [JobID: JobPlan] = [:]
        for job in claim.jobs.values {
            switch stages.delegate.plans.plan(for: job) {
            case .success(let plan): usable[job.id] = plan
            case .failure(let error):
                logger.error("Job \(job.id) can't be run.", metadata: ["error": "\(error.message)"])
                broken.withLock { $0[job.id] = error.message }
            }
        }
        for item in claim.items {
            guard var plan = usable[item.job] else { continue }
            var problem: String?
            if let own = item.own, own.changesJob {
                switch stages.delegate.plans.plan(for: plan.definition.changed(by: own)) {
                case .success(let changed): plan = changed
                case .failure(let error): problem = error.message
                }
            }
            admission.began(item)
            tasks.start(item, precedence: plan.definition.precedence) { [self, plan, problem] in
                let run = ItemRun(item, plan, stages, problem: problem)
                let ending = await run.run {
                    admission.cameThrough(item)
                    if admission.hasRoom { signals.wakeup.ring() }
                }
                if let ending { statistics.note(ending, of: item, run.measure, logger) }
                if admission.hasRoom { signals.wakeup.ring() }
            }
        }
    }

    /// Fails the jobs that can't be run, with their items. If the database takes no writes now, the next turn tries
    /// again.
    private func failBroken() async throws(JobsError) {
        for (job, reason) in broken.withLock({ $0 }) {
            try await store.control.fail(job: job, error: reason)
            broken.withLock { _ = $0.removeValue(forKey: job) }
        }
    }

    // MARK: - The end

    /// Whether the queue is empty, so that a failing disk delays nothing.
    private func hasNothingToDo() async -> Bool {
        // If the database cannot be read, the disk probe decides.
        do { return try await store.reports.backlog().isEmpty } catch _ { return false }
    }

    private func isDrained() async throws(WorkerError) -> Bool {
        do {
            if try await store.reports.backlog().isEmpty { return true }
            try await drainWatch.noteIdle(worker: options.worker)
            return false
        } catch {
            return try pause(after: error) > 0
        }
    }

    /// Waits after temporary errors: a full or failing disk, or a lock. A damaged database ends the run.
    private func pause(after error: JobsError) throws(WorkerError) -> Int {
        guard error.isTransient else { throw WorkerError(error) }
        fault = error
        disk.report(error.message)
        return 0
    }
}

/// How a run ended.
public enum RunEnd: Sendable {
    /// No item was left that could still run.
    case drained
    /// A stop was requested.
    case stopped
    /// The disk is full or fails; the remaining items stay in the queue.
    case disk(String)
}
