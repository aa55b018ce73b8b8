/// What a worker does once a second, and how it keeps to its lease.
extension Simulation {
    func poll(_ worker: Int) {
        let isAway = workers[worker].awayUntil > now
        if isAway, settings.broken == .suspended { return }
        if !isAway, now - workers[worker].sentAt >= Model.heartbeat { renewLease(of: worker) }
        keepToLease(worker)
        guard !isAway else { return }
        handOverBuckets(of: worker)
        takeBuckets(for: worker)
        if workers[worker].isLeaving, workers[worker].tenures.isEmpty { workers[worker].isAlive = false }
    }

    private func renewLease(of worker: Int) {
        // The lease counts from when the database has the heartbeat: 50 ms later at most, and one in 100 up to 3 s.
        let delay = random.below(100) == 0 ? random.below(ticks(3)) : random.below(ticks(0.05))
        workers[worker].sentAt = now
        workers[worker].leaseEnd = now + delay + settings.lease * ticksPerSecond
        workers[worker].lockGoneAt = Tick.max
        if !workers[worker].isListed, !workers[worker].isLeaving { list(worker, cause: .disconnect) }
    }

    /// Starts nothing more when the lease is about to end, and closes what is in flight before it ends.
    private func keepToLease(_ worker: Int) {
        let remaining = workers[worker].remainingLease(at: now, settings)
        if remaining < Model.abort, settings.broken != .noAbort {
            for tenure in workers[worker].tenures {
                endTenure(tenure, cause: .disconnect)
                workers[worker].pending.append(tenures[tenure].bucket)
            }
            workers[worker].tenures = []
            return
        }
        for tenure in workers[worker].tenures {
            if remaining < Model.stop, tenures[tenure].state == .asking {
                tenures[tenure].state = .paused
                ownerless.add(tenures[tenure].bucket, cause: .disconnect, at: now)
            } else if remaining >= Model.stop, tenures[tenure].state == .paused {
                startRequests(of: tenure)
            }
        }
    }
}
