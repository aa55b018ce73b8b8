/// How buckets go from one worker to another.
extension Simulation {
    /// Drains the buckets that others should own, and hands over those that have been drained.
    func handOverBuckets(of worker: Int) {
        let current = workers[worker].tenures
        var kept: [Int] = []
        kept.reserveCapacity(current.count)
        for tenure in current where keeps(tenure, worker) { kept.append(tenure) }
        workers[worker].tenures = kept
    }

    private func keeps(_ tenure: Int, _ worker: Int) -> Bool {
        let bucket = tenures[tenure].bucket
        if owner[bucket] != worker {
            // Taken by another worker, which may only happen after this one's lease.
            endTenure(tenure, cause: .disconnect)
            return false
        }
        let wanted = wantedBy[bucket]
        let isWanted = wanted >= 0 && wanted != worker && workers[wanted].isListed
        switch tenures[tenure].state {
        case .asking where isWanted, .paused where isWanted:
            beginDrain(tenure)
            if settings.broken == .noDrain {
                handOver(bucket)
                return false
            }
        case .draining where !isWanted && !workers[worker].isLeaving:
            startRequests(of: tenure)
        case .draining where isDrained(tenure) || now - tenures[tenure].drainBegan >= Model.drain:
            endTenure(tenure, cause: moveCause[bucket])
            handOver(bucket)
            return false
        default: break
        }
        return true
    }

    private func beginDrain(_ tenure: Int) {
        let worker = workers[tenures[tenure].worker]
        let bucket = tenures[tenure].bucket
        tenures[tenure].state = .draining
        tenures[tenure].drainBegan = now
        ownerless.add(bucket, cause: moveCause[bucket], at: now)
        // What is left of each request in flight. Slow requests are few among those that begin, but one in ten of
        // those that are in flight at a moment, since they take so long.
        var longest = 0.0
        for _ in 0..<max(1, Model.inFlight / max(1, worker.tenures.count)) {
            let isSlow = random.fraction() < Model.slowInFlight
            let usual = Model.latencies[random.below(1024)] * Model.noise[random.below(1024)]
            longest = max(longest, (isSlow ? slowRequest() : usual) * random.fraction())
        }
        tenures[tenure].restEnds = now + ticks(longest)
    }

    private func isDrained(_ tenure: Int) -> Bool {
        tenures[tenure].inFlightInAll == 0 && tenures[tenure].restEnds <= now
    }

    private func handOver(_ bucket: Int) {
        let next = wantedBy[bucket]
        owner[bucket] = next
        wantedBy[bucket] = -1
        tenureOf[bucket] = -1
        if next >= 0 { workers[next].pending.append(bucket) }
    }

    /// Takes the buckets that the worker should own and that are free, and asks owners for the others.
    func takeBuckets(for worker: Int) {
        guard !workers[worker].pending.isEmpty,
            workers[worker].remainingLease(at: now, settings) >= Model.stop
        else { return }
        let pending = workers[worker].pending
        workers[worker].pending = []
        for bucket in pending { take(bucket, for: worker) }
    }

    private func take(_ bucket: Int, for worker: Int) {
        let isHeld = tenureOf[bucket] >= 0 && tenures[tenureOf[bucket]].worker == worker
        guard assignment.assigned[bucket] == worker, workers[worker].isListed else {
            // Handed over too late: who should own it now takes it.
            if owner[bucket] == worker, !isHeld { release(bucket) }
            return
        }
        if isHeld {
            // It was to move away, and stays.
            wantedBy[bucket] = -1
            return
        }
        let current = owner[bucket]
        if current < 0 || current == worker || mayTake(from: workers[current]) {
            owner[bucket] = worker
            wantedBy[bucket] = -1
            beginTenure(of: bucket, by: worker)
        } else {
            wantedBy[bucket] = worker
            workers[worker].pending.append(bucket)
        }
    }

    private func release(_ bucket: Int) {
        owner[bucket] = -1
        let next = assignment.assigned[bucket]
        if next >= 0 { workers[next].pending.append(bucket) }
    }

    private func mayTake(from worker: Worker) -> Bool {
        worker.leaseEnd < now || settings.broken == .noLease && worker.lockGoneAt <= now
    }
}
