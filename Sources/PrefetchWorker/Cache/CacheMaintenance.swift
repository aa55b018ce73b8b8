internal import Core
internal import Jobs
internal import Logging

/// Periodic work on the cache and the database: collecting, pruning, backups.
struct CacheMaintenance: Sendable {
    /// The periodic tasks and their intervals.
    struct Plan: Sendable {
        var backups: BackupPlan?
        /// How long ended jobs are kept, in milliseconds; nil to keep them forever.
        var retention: Int64?
        /// Milliseconds between two rounds.
        var every: Int64
        /// The kernel's file that reports memory pressure.
        var pressure = MemoryPressure.file
    }

    let collector: Collector
    let budget: CacheBudget
    let memory: MemoryTier
    let plan: Plan
    let worker: Int64
    let logger: Logger
    let pace: PollingPace?

    /// How often free memory is returned to the system, in milliseconds.
    private static let trimEvery: Int64 = 30_000
    private let blocking = BlockingQueue("cache.keeper")

    init(
        collector: Collector, budget: CacheBudget, memory: MemoryTier, plan: Plan, worker: Int64, logger: Logger,
        pace: PollingPace? = nil,
    ) {
        self.collector = collector
        self.budget = budget
        self.memory = memory
        self.plan = plan
        self.worker = worker
        self.logger = logger
        self.pace = pace
    }

    /// Runs before the first claim: otherwise the reservations of dead workers would leave no space.
    ///
    /// The links that a killed worker left to settle come first, too: a run without work ends before the first collection.
    func begin() async {
        do {
            try await collector.settleLinks()
        } catch {
            logger.warning("The links of removed entries can't be deleted.", metadata: ["error": "\(error)"])
        }
        do {
            try await collector.removeDrafts()
        } catch {
            logger.warning("The drafts of dead workers can't be deleted.", metadata: ["error": "\(error)"])
        }
        do {
            _ = try await collector.reclaimDeadReservations(myself: worker)
        } catch {
            logger.warning("The reservations of dead workers can't be read.", metadata: ["error": "\(error)"])
        }
    }

    /// Runs until its task is cancelled.
    func run() async {
        async let small: Void = keepUp()
        await work()
        await small
    }

    /// The tasks that may take long.
    private func work() async {
        var round = 0
        while !Task.isCancelled {
            let next = monotonicMilliseconds() + plan.every
            // Orphans are searched at the start and then every 60 rounds, since the search reads every folder.
            await collect(orphans: round % 60 == 0)
            await prune()
            await copy()
            // The round has read rows that may not be needed again; an idle worker would keep their memory until the
            // next round.
            if round > 0, pace?.isResting == true, !Task.isCancelled { await giveBackMemory() }
            round += 1
            // Cancellation ends the sleep, and then the loop.
            try? await Task.sleep(for: .milliseconds(max(10, next - monotonicMilliseconds())))
        }
    }

    /// Runs the short tasks, which cannot wait for the long ones.
    private func keepUp() async {
        var nextTrim = monotonicMilliseconds() + Self.trimEvery
        var clock: Int64?
        while !Task.isCancelled {
            clock = await keepClock(clock)
            await trim()
            await trimFolder()
            await removeDeleted()
            if monotonicMilliseconds() >= nextTrim {
                await giveBackMemory()
                nextTrim = monotonicMilliseconds() + Self.trimEvery
            }
            if let pressure = MemoryPressure.recent(plan.pressure), pressure > MemoryPressure.limit { memory.empty() }
            let time = Duration.milliseconds(min(plan.every, 1_000))
            if let pace {
                await pace.pause(time, rest: min(PollingPace.rest, .milliseconds(plan.every)))
            } else {
                // Cancellation ends the sleep, and then the loop.
                try? await Task.sleep(for: time)
            }
        }
    }

    private func giveBackMemory() async {
        do {
            try await collector.store.maintenance.giveBackMemory()
        } catch {
            logger.warning("SQLite's memory can't be released.", metadata: ["error": "\(error)"])
        }
        // The C library keeps a heap for nearly every thread, and would never return the memory of a peak.
        await blocking.run { FreeMemory.giveBack() }
    }

    private func keepClock(_ last: Int64?) async -> Int64? {
        do {
            return try await collector.store.database.keepCacheClock(unlessStill: last)
        } catch {
            logger.warning("The cache's clock can't be saved.", metadata: ["error": "\(error)"])
            return last
        }
    }

    private func collect(orphans: Bool) async {
        do {
            let report = try await collector.collect(orphans: orphans, myself: worker)
            if let trouble = report.trouble {
                logger.warning("\(report.stuck) files can't be deleted.", metadata: ["error": "\(trouble)"])
            }
            if report.orphans > 0 { logger.notice("\(report.orphans) files that a crash had left were removed.") }
        } catch {
            // The next round tries again; a lasting error also shows in the claims, and those end the run.
            logger.warning("The cache can't be collected.", metadata: ["error": "\(error)"])
        }
    }

    /// Collects once more, and gives back the space that is reserved and not used.
    func end() async {
        await collect(orphans: false)
        await trim()
    }

    private func trim() async {
        do {
            try await budget.trim()
        } catch {
            logger.warning("Reserved space in the cache can't be released.", metadata: ["error": "\(error)"])
        }
    }

    private func trimFolder() async {
        do {
            try await collector.trimFolder(keepingFree: collector.policy.minimumFree)
        } catch {
            logger.warning("The folder in front of the bucket can't be trimmed.", metadata: ["error": "\(error)"])
        }
    }

    private func removeDeleted() async {
        do {
            try await collector.removeDeleted()
        } catch {
            logger.warning("The files of deleted entries can't be removed.", metadata: ["error": "\(error)"])
        }
    }

    private func prune() async {
        let store = collector.store
        do {
            try await store.events.prune(before: store.database.currentTime - JobEvents.retention)
        } catch {
            logger.warning("Old events can't be removed.", metadata: ["error": "\(error)"])
        }
        guard let retention = plan.retention else { return }
        do {
            _ = try await store.maintenance.prune(endedBefore: store.database.cacheTime() - retention)
        } catch {
            logger.warning("Old jobs can't be removed.", metadata: ["error": "\(error)"])
        }
    }

    private func copy() async {
        guard let backups = plan.backups else { return }
        do {
            try await backups.makeIfDue(of: collector.store)
        } catch {
            logger.warning("The database can't be copied.", metadata: ["error": "\(error)"])
        }
    }
}
