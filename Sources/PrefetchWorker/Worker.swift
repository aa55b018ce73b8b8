internal import ContentCache
internal import Download
internal import Glibc
internal import Imaging
public import Jobs
public import Logging
internal import SystemPackage

/// The composition root: builds the stages, runs them together, and ends them in order.
public struct Worker: Sendable {
    /// What a run came to.
    public struct Summary: Sendable {
        public enum End: Sendable {
            /// Nothing was left that could still run.
            case drained
            /// Somebody asked for it.
            case stopped
            /// The disk is full or doesn't work; what was left waits in the queue.
            case disk(String)
        }

        public let end: End
        public let counts: RunStatistics.Counts
        /// Announced bytes of bodies that were refused before they had come.
        public let bytesSaved: Int64
        /// The jobs this run had items of, as they stand now.
        public let jobs: [JobProgress]
        /// What is left to do, whoever enqueued it.
        public let backlog: Backlog
    }

    public let statistics = RunStatistics()
    private let configuration: WorkerConfiguration
    private let logger: Logger

    public init(_ configuration: WorkerConfiguration, logger: Logger) {
        self.configuration = configuration
        self.logger = logger
    }

    /// Works until `stop` is requested or, when draining, nothing is left. Returns when every helper has ended and
    /// every item is either written down or back in the queue.
    public func run(stop: StopSignal) async throws(WorkerError) -> Summary {
        // Every item in flight may hold a file for each of its variants.
        DescriptorLimit.raise()
        let least = DescriptorLimit.least(concurrency: configuration.downloads.concurrency)
        guard DescriptorLimit.current >= least else {
            throw WorkerError(
                .unavailable,
                "Only \(DescriptorLimit.current) files may be open at once, and a worker with this --concurrency needs "
                    + "\(least): raise it with ulimit -n or LimitNOFILE=.")
        }
        let store: JobStore
        let worker: Int64
        let pipeline: Pipeline
        do {
            store = try await JobStore.opening(
                path: configuration.database, now: configuration.now, leaseDuration: configuration.lease,
                syncs: configuration.syncs)
            pipeline = try makePipeline(store)
            try await CacheBond.check(store, pipeline.cache)
            // Not before it is known whose cache it is: another's tree would go.
            if let links = configuration.keepsLinks {
                try await LinkKeeper(store: store, cache: pipeline.cache, logger: logger).keep(links)
            }
            // Before anything is claimed, let alone fetched.
            if configuration.helpers.requiresSandbox { try await pipeline.helpers.checkSandbox() }
            worker = try await JobStore.retrying { () throws(JobsError) in
                try await store.register(host: hostName(), pid: getpid())
            }
            pipeline.budget.use(by: worker)
        } catch let error as WorkerError {
            throw error
        } catch let error as JobsError {
            throw WorkerError(error)
        } catch let error as CacheError {
            throw WorkerError(error)
        } catch let error as DownloadFailure {
            throw WorkerError(error)
        } catch {
            throw WorkerError(.internalError, "\(error)")
        }
        let result = await work(pipeline, as: worker, stop: stop)
        do {
            try await JobStore.retrying { () throws(JobsError) in try await store.unregister(worker: worker) }
            let jobs = try await JobStore.retrying { () throws(JobsError) in
                try await store.summary(jobs: statistics.jobs)
            }
            let backlog = try await JobStore.retrying { () throws(JobsError) in try await store.backlog() }
            try await store.close()
            return Summary(
                end: try result.get(), counts: statistics.counts,
                bytesSaved: pipeline.downloader.counts.saved, jobs: jobs, backlog: backlog)
        } catch let error as WorkerError {
            throw error
        } catch let error as JobsError {
            // The first fault is the one that explains the others.
            if case .failure(let first) = result { throw first }
            throw WorkerError(error)
        } catch {
            throw WorkerError(.internalError, "\(error)")
        }
    }

    private func makePipeline(_ store: JobStore) throws -> Pipeline {
        let cache = try ContentCache(directory: FilePath(configuration.cache), syncs: configuration.syncs)
        let minimumFree = try configuration.minimumFree ?? min(1 << 30, cache.diskBytes() / 20)
        let disk = DiskWatch(cache: cache, minimumFree: minimumFree)
        var policy = configuration.cachePolicy
        policy.minimumFree = minimumFree
        let collector = Collector(store: store, cache: cache, policy: policy, logger: logger)
        let budget = CacheBudget(store: store, collector: collector)
        let inspector = HeaderInspector(limits: configuration.images, coders: configuration.extensions.coders)
        let scratch = ScratchFiles(cache: cache, isInMemory: policy.maxBytes != nil)
        let commands = Commands(
            try configuration.commands.map { try InstalledCommand($0) }, limits: configuration.commandLimits,
            width: configuration.helpers.count, scratch: scratch)
        var downloads = configuration.downloads
        // What waits for a second try is room that nothing else can have.
        if let limit = policy.maxBytes { downloads.maxPartialBytes = min(downloads.maxPartialBytes, limit / 8) }
        let downloader = try Downloader(
            configuration: downloads,
            makeFile: { try cache.makeDescriptor() },
            makeRoom: { budget.newRoom() },
            inspect: { BodyVerdict(inspector.inspect($0)) },
        )
        let limits = OwnLimits(
            addresses: downloads.addresses.text, maxBodyBytes: downloads.maxBodyBytes, maxCacheBytes: policy.maxBytes,
            images: configuration.images)
        let helpers = HelperPool(
            configuration: configuration.helpers, limits: configuration.images, cache: cache, logger: logger)
        return Pipeline(
            store: store, cache: cache, downloader: downloader, helpers: helpers,
            publisher: Publisher(
                store: store, cache: cache, disk: disk, logger: logger, budget: budget,
                patience: configuration.drains ? 30 : .max, limits: limits),
            disk: disk, collector: collector, budget: budget, memory: MemoryTier(limits: configuration.memoryTier),
            readOnly: try configuration.readOnlyCaches.map { try ReadOnlyCache($0) },
            settings: PipelineSettings(
                retries: configuration.retries, maxAge: configuration.maxAge, local: configuration.local,
                maxBodyBytes: configuration.downloads.maxBodyBytes, limits: limits, now: configuration.now),
            assets: configuration.assets,
            previews: configuration.onPreview.map { Previews(helpers: helpers, show: $0) },
            commands: commands, delegate: try delegate(scratch), extensions: configuration.extensions, logger: logger,
        )
    }

