/// Tenures and their requests: one by one at the hosts of the sample, and as rates at the others.
extension Simulation {
    func beginTenure(of bucket: Int, by worker: Int) {
        guard worker >= 0 else { return ownerless.add(bucket, cause: .join, at: now) }
        let tenure = tenures.count
        let none = [Int](repeating: 0, count: sample.partsOf[bucket].count)
        tenures.append(Tenure(bucket: bucket, worker: worker, inFlight: none))
        tenureOf[bucket] = tenure
        workers[worker].tenures.append(tenure)
        startRequests(of: tenure)
    }

    /// Ends the worker's requests to the bucket's hosts, and closes those in flight.
    func endTenure(_ tenure: Int, cause: Cause) {
        guard tenures[tenure].state != .over else { return }
        tenures[tenure].state = .over
        let bucket = tenures[tenure].bucket
        for (index, part) in sample.partsOf[bucket].enumerated() {
            sample.inFlight[sample.parts[part].host] -= tenures[tenure].inFlight[index]
            tenures[tenure].inFlight[index] = 0
        }
        tenures[tenure].inFlightInAll = 0
        if tenureOf[bucket] == tenure {
            tenureOf[bucket] = -1
            ownerless.add(bucket, cause: cause, at: now)
        }
    }

    /// Gives the bucket's hosts as many requests as they may have.
    func startRequests(of tenure: Int) {
        tenures[tenure].state = .asking
        let bucket = tenures[tenure].bucket
        ownerless.remove(bucket, at: now)
        for (index, part) in sample.partsOf[bucket].enumerated() {
            while tenures[tenure].inFlight[index] < sample.parts[part].share {
                start(Request(tenure: tenure, part: part, index: index))
            }
        }
    }

    private func start(_ request: Request) {
        requestCount += 1
        tenures[request.tenure].inFlight[request.index] += 1
        tenures[request.tenure].inFlightInAll += 1
        let host = sample.parts[request.part].host
        sample.inFlight[host] += 1
        if sample.inFlight[host] > mostAtOnce {
            mostAtOnce = sample.inFlight[host]
            if mostAtOnce > settings.perHost { violation = violation ?? describe(host, by: request.tenure) }
        }
        requests.add(request, endingAt: now + duration(of: request))
    }

    private func describe(_ host: Int, by tenure: Int) -> String {
        let (bucket, worker) = (tenures[tenure].bucket, tenures[tenure].worker)
        let others = tenures.filter { $0.bucket == bucket && $0.worker != worker && $0.inFlightInAll > 0 }
        let holders = others.map { "worker \($0.worker)" }.joined(separator: " and ")
        let time = fixed(Double(now) / Double(ticksPerSecond), 2)
        return "after \(time) s host \(host + 1) of the sample saw \(mostAtOnce) requests at once, and "
            + "\(settings.perHost) are allowed: worker \(worker) took bucket \(bucket) while "
            + "\(holders) had requests in flight"
    }

    private func duration(of request: Request) -> Tick {
        let bits = random.bits()
        // The first 24 bits say whether the request is slow, and the last 10 how slow a usual one is.
        if Double(bits >> 40) < Model.slowShare * 16_777_216 { return ticks(slowRequest()) }
        let latency = sample.parts[request.part].latency
        return max(1, min(Model.deadline, ticks(latency * Model.noise[Int(bits & 1023)])))
    }

    func slowRequest() -> Double { random.between(Model.slowSeconds.least, Model.slowSeconds.most) }

    func endRequests() {
        while let request = requests.popEnded(at: now) { end(request) }
    }

    private func end(_ request: Request) {
        let tenure = request.tenure
        if tenures[tenure].state == .over { return }
        if workers[tenures[tenure].worker].awayUntil > now, settings.broken == .suspended {
            // The request stays open at the host, since the suspended worker does not read the answer.
            requests.add(request, endingAt: now + ticksPerSecond)
        } else if tenures[tenure].state == .asking {
            // The next request takes its place.
            requestCount += 1
            requests.add(request, endingAt: now + duration(of: request))
        } else {
            tenures[tenure].inFlight[request.index] -= 1
            tenures[tenure].inFlightInAll -= 1
            sample.inFlight[sample.parts[request.part].host] -= 1
        }
    }

    /// What each worker fetches in this time, shared evenly among its buckets that have URLs left.
    func fetch(seconds: Double) {
        for number in workers.indices where !workers[number].tenures.isEmpty {
            let asking = workers[number].tenures.filter {
                tenures[$0].state == .asking && urlsLeft[tenures[$0].bucket] > 0
            }
            guard !asking.isEmpty else { continue }
            let share = Model.itemsPerSecond * seconds / Double(asking.count)
            for tenure in asking {
                let bucket = tenures[tenure].bucket
                let count = min(share, urlsLeft[bucket])
                urlsLeft[bucket] -= count
                workers[number].fetched += count
            }
        }
    }
}
