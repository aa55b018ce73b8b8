internal import Jobs
internal import Logging
internal import Synchronization

/// Reports the items that a draining worker waits for when it has none in flight itself.
final class DrainWatch: Sendable {
    /// Milliseconds without work before the wait is reported, and between two reports.
    static let firstAfter: Int64 = 5_000
    static let againAfter: Int64 = 30_000

    private struct State {
        var idleSince: Int64?
        var toldAt: Int64?
        var told: String?
    }

    private let store: JobStore
    private let logger: Logger
    private let state = Mutex(State())

    init(store: JobStore, logger: Logger) {
        self.store = store
        self.logger = logger
    }

    func noteBusy() {
        state.withLock { $0 = State() }
    }

    /// Called each time the worker has no work although the queue is not empty.
    ///
    /// - Throws: errors of the database.
    func noteIdle(worker: Int64, at now: Int64 = monotonicMilliseconds()) async throws(JobsError) {
        let isTime = state.withLock { state in
            state.idleSince = state.idleSince ?? now
            return now - (state.toldAt ?? state.idleSince ?? now)
                >= (state.toldAt == nil ? Self.firstAfter : Self.againAfter)
        }
        guard isTime else { return }
        // The counters may be wrong, so the items are counted. Once for each wait, since counting reads every item.
        if state.withLock({ $0.toldAt == nil }) {
            for job in try await store.control.mendCounters(always: true) {
                logger.warning("The counters of a job were wrong and have been corrected: \(job.finding)")
            }
        }
        let waits = try await store.reports.waits(of: worker)
        let sentence = waits.joined(separator: " ")
        let isNews = state.withLock { state in
            state.toldAt = now
            defer { state.told = sentence }
            return state.told != sentence
        }
        if isNews, !sentence.isEmpty { logger.notice("Waiting: \(sentence)") }
    }
}

extension JobStore {
    /// Ends items of cancelled jobs. Called at the end of a draining run, which does not wait for such items; otherwise
    /// they would stay open until the next run or prune.
    func endCancelledItems(_ logger: Logger) async {
        do {
            try await control.sweepCancelled()
        } catch {
            // The next run ends these items.
            logger.warning("Could not end the items of cancelled jobs.", metadata: ["error": "\(error)"])
        }
    }
}
