internal import Jobs
internal import Logging

/// Periodic work on the queue: due items, dead leases, cancelled jobs, checkpoints, heartbeats.
struct Housekeeper: Sendable {
    let store: JobStore
    let tasks: InFlightItems
    let statistics: RunStatistics
    let wakeup: Wakeup
    let order: OrderKeeper
    let worker: Int64
    /// How long a lease lasts, in milliseconds.
    let lease: Int64
    let logger: Logger

    /// Runs until its task is cancelled.
    func run() async {
        var round = 0
        while !Task.isCancelled {
            await attempt("put due items back") { () throws(JobsError) in _ = try await store.queue.promoteDue() }
            if round % 10 == 0 {
                await attempt("take back dead leases") { () throws(JobsError) in
                    let count = try await store.queue.takeBackDeadLeases(
                        myself: worker, onGuilty: statistics.countWorkerCrash)
                    if count > 0 { logger.warning("\(count) items of a dead worker go back to the queue.") }
                }
                await attempt("sweep cancelled jobs") { () throws(JobsError) in
                    _ = try await store.control.sweepCancelled(within: 2_000)
                }
                await attempt("checkpoint") { () throws(JobsError) in try await store.maintenance.checkpoint() }
            }
            if round % 5 == 0 {
                await attempt("look for changed jobs") { () throws(JobsError) in try await order.keep() }
                await attempt("look for lost items") { () throws(JobsError) in
                    // Cancels waiting items before running ones, so that the waiting ones do not take the places that
                    // become free.
                    tasks.cancel(try await store.queue.lost(of: tasks.items).sorted(by: >))
                }
            }
            // Twelve times in a lease: every 5 s.
            if round % Int(max(1, lease / 1_200)) == 0 {
                await attempt("extend the leases") { () throws(JobsError) in
                    try await store.queue.heartbeat(worker: worker)
                }
            }
            // After the first round, since leases cannot wait for it.
            if round == 0 { await recount() }
            wakeup.ring()
            if round == 0 { statistics.noteBeginning() }
            round += 1
            // Best effort: cancellation ends the sleep, and then the loop.
            try? await Task.sleep(for: .milliseconds(100))
        }
    }

    private func recount() async {
        await attempt("recount the items of open jobs") { () throws(JobsError) in
            for job in try await store.control.mendCounters() {
                logger.warning("The counters of a job were wrong and have been corrected: \(job.finding)")
            }
        }
    }

    private func attempt(_ what: String, _ body: () async throws(JobsError) -> Void) async {
        do {
            try await body()
        } catch {
            // The next round tries again. A lasting error shows in the claims, which end the run.
            logger.warning("Could not \(what).", metadata: ["error": "\(error)"])
        }
    }
}
