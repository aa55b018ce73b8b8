enum Policy: String {
    /// Each bucket goes to the worker with the highest weight, which is a hash of both.
    case rendezvous
    /// The same among workers with room; no worker takes more than its share, rounded up. Computed anew at each change.
    case capped
    /// As `capped`, but a bucket stays where it is unless its worker goes, or another has fewer buckets by two or more.
    case steady
}

/// Says which worker should own each bucket, from the list of living workers alone.
struct Assignment {
    let policy: Policy
    /// The worker that should own each bucket; -1 if there is none.
    private(set) var assigned: [Int]
    /// How many buckets each worker should own.
    private var counts: [Int] = []
    private var living: [Int] = []
    private let bucketHashes: [UInt64]
    private var workerHashes: [UInt64] = []

    /// The first workers all begin at once.
    init(policy: Policy, buckets: Int, workers: Int, seed: UInt64) {
        self.policy = policy
        assigned = [Int](repeating: -1, count: buckets)
        bucketHashes = (0..<buckets).map { mixed(UInt64($0) &+ mixed(seed &+ 11)) }
        for worker in 0..<workers { register(worker) }
        living = Array(0..<workers)
        if policy == .rendezvous { assignAll(below: Int.max, orBelow: Int.max) } else { assignAnew() }
    }

    mutating func add(_ worker: Int) {
        register(worker)
        living.append(worker)
        switch policy {
        case .rendezvous:
            for bucket in assigned.indices
            where assigned[bucket] < 0 || weight(bucket, worker) > weight(bucket, assigned[bucket]) {
                assign(bucket, to: worker)
            }
        case .capped: assignAnew()
        case .steady: balance()
        }
    }

    mutating func remove(_ worker: Int) {
        living.removeAll { $0 == worker }
        if policy == .capped { return assignAnew() }
        let share = assigned.count / max(1, living.count) + 1
        for bucket in assigned.indices where assigned[bucket] == worker {
            assign(bucket, to: -1)
            assign(bucket, to: best(bucket, below: policy == .steady ? share : Int.max))
        }
        if policy == .steady { balance() }
    }

    private mutating func register(_ worker: Int) {
        while workerHashes.count <= worker {
            workerHashes.append(mixed(UInt64(workerHashes.count) &+ 0xA5A5_0000_0000))
            counts.append(0)
        }
    }

    private func weight(_ bucket: Int, _ worker: Int) -> UInt64 {
        mixed(bucketHashes[bucket] ^ workerHashes[worker])
    }

    private mutating func assign(_ bucket: Int, to worker: Int) {
        if assigned[bucket] >= 0 { counts[assigned[bucket]] -= 1 }
        assigned[bucket] = worker
        if worker >= 0 { counts[worker] += 1 }
    }

    /// The worker with the highest weight of those that have fewer than `cap` buckets; -1 if there is none.
    private func best(_ bucket: Int, below cap: Int) -> Int {
        var best = -1
        var highest: UInt64 = 0
        for worker in living where counts[worker] < cap {
            let weight = weight(bucket, worker)
            if best < 0 || weight > highest {
                best = worker
                highest = weight
            }
        }
        return best
    }

    private mutating func assignAnew() {
        guard !living.isEmpty else { return assignAll(below: 0, orBelow: 0) }
        let share = assigned.count / living.count
        let roundedUp = share + (assigned.count % living.count > 0 ? 1 : 0)
        assignAll(below: policy == .steady ? share : roundedUp, orBelow: roundedUp)
    }

    /// Gives each bucket to a worker below the first cap, and to one below the second when all have reached the first.
    private mutating func assignAll(below cap: Int, orBelow lastCap: Int) {
        for bucket in assigned.indices { assign(bucket, to: -1) }
        for bucket in assigned.indices {
            let worker = best(bucket, below: cap)
            assign(bucket, to: worker >= 0 ? worker : best(bucket, below: lastCap))
        }
    }

    /// Moves buckets from the workers with the most to those with the fewest, until they differ by one at most.
    private mutating func balance() {
        for bucket in assigned.indices where assigned[bucket] < 0 { assign(bucket, to: best(bucket, below: Int.max)) }
        while let fewest = living.min(by: { counts[$0] < counts[$1] }),
            let most = living.max(by: { counts[$0] < counts[$1] }),
            counts[most] > counts[fewest] + 1
        {
            var chosen = -1
            var highest: UInt64 = 0
            for bucket in assigned.indices where assigned[bucket] == most {
                let weight = weight(bucket, fewest)
                if chosen < 0 || weight > highest {
                    chosen = bucket
                    highest = weight
                }
            }
            assign(chosen, to: fewest)
        }
    }
}
