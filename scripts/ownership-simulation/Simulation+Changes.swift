/// Workers that come and go, and who should then own which bucket.
extension Simulation {
    /// A new worker: its clock runs wrong by up to 0.02 %, and that of one worker in 50 by up to 1 %.
    func startWorker() {
        var worker = Worker()
        worker.clockRate = 1 + (random.below(50) == 0 ? 0.01 : 0.0002) * random.between(-1, 1)
        worker.sentAt = now - (now == 0 ? random.below(Model.heartbeat) : 0)
        worker.leaseEnd = worker.sentAt + settings.lease * ticksPerSecond
        pollers[random.below(Model.poll)].append(workers.count)
        workers.append(worker)
    }

    func apply(_ cause: Cause) {
        if cause == .join {
            startWorker()
            return list(workers.count - 1, cause: .join)
        }
        let candidates = workers.indices.filter {
            workers[$0].isListed && workers[$0].isAlive && !workers[$0].isLeaving && workers[$0].awayUntil <= now
        }
        guard candidates.count > 1 else { return }
        let worker = candidates[random.below(candidates.count)]
        switch cause {
        case .join: break
        case .leave: workers[worker].isLeaving = true
        case .crash: crash(worker)
        case .disconnect: disconnect(worker)
        }
    }

    private func crash(_ worker: Int) {
        workers[worker].isAlive = false
        workers[worker].lockGoneAt = now + (random.below(10) == 0 ? Model.lateDeathNoticed : Model.deathNoticed)
        for tenure in workers[worker].tenures { endTenure(tenure, cause: .crash) }
        workers[worker].tenures = []
    }

    private func disconnect(_ worker: Int) {
        // Every second loss is longer than the lease.
        let isLong = changes.count % 2 == 0 || settings.broken != nil
        let lease = Double(settings.lease)
        let length = ticks(random.between(isLong ? lease + 20 : 1, isLong ? lease + 60 : lease))
        workers[worker].awayUntil = now + length
        let noticed = ticks(random.between(5, 15))
        // The kernel keeps the connections of a suspended worker open.
        if settings.broken != .suspended, noticed < length { workers[worker].lockGoneAt = now + noticed }
    }

    /// Puts a worker on the list of the living.
    func list(_ worker: Int, cause: Cause) {
        workers[worker].isListed = true
        reassign(cause) { $0.add(worker) }
    }

    /// Takes off the list who has left, whose connection is gone, and whose lease has run out.
    func reviewLiving() {
        for number in workers.indices where workers[number].isListed {
            let worker = workers[number]
            guard worker.isLeaving || worker.lockGoneAt <= now || worker.leaseEnd < now else { continue }
            workers[number].isListed = false
            let cause: Cause = worker.isLeaving ? .leave : worker.isAlive ? .disconnect : .crash
            reassign(cause) { $0.remove(number) }
        }
    }

    private func reassign(_ cause: Cause, _ change: (inout Assignment) -> Void) {
        let before = assignment.assigned
        change(&assignment)
        var count = 0
        for bucket in 0..<buckets where assignment.assigned[bucket] != before[bucket] {
            count += 1
            moveCause[bucket] = cause
            let next = assignment.assigned[bucket]
            if next >= 0 { workers[next].pending.append(bucket) }
        }
        moves[cause.rawValue].append(count)
    }
}
