internal import ContentCache
internal import Jobs
internal import Logging
internal import Synchronization

/// Tests whether a failed disk works again, by writing to it as the worker does.
final class DiskProbe: Sendable {
    let store: JobStore
    let cache: ContentCache
    let collector: Collector
    let disk: DiskWatch
    let logger: Logger
    private let blocking = BlockingQueue("disk.probe")
    private let nextCollection = Atomic<Int64>(0)

    init(store: JobStore, cache: ContentCache, collector: Collector, disk: DiskWatch, logger: Logger) {
        self.store = store
        self.cache = cache
        self.collector = collector
        self.disk = disk
        self.logger = logger
    }

    /// Reacts to disk trouble: frees space, or tests the disk.
    ///
    /// - Returns: whether it did either.
    func act() async -> Bool {
        if disk.isLow { return await freeSpace() }
        return await disk.probe { await failure() }
    }

    private func freeSpace() async -> Bool {
        let now = monotonicMilliseconds()
        guard now >= nextCollection.load(ordering: .relaxed) else { return false }
        nextCollection.store(now + 1_000, ordering: .relaxed)
        do {
            let report = try await collector.freeDisk()
            // Other workers free space as well, so the free space is checked again in any case.
            if let reason = report.hopeless { disk.explain(reason) } else { disk.lookAgain() }
            if let trouble = report.trouble {
                logger.warning("The cache can't free space.", metadata: ["error": "\(trouble)"])
            }
        } catch {
            logger.warning("The cache can't free space.", metadata: ["error": "\(error)"])
        }
        return true
    }

    private func failure() async -> String? {
        do {
            try await blocking.run { [cache] in Result { try cache.probe() } }.get()
            try await store.maintenance.probe()
            return nil
        } catch {
            return "\(error)"
        }
    }
}
