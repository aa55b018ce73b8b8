internal import Core
internal import Jobs
internal import Logging
internal import ServiceLifecycle
internal import Synchronization

/// Adds what this worker counts to the database's counters, and records what its helpers do: every few seconds and at
/// its end.
struct ActivityKeeper: Sendable {
    private let store: JobStore
    private let worker: Int64
    private let statistics: RunStatistics
    private let helpers: HelperPool
    private let logger: Logger

    init(_ store: JobStore, worker: Int64, _ helpers: HelperPool, _ statistics: RunStatistics, _ logger: Logger) {
        self.store = store
        self.worker = worker
        self.helpers = helpers
        self.statistics = statistics
        self.logger = logger
    }

    /// Runs until the run's other services have ended.
    func serve() async {
        let noted = await cancelWhenGracefulShutdown { await run() }
        _ = await keep(after: noted)
    }

    /// - Returns: the helpers' counts as last recorded.
    private func run() async -> HelperCounts {
        var noted = HelperCounts()
        while !Task.isCancelled {
            // Best effort: cancellation ends the sleep, and then the loop.
            try? await Task.sleep(for: .seconds(2))
            noted = await keep(after: noted)
        }
        return noted
    }

    /// Adds the new counts. Counts that can't be written now are added the next time.
    private func keep(after noted: HelperCounts) async -> HelperCounts {
        let now = helpers.counts
        var counts = statistics.takeActivity()
        counts.add(now.died - noted.died, to: .helperRestarts)
        do throws(JobsError) {
            try await store.activity.add(counts)
        } catch {
            statistics.putBack(counts)
            logger.debug("The counters can't be written yet.", metadata: ["error": "\(error)"])
        }
        guard now != noted else { return noted }
        do throws(JobsError) {
            try await store.workers.note(now, of: worker)
        } catch {
            logger.debug("The state of the helpers can't be written yet.", metadata: ["error": "\(error)"])
        }
        return now
    }
}
