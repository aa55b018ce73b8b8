internal import ContentCache
internal import Download
internal import Glibc
internal import Jobs
public import Logging
internal import ServiceLifecycle
internal import Synchronization

/// One run: builds the engine, runs its services together, and ends them in order.
public struct Worker: Sendable {
    public let statistics = RunStatistics()
    private let configuration: WorkerConfiguration
    private let logger: Logger

    public init(_ configuration: WorkerConfiguration, logger: Logger) {
        self.configuration = configuration
        self.logger = logger
    }

    /// Works until `stop` is requested or, when draining, nothing is left. Returns when every helper has ended and
    /// every item is either written to the database or back in the queue.
    public func run(stop: StopSignal) async throws(WorkerError) -> Summary {
        // Every item in flight may have a file for each of its variants.
        try DescriptorLimit.raise(concurrency: configuration.downloads.concurrency)
        let store: JobStore
        let worker: Int64
        let engine: Engine
        let hasBegun = Atomic(false)
        let waiting = configuration.waiting.ending(at: stop) { [grace = configuration.grace] time in
            hasBegun.load(ordering: .relaxed) ? max(grace - time, 1_000) : 0
        }
        do {
            store = try await JobStore.opening(
                path: configuration.database, now: configuration.now, leaseDuration: configuration.lease,
                syncs: configuration.syncs, waiting: waiting)
            engine = try Engine(configuration, store, logger: logger)
            try await CacheOwnership.check(store, engine.cache)
            // After the ownership was checked: otherwise another cache's links would be removed.
            // The folder in front of a bucket has only files in use, and no links.
            if let links = engine.cache.backing == nil ? configuration.keepsLinks : false {
                try await LinkKeeper(store: store, cache: engine.cache, logger: logger).keep(links)
            }
            // Before any item is claimed.
            if configuration.helpers.requiresSandbox { try await engine.helpers.checkSandbox() }
            worker = try await JobStore.retrying { () throws(JobsError) in
                try await store.workers.register(host: HostNames.ofThisMachine, pid: getpid())
            }
            try engine.reserveSpace(for: worker)
            try await store.control.mendRows()
        } catch {
            throw WorkerError(any: error)
        }
        hasBegun.store(true, ordering: .relaxed)
        let result = await work(engine, as: worker, stop: stop)
        do {
            try await JobStore.retrying { () throws(JobsError) in try await store.workers.unregister(worker: worker) }
            let (jobs, backlog) = try await JobStore.retrying { () throws(JobsError) in
                (try await store.reports.summary(jobs: statistics.jobs), try await store.reports.backlog())
            }
            try await store.close()
            return Summary(
                end: try result.get(), counts: statistics.counts, bytesSaved: engine.downloader.counts.saved,
                jobs: jobs, backlog: backlog)
        } catch {
            // The first error explains the others.
            if case .failure(let first) = result { throw first }
            throw WorkerError(any: error)
        }
    }

    // MARK: - Services

