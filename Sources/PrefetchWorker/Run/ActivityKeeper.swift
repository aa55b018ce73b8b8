internal import ContentCache
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
    /// Nil for a cache in a folder.
    private let bucket: (any BackingStore)?
    private let logger: Logger

    /// What has been counted and recorded.
    private struct Noted {
        var deaths: Int64 = 0
        var bucket = BackingCounts()
        var helpers = HelperCounts()
    }

    init(
        _ store: JobStore, worker: Int64, _ helpers: HelperPool, _ bucket: (any BackingStore)?,
        _ statistics: RunStatistics, _ logger: Logger,
    ) {
        self.store = store
        self.helpers = helpers
        self.bucket = bucket
        self.worker = worker
        self.statistics = statistics
        self.logger = logger
    }

    /// Runs until the run's other services have ended.
    func serve() async {
        let noted = await cancelWhenGracefulShutdown { await run() }
        _ = await keep(after: noted)
    }

    private func run() async -> Noted {
        var noted = Noted()
        while !Task.isCancelled {
            // Best effort: cancellation ends the sleep, and then the loop.
            try? await Task.sleep(for: .seconds(2))
            noted = await keep(after: noted)
        }
        return noted
    }

    /// Adds the new counts. Counts that can't be written now are added the next time.
    private func keep(after noted: Noted) async -> Noted {
        let (now, sent) = (helpers.counts, bucket?.counts ?? BackingCounts())
        var counts = statistics.takeActivity()
        counts.add(now.died - noted.deaths, to: .helperRestarts)
        counts.add(sent - noted.bucket)
        do throws(JobsError) {
            try await store.activity.add(counts)
        } catch {
            statistics.putBack(counts)
            logger.debug("The counters can't be written yet.", metadata: ["error": "\(error)"])
        }
        var new = Noted(deaths: now.died, bucket: sent, helpers: noted.helpers)
        guard now != noted.helpers else { return new }
        do throws(JobsError) {
            try await store.workers.note(now, of: worker)
            new.helpers = now
        } catch {
            logger.debug("The state of the helpers can't be written yet.", metadata: ["error": "\(error)"])
        }
        return new
    }
}

extension ActivityCounts {
    fileprivate mutating func add(_ bucket: BackingCounts) {
        for (label, count) in bucket.requests { add(count, to: .bucketRequests, label) }
        add(bucket.sent, to: .bucketSent)
        add(bucket.received, to: .bucketReceived)
    }
}
