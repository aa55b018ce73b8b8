internal import Core
internal import Jobs
internal import Logging
internal import ServiceLifecycle
internal import Synchronization

/// Adds what this worker counts to the database's counters, every few seconds and at its end.
struct ActivityKeeper: Sendable {
    private let book: ActivityBook
    private let statistics: RunStatistics
    private let helpers: HelperPool
    private let logger: Logger

    init(_ book: ActivityBook, _ helpers: HelperPool, _ statistics: RunStatistics, _ logger: Logger) {
        self.book = book
        self.helpers = helpers
        self.statistics = statistics
        self.logger = logger
    }

    /// Runs until the run's other services have ended.
    func serve() async {
        await cancelWhenGracefulShutdown { await run() }
        await keep()
    }

    private func run() async {
        while !Task.isCancelled {
            // Best effort: cancellation ends the sleep, and then the loop.
            try? await Task.sleep(for: .seconds(2))
            await keep()
        }
    }

    /// Adds the new counts. Counts that can't be written now are added the next time.
    private func keep() async {
        var counts = statistics.takeActivity()
        counts.add(helpers.takeDeaths(), to: .helperRestarts)
        do throws(JobsError) {
            try await book.add(counts)
        } catch {
            statistics.putBack(counts)
            logger.debug("The counters can't be written yet.", metadata: ["error": "\(error)"])
        }
    }
}