    /// Runs the services until the claim loop ends. They end from the last to the first, so that each can use the ones
    /// before it until its end.
    private func work(
        _ engine: Engine, as worker: Int64, stop: StopSignal,
    ) async -> Result<Summary.End, WorkerError> {
        let signals = RunSignals(stop: stop, database: configuration.database)
        let tasks = InFlightItems { signals.wakeup.ring() }
        let admission = Admission(
            tasks: tasks, downloader: engine.downloader, concurrency: configuration.downloads.concurrency)
        let hosts = HostKeeper(
            store: engine.store, stages: engine.stages, waits: engine.waits,
            limits: HostKeeper.Limits(configuration.downloads), worker: worker, pace: signals.pace, logger: logger)
        let cache = CacheMaintenance(
            collector: engine.collector, budget: engine.budget, memory: engine.memory,
            plan: CacheMaintenance.Plan(
                backups: configuration.backups, retention: configuration.retention, every: configuration.collectEvery),
            worker: worker, logger: logger, pace: signals.pace)
        do throws(JobsError) {
            let ledger = try await hosts.begin()
            await cache.begin()
            let end = Mutex<Result<Summary.End, WorkerError>?>(nil)
            let loop = claimLoop(engine, admission, signals, worker: worker)
            let services = RunServices([
                { [downloader = engine.downloader] in
                    try? await gracefulShutdown()  // Best effort: it throws if cancelled, which ends the service too.
                    await downloader.shutdown()
                },
                { [publisher = engine.stages.publisher] in
                    await withGracefulShutdownHandler {
                        await publisher.run(inFlight: { admission.countInMotion })
                    } onGracefulShutdown: {
                        publisher.close()
                    }
                },
                { [helpers = engine.helpers] in
                    await withGracefulShutdownHandler {
                        await helpers.run()
                    } onGracefulShutdown: {
                        helpers.close()
                    }
                },
                { await cancelWhenGracefulShutdown { await cache.run() } },
                { [keeper = activityKeeper(engine, worker: worker)] in
                    await keeper.serve()
                },
                { await hosts.end(await cancelWhenGracefulShutdown { await hosts.run(ledger) }) },
                { [housekeeper = housekeeper(engine, tasks, signals, worker: worker)] in
                    await cancelWhenGracefulShutdown { await housekeeper.run() }
                },
                {
                    let result = await loop()
                    await settle(tasks, engine)
                    end.withLock { $0 = result }
                },
            ])
            await services.run()
            if case .success(.drained) = end.withLock({ $0 }) { await engine.store.endCancelledItems(logger) }
            await cache.end()
            return end.withLock { $0 } ?? .failure(WorkerError(.internalError, "The run was cancelled."))
        } catch {
            await engine.downloader.shutdown()
            return .failure(WorkerError(error))
        }
    }

    private func activityKeeper(_ engine: Engine, worker: Int64) -> ActivityKeeper {
        ActivityKeeper(engine.store, worker: worker, engine.helpers, engine.cache.backing, statistics, logger)
    }

    private func claimLoop(
        _ engine: Engine, _ admission: Admission, _ signals: RunSignals, worker: Int64,
    ) -> @Sendable () async -> Result<Summary.End, WorkerError> {
        let probe = DiskProbe(
            store: engine.store, cache: engine.cache, collector: engine.collector, disk: engine.disk, logger: logger)
        let options = ClaimLoop.Options(worker: worker, order: configuration.order, drains: configuration.drains)
        let loop = ClaimLoop(
            store: engine.store, stages: engine.stages, admission: admission, probe: probe, statistics: statistics,
            signals: signals, (options, logger))
        return {
            do throws(WorkerError) {
                return .success(try await loop.run())
            } catch {
                return .failure(error)
            }
        }
    }

    private func housekeeper(
        _ engine: Engine, _ tasks: InFlightItems, _ signals: RunSignals, worker: Int64,
    ) -> Housekeeper {
        Housekeeper(
            store: engine.store, tasks: tasks, statistics: statistics, signals: signals,
            order: OrderKeeper(
                queue: engine.store.queue, tasks: tasks, fetcher: engine.stages.fetcher, order: configuration.order),
            worker: worker, lease: configuration.lease, logger: logger)
    }

    /// Waiting items go back to the queue at once; running ones get the grace period.
    private func settle(_ tasks: InFlightItems, _ engine: Engine) async {
        engine.downloader.cancelWaiting()
        let deadline = Task {
            // Cancelled as soon as all items have ended.
            guard (try? await Task.sleep(for: .milliseconds(configuration.grace))) != nil else { return }
            logger.warning("The grace period is over; items in flight go back to the queue.")
            tasks.cancelAll()
            engine.helpers.abandon()
            engine.stages.publisher.hurry()
            // By then a bucket that answers has received all uploads in progress.
            guard (try? await Task.sleep(for: .seconds(2))) != nil else { return }
            engine.cache.backing?.abandon()
        }
        await tasks.waitUntilEmpty()
        deadline.cancel()
    }
}
