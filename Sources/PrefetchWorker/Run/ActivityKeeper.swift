internal import Core
internal import Jobs
internal import Logging
internal import Synchronization

/// Adds what this worker counts to the database's counters, every few seconds and at its end.
struct ActivityKeeper: Sendable {
    let book: ActivityBook
    let statistics: RunStatistics
    let helpers: HelperPool
    let logger: Logger

    /// Runs until its task is cancelled.
    func run() async {
        while !Task.isCancelled {
            // Best effort: cancellation ends the sleep, and then the loop.
            try? await Task.sleep(for: .seconds(2))
            await keep()
        }
    }

    /// Adds what is new. Counts that can't be written now wait for the next time.
    func keep() async {
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
