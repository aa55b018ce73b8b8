internal import Glibc
internal import Jobs
internal import Logging

/// Periodic work on the queue: due items, dead leases, cancelled jobs, checkpoints, heartbeats.
struct Housekeeper: Sendable {
    let store: JobStore
    let tasks: InFlightItems
    let statistics: RunStatistics
    let signals: RunSignals
    let order: OrderKeeper
    let worker: Int64
    /// How long a lease lasts, in milliseconds.
    let lease: Int64
    let logger: Logger

    /// Runs until its task is cancelled.
    func run() async {
        var (second, halfSecond) = (Interval(1_000), Interval(500))
        // Twelve times in a lease, and every 5 s at least: others take a silent worker for gone after 20 s.
        var heartbeat = Interval(min(lease / 12, 5_000))
        var isFirst = true
        var idleSince: Int64?
        while !Task.isCancelled {
            await attempt("put due items back") { () throws(JobsError) in _ = try await store.queue.promoteDue() }
            if second.isDue() { await keepTables() }
            let now = monotonicMilliseconds()
            idleSince = tasks.count > 0 ? nil : idleSince ?? now
            if let since = idleSince, now - since >= 5_000 {
                await releaseUnknown()
                idleSince = now
            }
            if halfSecond.isDue(), tasks.count > 0 { await keepItems() }
            if heartbeat.isDue() {
                await attempt("extend the leases") { () throws(JobsError) in
                    try await store.workers.heartbeat(
                        worker: worker, host: HostNames.ofThisMachine, pid: getpid())
                }
            }
            // Only in the first round, and after the leases are extended, which cannot wait for a recount.
            if isFirst { await recount() }
            signals.wakeup.ring()
            if isFirst { statistics.noteBeginning() }
            isFirst = false
            await rest()
        }
    }

    /// Queues items under this worker's leases after it had no item in flight for five seconds.
    private func releaseUnknown() async {
        await attempt("look for items that this worker does not hold") { () throws(JobsError) in
            let count = try await store.workers.release(notHeldBy: worker, leasedFor: 5_000)
            if count > 0 { logger.warning("\(count) items that this worker does not hold go back to the queue.") }
        }
    }

    private func keepTables() async {
        await attempt("reclaim the leases of dead workers") { () throws(JobsError) in
            let count = try await store.workers.takeBackDeadLeases(
                myself: worker, onGuilty: statistics.countWorkerCrash)
            if count > 0 { logger.warning("\(count) items of a dead worker go back to the queue.") }
        }
        await attempt("sweep cancelled jobs") { () throws(JobsError) in
            _ = try await store.control.sweepCancelled(within: 2_000)
        }
        await attempt("remove lists that were not completed") { () throws(JobsError) in
            _ = try await store.queue.removeBrokenAdditions(within: 2_000)
        }
        await attempt("checkpoint") { () throws(JobsError) in try await store.maintenance.checkpoint() }
    }

    private func keepItems() async {
        await attempt("look for changed jobs") { () throws(JobsError) in try await order.keep() }
        await attempt("look for lost items") { () throws(JobsError) in
            // Cancels waiting items before running ones, so that the waiting ones do not take the slots that become
            // free.
            tasks.cancel(try await store.queue.lost(of: tasks.items).sorted(by: >))
        }
    }

    /// Sleeps until the next round. Without work, all services of the run poll less often.
    private func rest() async {
        if await hasNothingToDo(), signals.pace.beginRest() {
            // A job may have been added before the watch began.
            if await !hasNothingToDo() { signals.pace.endRest() }
        }
        await signals.pace.pause(.milliseconds(100), rest: min(PollingPace.rest, .milliseconds(lease / 12)))
    }

    private func hasNothingToDo() async -> Bool {
        // Checked every second while the log is held, to distinguish one long reader from many short ones.
        guard tasks.count == 0, !store.maintenance.isLogHeld else { return false }
        // If the database can't be read, the next round tries again soon.
        return (try? await store.reports.backlog().isEmpty) ?? false
    }

    private func recount() async {
        await attempt("recount the items of jobs") { () throws(JobsError) in
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

/// The time between two runs of a task, in milliseconds; the first run is due at once.
private struct Interval {
    private let milliseconds: Int64
    private var last: Int64?

    init(_ milliseconds: Int64) { self.milliseconds = milliseconds }

    mutating func isDue(at now: Int64 = monotonicMilliseconds()) -> Bool {
        if let last, now - last < milliseconds { return false }
        last = now
        return true
    }
}
