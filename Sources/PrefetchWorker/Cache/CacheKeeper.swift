internal import Jobs
internal import Logging

/// What has to happen to the cache and the database while a worker runs: collecting, pruning, copying.
struct CacheKeeper: Sendable {
    let collector: Collector
    let backups: BackupPlan?
    let retention: Int64?
    let budget: CacheBudget
    let memory: MemoryTier
    /// In milliseconds.
    let every: Int64
    let worker: Int64
    let logger: Logger
    /// Whether the worker has nothing in hand.
    let isIdle: @Sendable () -> Bool
    /// Where the kernel says how short memory is.
    let pressure: String

    /// How often memory that is free is given back to the system, in milliseconds.
    private static let trimEvery: Int64 = 30_000
    private let blocking = BlockingQueue("cache.keeper")

    init(
        collector: Collector, backups: BackupPlan?, retention: Int64?, budget: CacheBudget, memory: MemoryTier,
        every: Int64, worker: Int64, logger: Logger, isIdle: @escaping @Sendable () -> Bool = { false },
        pressure: String = MemoryPressure.file,
    ) {
        self.collector = collector
        self.backups = backups
        self.retention = retention
        self.budget = budget
        self.memory = memory
        self.every = every
        self.worker = worker
        self.logger = logger
        self.isIdle = isIdle
        self.pressure = pressure
    }

    /// Before anything is claimed: what dead workers had set aside would leave no room for it.
    func begin() async {
        do {
            try await collector.removeDrafts()
            _ = try await collector.settleDead(myself: worker)
        } catch {
            logger.warning("What dead workers had set aside can't be looked at.", metadata: ["error": "\(error)"])
        }
    }

    /// Runs until its task is cancelled.
    func run() async {
        async let small: Void = keepUp()
        await work()
        await small
    }

    /// What takes as long as there is something to do.
    private func work() async {
        var round = 0
        while !Task.isCancelled {
            let next = monotonicMilliseconds() + every
            // Files without a row are looked for when it starts, and then now and then: it reads every folder.
            await collect(orphans: round % 60 == 0)
            await prune()
            await copy()
            // It has read rows that nobody may ask for again, and an idle worker would keep them until the next look.
            if round > 0, isIdle(), !Task.isCancelled { await giveBackMemory() }
            round += 1
            // Cancellation ends the nap, and then the loop.
            try? await Task.sleep(for: .milliseconds(max(10, next - monotonicMilliseconds())))
        }
    }

    /// What is small and can't wait for that.
    private func keepUp() async {
        var nextTrim = monotonicMilliseconds() + Self.trimEvery
        var clock: Int64?
        while !Task.isCancelled {
            clock = await keepClock(clock)
            await trim()
            if monotonicMilliseconds() >= nextTrim {
                await giveBackMemory()
                nextTrim = monotonicMilliseconds() + Self.trimEvery
            }
            if let pressure = MemoryPressure.recent(pressure), pressure > MemoryPressure.limit { memory.empty() }
            try? await Task.sleep(for: .milliseconds(min(every, 1_000)))
        }
    }

    private func giveBackMemory() async {
        do {
            try await collector.store.giveBackMemory()
        } catch {
            logger.warning("The database keeps its memory.", metadata: ["error": "\(error)"])
        }
        // The C library keeps a heap for nearly every thread, and what a busy moment took of each it would keep for good.
        await blocking.run { FreeMemory.giveBack() }
    }

    private func keepClock(_ last: Int64?) async -> Int64? {
        do {
            return try await collector.store.keepCacheClock(unlessStill: last)
        } catch {
            logger.warning("The cache's clock can't be written down.", metadata: ["error": "\(error)"])
            return last
        }
    }

    func collect(orphans: Bool) async {
        do {
            let report = try await collector.collect(orphans: orphans, myself: worker)
            if let trouble = report.trouble {
                logger.warning("\(report.stuck) files can't be deleted.", metadata: ["error": "\(trouble)"])
            }
            if report.orphans > 0 { logger.notice("\(report.orphans) files that a crash had left were removed.") }
        } catch {
            // It is tried again at the next round; a fault that stays shows in the claims, which do end the run.
            logger.warning("The cache can't be collected.", metadata: ["error": "\(error)"])
        }
    }

    func trim() async {
        do {
            try await budget.trim()
        } catch {
            logger.warning("Room in the cache can't be given back.", metadata: ["error": "\(error)"])
        }
    }

    private func prune() async {
        guard let retention else { return }
        do {
            let store = collector.store
            _ = try await store.prune(endedBefore: store.cacheTime() - retention)
        } catch {
            logger.warning("Old jobs can't be removed.", metadata: ["error": "\(error)"])
        }
    }

    private func copy() async {
        guard let backups else { return }
        do {
            try await backups.makeIfDue(of: collector.store)
        } catch {
            logger.warning("The database can't be copied.", metadata: ["error": "\(error)"])
        }
    }
}