    private func delegate(_ scratch: ScratchFiles) throws(WorkerError) -> (any WorkerDelegate)? {
        if let delegate = configuration.delegate { return delegate }
        guard let command = configuration.delegateCommand else { return nil }
        return try CommandDelegate(
            command, limits: configuration.commandLimits, width: 2 * configuration.helpers.count, scratch: scratch)
    }

    /// The stages end from the front to the back, so that each still finds the next one working.
    private func work(
        _ pipeline: Pipeline, as worker: Int64, stop: StopSignal,
    ) async -> Result<Summary.End, WorkerError> {
        let wakeup = Wakeup()
        // Whoever sleeps then is told at once, however busy the housekeeper is.
        stop.whenRequested { wakeup.ring() }
        let tasks = ItemTasks { wakeup.ring() }
        let probe = DiskProbe(
            store: pipeline.store, cache: pipeline.cache, collector: pipeline.collector, disk: pipeline.disk,
            logger: logger)
        let loop = ClaimLoop(
            pipeline: pipeline, probe: probe, tasks: tasks, statistics: statistics, wakeup: wakeup, stop: stop,
            worker: worker, concurrency: configuration.downloads.concurrency,
            order: configuration.order, drains: configuration.drains, logger: logger,
        )
        let housekeeper = Housekeeper(
            store: pipeline.store, tasks: tasks, statistics: statistics, wakeup: wakeup, worker: worker,
            lease: configuration.lease,
            logger: logger)
        let keeper = HostKeeper(
            store: pipeline.store, downloader: pipeline.downloader, worker: worker,
            concurrency: configuration.downloads.concurrency, limits: configuration.downloads.hostLimits,
            patience: configuration.downloads.parking.patience, crowds: pipeline.crowds, fetches: pipeline.fetches,
            turns: pipeline.turns, logger: logger,
        )
        let cacheKeeper = CacheKeeper(
            collector: pipeline.collector, backups: configuration.backups, retention: configuration.retention,
            budget: pipeline.budget, memory: pipeline.memory, every: configuration.collectEvery, worker: worker,
            logger: logger, isIdle: { tasks.count == 0 })
        return await withTaskGroup { group in
            group.addTask { await pipeline.helpers.run() }
            group.addTask { await pipeline.publisher.run(inFlight: { loop.countInMotion }) }
            let housekeeping = Task { await housekeeper.run() }  // Ended below, before the stages it looks after.
            var hostKeeping: Task<HostKeeper.Ledger, Never>?
            let collecting = Task { await cacheKeeper.run() }  // The same.
            let result: Result<Summary.End, WorkerError>
            do {
                let ledger = try await keeper.begin()
                await cacheKeeper.begin()
                hostKeeping = Task { await keeper.run(ledger) }  // As the housekeeper.
                result = .success(Summary.End(try await loop.run()))
            } catch let error as JobsError {
                result = .failure(WorkerError(error))
            } catch {
                result = .failure(error as? WorkerError ?? WorkerError(.internalError, "\(error)"))
            }
            await settle(tasks, pipeline)
            housekeeping.cancel()
            hostKeeping?.cancel()
            await housekeeping.value
            if let ledger = await hostKeeping?.value { await keeper.end(ledger) }
            collecting.cancel()
            await collecting.value
            pipeline.helpers.close()
            pipeline.publisher.close()
            await pipeline.downloader.shutdown()
            await group.waitForAll()
            await cacheKeeper.collect(orphans: false)
            await cacheKeeper.trim()
            return result
        }
    }

    /// What waits goes back at once; what runs gets its grace.
    private func settle(_ tasks: ItemTasks, _ pipeline: Pipeline) async {
        pipeline.downloader.cancelWaiting()
        let deadline = Task {
            // Cancelled as soon as all is settled.
            guard (try? await Task.sleep(for: .milliseconds(configuration.grace))) != nil else { return }
            logger.warning("The grace is over; what still runs goes back to the queue.")
            tasks.cancelAll()
            pipeline.helpers.abandon()
            pipeline.publisher.hurry()
        }
        await tasks.waitUntilEmpty()
        deadline.cancel()
    }

    private func hostName() -> String {
        var buffer = [CChar](repeating: 0, count: 256)
        guard gethostname(&buffer, buffer.count - 1) == 0 else { return "unknown" }
        return buffer.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } } ?? "unknown"
    }
}

extension Worker.Summary.End {
    init(_ end: RunEnd) {
        self =
            switch end {
            case .drained: .drained
            case .stopped: .stopped
            case .disk(let reason): .disk(reason)
            }
    }
}

extension BodyVerdict {
    init(_ verdict: HeaderInspector.Verdict) {
        self =
            switch verdict {
            case .undecided: .undecided
            case .acceptable(let format): .acceptAs(format)
            case .refused(let error): .refuse(code: error.code.rawValue, message: error.message)
            }
    }
}
