// The simulation behind scripts/simulate-ownership, which builds it and checks its arguments.
//
// One tick is 10 ms. The database, which is one place with one clock, is the fields of `Simulation`. Workers look at it
// once a second, and renew their leases every five. Requests are simulated one by one at the largest hosts and at a
// random sample; these hosts never run out of URLs, so each of them always has as many requests as it may have.

import Glibc

typealias Tick = Int
let ticksPerSecond = 100

func seconds(_ count: Double) -> Tick { Tick((count * Double(ticksPerSecond)).rounded()) }

// MARK: - Random numbers

/// The finalizer of SplitMix64: every bit of the result depends on every bit of the value.
func mixed(_ value: UInt64) -> UInt64 {
    var bits = value &+ 0x9E37_79B9_7F4A_7C15
    bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
    bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
    return bits ^ (bits >> 31)
}

struct Random {
    var state: UInt64

    mutating func bits() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return mixed(state)
    }

    mutating func below(_ count: Int) -> Int { Int(truncatingIfNeeded: bits() >> 33) % count }
    mutating func fraction() -> Double { Double(bits() >> 11) / 9_007_199_254_740_992 }
    mutating func between(_ low: Double, _ high: Double) -> Double { low + (high - low) * fraction() }

    mutating func normal() -> Double {
        (-2 * log(1 - fraction())).squareRoot() * cos(2 * Double.pi * fraction())
    }
}

// MARK: - The model's figures

struct Settings {
    var workers = 1000
    var hosts = 10_000_000
    var minutes = 60
    var seed: UInt64 = 1
    var perHost = 6
    var lease = 30
    /// A host is split into parts of at most one in so many of the URLs that one machine fetches in the time.
    var split = 1
    var broken = "none"
    var isJSON = false

    /// The URLs of all hosts.
    var urls: Double { 100 * Double(hosts) }
    /// How long the workers need if the work is spread evenly over them.
    var evenTime: Double { urls / (Double(workers) * Model.itemsPerSecond) }
    /// How often each kind of change happens: 20 times in an hour with 1,000 workers.
    var changes: Int { max(2, workers * minutes / 3000) }
}

enum Model {
    /// Images of one machine, as docs/reference/performance.md has them: 600 in 5.4 s.
    static let itemsPerSecond = 111.0
    /// Requests of a worker that are in flight, over all its hosts.
    static let inFlight = 64
    static let poll = seconds(1)
    static let heartbeat = seconds(5)
    /// How long before the end of its lease an owner starts no more requests, and closes those in flight.
    static let stop = 8.0
    static let abort = 3.0
    /// How long an owner drains a bucket before it closes the requests in flight.
    static let drain = seconds(5)
    /// No request takes longer.
    static let deadline = seconds(60)
    static let slowClock = 60.0
    /// Answers of hosts: the median host takes 0.2 s, one host in 40 takes less than 50 ms or more than 0.8 s.
    static let latencies = quantiles(median: 0.2, sigma: 0.7)
    /// Requests of one host; one request in 1,000 takes 5 to 60 s instead.
    static let noise = quantiles(median: 1, sigma: 0.5)
    static let slowShare = 0.001
    /// The mean of `noise`.
    static let meanNoise = exp(0.125)
    /// The slow ones of the requests that are in flight at a moment; the mean of `latencies` is 0.2 × exp(0.245).
    static let slowInFlight = slowShare * 32.5 / (slowShare * 32.5 + 0.2 * exp(0.245) * meanNoise)

    /// 1,024 values of a lognormal distribution, from the least to the greatest.
    private static func quantiles(median: Double, sigma: Double) -> [Double] {
        var random = Random(state: 7)
        let values = (0..<65_536).map { _ in median * exp(sigma * random.normal()) }.sorted()
        return (0..<1024).map { values[$0 * 64 + 32] }
    }
}

enum Cause: Int, CaseIterable {
    case join, leave, crash, disconnect
    var name: String { ["a join", "a leave", "a crash", "a lost connection"][rawValue] }
    var key: String { ["join", "leave", "crash", "lost_connection"][rawValue] }
}

enum Policy: String {
    /// Each bucket goes to the worker with the highest weight.
    case rendezvous
    /// The same among workers with room; no worker takes more than its share, rounded up. Computed anew at each change.
    case capped
    /// As `capped`, but a bucket stays where it is unless its worker goes, or another has fewer buckets by two or more.
    case steady
}

// MARK: - Hosts

/// A host, or one part of a host that is split.
struct Part {
    var host: Int32
    var bucket: Int32
    var share: Int32
    var latency: Double
}

/// All hosts, added up in 65,536 fine buckets. Coarser buckets are ranges of them.
struct Population {
    static let fine = 65_536
    var hosts = [Double](repeating: 0, count: fine)
    var urls = [Double](repeating: 0, count: fine)
    /// The URLs that the limit of each host lets through in `Settings.evenTime`.
    var work = [Double](repeating: 0, count: fine)
    var splitHosts = 0
    var parts = 0
    var largest = 0.0
    private let settings: Settings
    private let factor: Double

    init(_ settings: Settings) {
        self.settings = settings
        var harmonic = 0.0
        for rank in 1...settings.hosts { harmonic += 1 / Double(rank) }
        factor = settings.urls / harmonic
        largest = factor
        for rank in 1...settings.hosts {
            let count = factor / Double(rank)
            let hash = self.hash(rank)
            let parts = self.parts(of: rank)
            if parts > 1 { splitHosts += 1; self.parts += parts }
            for part in 0..<parts {
                let place = Int(place(hash, part, of: parts))
                let rate = Double(share(part, of: parts)) / (latency(hash) * Model.meanNoise)
                hosts[place] += 1 / Double(parts)
                urls[place] += count / Double(parts)
                work[place] += min(count / Double(parts), rate * settings.evenTime)
            }
        }
    }

    private func hash(_ rank: Int) -> UInt64 { mixed(UInt64(rank) &* 0xD6E8_FEB8_6659_FD93 ^ mixed(settings.seed)) }
    private func latency(_ hash: UInt64) -> Double { Model.latencies[Int(hash >> 20 & 1023)] }
    private func place(_ hash: UInt64, _ part: Int, of parts: Int) -> UInt64 {
        (parts == 1 ? hash : mixed(hash &+ UInt64(part) &+ 1)) >> 48
    }

    /// One, unless the host has more URLs than one machine fetches in the time, or than `Settings.split` allows.
    private func parts(of rank: Int) -> Int {
        let machines = factor / Double(rank) / (Model.itemsPerSecond * settings.evenTime)
        let parts = (machines * Double(settings.split)).rounded(.up)
        return Int(max(1, min(parts, Double(settings.perHost))))
    }

    private func share(_ part: Int, of parts: Int) -> Int {
        settings.perHost / parts + (part < settings.perHost % parts ? 1 : 0)
    }

    /// The parts of a host, for `buckets` buckets.
    func sample(_ rank: Int, as number: Int, buckets: Int) -> [Part] {
        let hash = hash(rank)
        let parts = parts(of: rank)
        return (0..<parts).map { part in
            Part(
                host: Int32(number), bucket: Int32(Int(place(hash, part, of: parts)) / (Self.fine / buckets)),
                share: Int32(share(part, of: parts)), latency: latency(hash))
        }
    }

    func added(_ values: [Double], buckets: Int) -> [Double] {
        let width = Self.fine / buckets
        return (0..<buckets).map { values[($0 * width)..<(($0 + 1) * width)].reduce(0, +) }
    }
}

// MARK: - Assignment

/// Says which worker should own each bucket, from the list of living workers alone.
struct Assignment {
    let policy: Policy
    private(set) var should: [Int32]
    private(set) var counts: [Int] = []
    private(set) var living: [Int32] = []
    private let bucketHashes: [UInt64]
    private var workerHashes: [UInt64] = []

    init(policy: Policy, buckets: Int, seed: UInt64) {
        self.policy = policy
        should = [Int32](repeating: -1, count: buckets)
        bucketHashes = (0..<buckets).map { mixed(UInt64($0) &+ mixed(seed &+ 11)) }
    }

    /// The first workers, who all begin at once.
    init(policy: Policy, buckets: Int, workers: Int, seed: UInt64) {
        self.init(policy: policy, buckets: buckets, seed: seed)
        for worker in 0..<workers { note(Int32(worker)) }
        living = (0..<workers).map(Int32.init)
        if policy == .rendezvous { fill(cap: Int.max, rest: Int.max) } else { fillAnew() }
    }

    private mutating func note(_ worker: Int32) {
        while workerHashes.count <= Int(worker) {
            workerHashes.append(mixed(UInt64(workerHashes.count) &+ 0xA5A5_0000_0000))
            counts.append(0)
        }
    }

    private func weight(_ bucket: Int, _ worker: Int32) -> UInt64 {
        mixed(bucketHashes[bucket] ^ workerHashes[Int(worker)])
    }

    private mutating func give(_ bucket: Int, to worker: Int32) {
        if should[bucket] >= 0 { counts[Int(should[bucket])] -= 1 }
        should[bucket] = worker
        if worker >= 0 { counts[Int(worker)] += 1 }
    }

    private func best(_ bucket: Int, cap: Int) -> Int32 {
        var best: Int32 = -1
        var most: UInt64 = 0
        for worker in living where counts[Int(worker)] < cap {
            let weight = weight(bucket, worker)
            if best < 0 || weight > most { best = worker; most = weight }
        }
        return best
    }

    private mutating func fill(cap: Int, rest: Int) {
        for bucket in should.indices { give(bucket, to: -1) }
        for bucket in should.indices {
            let worker = best(bucket, cap: cap)
            give(bucket, to: worker >= 0 ? worker : best(bucket, cap: rest))
        }
    }

    private mutating func fillAnew() {
        guard !living.isEmpty else { return fill(cap: 0, rest: 0) }
        let share = should.count / living.count
        let roundedUp = share + (should.count % living.count > 0 ? 1 : 0)
        fill(cap: policy == .steady ? share : roundedUp, rest: roundedUp)
    }

    mutating func add(_ worker: Int32) {
        note(worker)
        living.append(worker)
        switch policy {
        case .rendezvous:
            for bucket in should.indices
            where should[bucket] < 0 || weight(bucket, worker) > weight(bucket, should[bucket]) {
                give(bucket, to: worker)
            }
        case .capped: fillAnew()
        case .steady: level()
        }
    }

    mutating func remove(_ worker: Int32) {
        living.removeAll { $0 == worker }
        if policy == .capped { return fillAnew() }
        let share = should.count / max(1, living.count) + 1
        for bucket in should.indices where should[bucket] == worker {
            give(bucket, to: -1)
            give(bucket, to: best(bucket, cap: policy == .steady ? share : Int.max))
        }
        if policy == .steady { level() }
    }

    /// Moves buckets from the workers with the most to those with the fewest, until they differ by one at most.
    private mutating func level() {
        for bucket in should.indices where should[bucket] < 0 { give(bucket, to: best(bucket, cap: Int.max)) }
        while let low = living.min(by: { counts[Int($0)] < counts[Int($1)] }),
            let high = living.max(by: { counts[Int($0)] < counts[Int($1)] }),
            counts[Int(high)] > counts[Int(low)] + 1
        {
            var chosen = -1
            var most: UInt64 = 0
            for bucket in should.indices where should[bucket] == high {
                let weight = weight(bucket, low)
                if chosen < 0 || weight > most { chosen = bucket; most = weight }
            }
            give(chosen, to: low)
        }
    }
}

// MARK: - The simulation

struct Worker {
    var isAlive = true
    var isLeaving = false
    /// The database counts it among the living.
    var isListed = true
    var sentAt: Tick = 0
    /// By the clock of the database.
    var leaseEnd: Tick = 0
    /// The database can't be reached before, or the worker is suspended until then.
    var awayUntil: Tick = 0
    /// When the database notices that the worker's connection is gone.
    var lockGoneAt = Tick.max
    /// Seconds of the worker's clock in a second.
    var clockRate = 1.0
    var tenures: [Int32] = []
    /// Buckets that it should own and doesn't yet, or that it has been given.
    var pending: [Int32] = []
    var fetched = 0.0
}

/// One worker's time with one bucket.
struct Tenure {
    enum State { case asking, paused, draining, over }
    let bucket: Int32
    let worker: Int32
    var state = State.paused
    /// Requests in flight at each simulated part of the bucket.
    var inFlight: [Int32]
    var total = 0
    var drainBegan: Tick = 0
    /// When the requests to hosts that aren't simulated one by one have ended.
    var restEnds: Tick = 0
}

struct Request {
    var tenure: Int32
    var part: Int32
    var index: Int32
    /// The next request that ends in the same tick.
    var next: Int32
}

struct Change {
    let at: Tick
    let cause: Cause
}

struct Spans {
    var lengths: [Tick] = []

    func quantile(_ share: Double) -> Double {
        guard !lengths.isEmpty else { return 0 }
        let sorted = lengths.sorted()
        return Double(sorted[min(sorted.count - 1, Int(share * Double(sorted.count)))]) / Double(ticksPerSecond)
    }
    var greatest: Double { Double(lengths.max() ?? 0) / Double(ticksPerSecond) }
}

final class Simulation {
    private static let wheelSize = 8192
    let settings: Settings
    let buckets: Int
    let policy: Policy
    let end: Tick
    private(set) var now: Tick = 0
    private var random: Random
    private(set) var assignment: Assignment
    private(set) var workers: [Worker] = []
    private var pollers = [[Int32]](repeating: [], count: Model.poll)
    private var changes: [Change] = []
    // The database's table of buckets.
    private var owner: [Int32]
    private var wantedBy: [Int32]
    // What each bucket has.
    let hosts: [Double]
    private(set) var left: [Double]
    private var tenureOf: [Int32]
    private var idleSince: [Tick]
    private var idleCause: [Cause]
    private var moveCause: [Cause]
    private var partsOf: [[Int32]]
    // Requests, one by one.
    private var parts: [Part] = []
    private var tenures: [Tenure] = []
    private var requests: [Request] = []
    private var freeRequests: [Int32] = []
    private var wheel = [Int32](repeating: -1, count: Simulation.wheelSize)
    private var hostInFlight: [Int32] = []
    // What is measured.
    private(set) var requestCount = 0
    private(set) var mostAtOnce: Int32 = 0
    private(set) var violation: String?
    private(set) var spans = [Spans](repeating: Spans(), count: Cause.allCases.count)
    private(set) var moves = [[Int]](repeating: [], count: Cause.allCases.count)
    private var idleHosts = 0.0
    private var idleTime = 0.0
    private(set) var mostIdle = 0.0
    private(set) var idleAtEnd = 0
    var simulatedHosts: Int { hostInFlight.count }
    var idleShare: Double { idleTime / Double(settings.minutes * 60) / Double(settings.hosts) }

    init(_ settings: Settings, _ population: Population, buckets: Int, policy: Policy, isDetailed: Bool) {
        self.settings = settings
        self.buckets = buckets
        self.policy = policy
        end = settings.minutes * 60 * ticksPerSecond
        random = Random(state: mixed(settings.seed &+ 3))
        assignment = Assignment(policy: policy, buckets: buckets, workers: settings.workers, seed: settings.seed)
        hosts = population.added(population.hosts, buckets: buckets)
        left = population.added(population.work, buckets: buckets)
        owner = assignment.should
        wantedBy = [Int32](repeating: -1, count: buckets)
        tenureOf = [Int32](repeating: -1, count: buckets)
        idleSince = [Tick](repeating: -1, count: buckets)
        idleCause = [Cause](repeating: .join, count: buckets)
        moveCause = idleCause
        partsOf = [[Int32]](repeating: [], count: buckets)
        chooseHosts(population, isDetailed: isDetailed)
        for _ in 0..<settings.workers { begin() }
        for bucket in 0..<buckets { start(bucket, owner[bucket]) }
        planChanges()
    }

    /// The largest hosts, and random ones: one in each bucket for the detailed run, 300 otherwise.
    private func chooseHosts(_ population: Population, isDetailed: Bool) {
        let largest = min(settings.hosts / 2, isDetailed ? 256 : 100)
        for rank in 1...largest { add(population.sample(rank, as: rank - 1, buckets: buckets)) }
        var number = largest
        for _ in 0..<(isDetailed ? 20 * buckets : 300) {
            let rank = largest + 1 + random.below(settings.hosts - largest)
            let sample = population.sample(rank, as: number, buckets: buckets)
            if isDetailed, !partsOf[Int(sample[0].bucket)].isEmpty { continue }
            add(sample)
            number += 1
        }
        hostInFlight = [Int32](repeating: 0, count: number)
    }

    private func add(_ sample: [Part]) {
        for part in sample {
            partsOf[Int(part.bucket)].append(Int32(parts.count))
            parts.append(part)
        }
    }

    private func planChanges() {
        for cause in Cause.allCases {
            for _ in 0..<settings.changes {
                changes.append(Change(at: seconds(random.between(0.02, 0.9) * Double(end) / 100), cause: cause))
            }
        }
        changes.sort { ($0.at, $0.cause.rawValue) > ($1.at, $1.cause.rawValue) }
    }

    /// A new worker: its clock runs wrong by up to 0.02 %, and that of one worker in 50 by 1 %.
    private func begin() {
        var worker = Worker()
        worker.clockRate = 1 + (random.below(50) == 0 ? 0.01 : 0.0002) * random.between(-1, 1)
        worker.sentAt = now - (now == 0 ? random.below(Model.heartbeat) : 0)
        worker.leaseEnd = worker.sentAt + settings.lease * ticksPerSecond
        pollers[random.below(Model.poll)].append(Int32(workers.count))
        workers.append(worker)
    }

    func run() {
        while now < end, violation == nil {
            now += 1
            while let change = changes.last, change.at <= now {
                changes.removeLast()
                happen(change.cause)
            }
            endRequests()
            for worker in pollers[now % Model.poll] where workers[Int(worker)].isAlive { poll(worker) }
            if now % ticksPerSecond == 0 {
                reviewLiving()
                idleTime += idleHosts
                mostIdle = max(mostIdle, idleHosts / Double(settings.hosts))
            }
            if now % (5 * ticksPerSecond) == 0 { fetch(seconds: 5) }
        }
        // Those that still have no owner have waited at least this long.
        for bucket in 0..<buckets where idleSince[bucket] >= 0 {
            idleAtEnd += 1
            spans[idleCause[bucket].rawValue].lengths.append(now - idleSince[bucket])
        }
    }

    // MARK: Changes

    private func happen(_ cause: Cause) {
        if cause == .join {
            begin()
            list(Int32(workers.count - 1), cause: .join)
            return
        }
        let candidates = workers.indices.filter {
            workers[$0].isListed && workers[$0].isAlive && !workers[$0].isLeaving && workers[$0].awayUntil <= now
        }
        guard candidates.count > 1 else { return }
        let worker = candidates[random.below(candidates.count)]
        switch cause {
        case .join: break
        case .leave:
            workers[worker].isLeaving = true
        case .crash:
            // The kernel closes a dead program's connections at once; those of a dead machine are noticed late.
            workers[worker].isAlive = false
            workers[worker].lockGoneAt = now + (random.below(10) == 0 ? seconds(14) : 4)
            for tenure in workers[worker].tenures { finish(tenure, cause: .crash) }
            workers[worker].tenures = []
        case .disconnect:
            // Every second loss is longer than the lease.
            let isLong = changes.count % 2 == 0 || settings.broken != "none"
            let lease = Double(settings.lease)
            let length = seconds(random.between(isLong ? lease + 20 : 1, isLong ? lease + 60 : lease))
            workers[worker].awayUntil = now + length
            let noticed = seconds(random.between(5, 15))
            if settings.broken != "suspended", noticed < length { workers[worker].lockGoneAt = now + noticed }
        }
    }

    private func list(_ worker: Int32, cause: Cause) {
        workers[Int(worker)].isListed = true
        reassign(cause, of: worker) { $0.add(worker) }
    }

    /// The database's view: who has left, whose connection is gone, whose lease has run out.
    private func reviewLiving() {
        for number in workers.indices where workers[number].isListed {
            let worker = workers[number]
            guard worker.isLeaving || worker.lockGoneAt <= now || worker.leaseEnd < now else { continue }
            workers[number].isListed = false
            let cause: Cause = worker.isLeaving ? .leave : worker.isAlive ? .disconnect : .crash
            reassign(cause, of: Int32(number)) { $0.remove(Int32(number)) }
        }
    }

    private func reassign(_ cause: Cause, of worker: Int32, _ change: (inout Assignment) -> Void) {
        let before = assignment.should
        change(&assignment)
        var count = 0
        for bucket in 0..<buckets where assignment.should[bucket] != before[bucket] {
            count += 1
            moveCause[bucket] = cause
            let next = assignment.should[bucket]
            if next >= 0 { workers[Int(next)].pending.append(Int32(bucket)) }
        }
        moves[cause.rawValue].append(count)
    }

    // MARK: A worker's second

    private func poll(_ number: Int32) {
        let worker = workers[Int(number)]
        let isAway = worker.awayUntil > now
        if isAway, settings.broken == "suspended" { return }
        if !isAway, now - worker.sentAt >= Model.heartbeat { renew(number) }
        keepToLease(number)
        guard !isAway else { return }
        giveUp(number)
        take(number)
        if workers[Int(number)].isLeaving, workers[Int(number)].tenures.isEmpty { workers[Int(number)].isAlive = false }
    }

    private func renew(_ number: Int32) {
        // The lease counts from when the database has the heartbeat: 50 ms later at most, and one in 100 up to 3 s.
        let delay = random.below(100) == 0 ? random.below(seconds(3)) : random.below(seconds(0.05))
        workers[Int(number)].sentAt = now
        workers[Int(number)].leaseEnd = now + delay + settings.lease * ticksPerSecond
        workers[Int(number)].lockGoneAt = Tick.max
        if !workers[Int(number)].isListed, !workers[Int(number)].isLeaving { list(number, cause: .disconnect) }
    }

    /// Seconds that the worker may still count on, by its own clock and from when it sent the last heartbeat.
    private func remaining(_ worker: Worker) -> Double {
        if settings.broken == "wrong-clock" {
            return Double(worker.leaseEnd - now) / Double(ticksPerSecond) + Model.slowClock
        }
        return Double(settings.lease) - Double(now - worker.sentAt) / Double(ticksPerSecond) * worker.clockRate
    }

    /// Starts nothing more when the lease is about to end, and closes what is in flight before it ends.
    private func keepToLease(_ number: Int32) {
        let remaining = remaining(workers[Int(number)])
        if remaining < Model.abort, settings.broken != "no-abort" {
            for tenure in workers[Int(number)].tenures {
                finish(tenure, cause: .disconnect)
                workers[Int(number)].pending.append(tenures[Int(tenure)].bucket)
            }
            workers[Int(number)].tenures = []
        } else {
            for tenure in workers[Int(number)].tenures {
                if remaining < Model.stop, tenures[Int(tenure)].state == .asking {
                    tenures[Int(tenure)].state = .paused
                    idle(Int(tenures[Int(tenure)].bucket), cause: .disconnect)
                } else if remaining >= Model.stop, tenures[Int(tenure)].state == .paused {
                    ask(tenure)
                }
            }
        }
    }

    /// Drains the buckets that others should own, and hands over those that have been drained.
    private func giveUp(_ number: Int32) {
        let mine = workers[Int(number)].tenures
        var kept: [Int32] = []
        kept.reserveCapacity(mine.count)
        for tenure in mine {
            let bucket = Int(tenures[Int(tenure)].bucket)
            if owner[bucket] != number {
                // Taken by another worker, which may only happen after this one's lease.
                finish(tenure, cause: .disconnect)
                continue
            }
            let wanted = wantedBy[bucket]
            let isWanted = wanted >= 0 && wanted != number && workers[Int(wanted)].isListed
            switch tenures[Int(tenure)].state {
            case .asking where isWanted, .paused where isWanted:
                beginDrain(tenure, bucket)
                if settings.broken == "no-drain" { handOver(tenure, bucket) } else { kept.append(tenure) }
            case .draining:
                if !isWanted, !workers[Int(number)].isLeaving {
                    tenures[Int(tenure)].state = .paused
                    ask(tenure)
                    kept.append(tenure)
                } else if isDrained(tenure) || now - tenures[Int(tenure)].drainBegan >= Model.drain {
                    finish(tenure, cause: moveCause[bucket])
                    handOver(tenure, bucket)
                } else {
                    kept.append(tenure)
                }
            default: kept.append(tenure)
            }
        }
        workers[Int(number)].tenures = kept
    }

    private func beginDrain(_ tenure: Int32, _ bucket: Int) {
        let worker = workers[Int(tenures[Int(tenure)].worker)]
        tenures[Int(tenure)].state = .draining
        tenures[Int(tenure)].drainBegan = now
        idle(bucket, cause: moveCause[bucket])
        // The rest of each request that is in flight. Slow requests are few among those that begin, but one in ten of
        // those that are in flight at a moment, since they take so long.
        var longest = 0.0
        for _ in 0..<max(1, Model.inFlight / max(1, worker.tenures.count)) {
            let isSlow = random.fraction() < Model.slowInFlight
            let usual = Model.latencies[random.below(1024)] * Model.noise[random.below(1024)]
            longest = max(longest, (isSlow ? random.between(5, 60) : usual) * random.fraction())
        }
        tenures[Int(tenure)].restEnds = now + seconds(longest)
    }

    private func isDrained(_ tenure: Int32) -> Bool {
        tenures[Int(tenure)].total == 0 && tenures[Int(tenure)].restEnds <= now
    }

    private func handOver(_ tenure: Int32, _ bucket: Int) {
        let next = wantedBy[bucket]
        owner[bucket] = next
        wantedBy[bucket] = -1
        tenureOf[bucket] = -1
        if next >= 0 { workers[Int(next)].pending.append(Int32(bucket)) }
    }

    /// Takes the buckets that the worker should own and that are free, and asks owners for the others.
    private func take(_ number: Int32) {
        guard !workers[Int(number)].pending.isEmpty, remaining(workers[Int(number)]) >= Model.stop else { return }
        let pending = workers[Int(number)].pending
        workers[Int(number)].pending = []
        for bucket in pending {
            let place = Int(bucket)
            let holds = tenureOf[place] >= 0 && tenures[Int(tenureOf[place])].worker == number
            guard assignment.should[place] == number, workers[Int(number)].isListed else {
                // Given too late: who should own it now takes it.
                if owner[place] == number, !holds { release(place) }
                continue
            }
            if holds {
                // It was to move away, and stays.
                wantedBy[place] = -1
                continue
            }
            let current = owner[place]
            if current < 0 || current == number || mayTake(from: workers[Int(current)]) {
                owner[place] = number
                wantedBy[place] = -1
                start(place, number)
            } else {
                wantedBy[place] = number
                workers[Int(number)].pending.append(bucket)
            }
        }
    }

    private func release(_ bucket: Int) {
        owner[bucket] = -1
        let next = assignment.should[bucket]
        if next >= 0 { workers[Int(next)].pending.append(Int32(bucket)) }
    }

    private func mayTake(from worker: Worker) -> Bool {
        worker.leaseEnd < now || settings.broken == "no-lease" && worker.lockGoneAt <= now
    }

    // MARK: Tenures and requests

    private func start(_ bucket: Int, _ worker: Int32) {
        guard worker >= 0 else { return idle(bucket, cause: .join) }
        let tenure = Int32(tenures.count)
        let none = [Int32](repeating: 0, count: partsOf[bucket].count)
        tenures.append(Tenure(bucket: Int32(bucket), worker: worker, inFlight: none))
        tenureOf[bucket] = tenure
        workers[Int(worker)].tenures.append(tenure)
        ask(tenure)
    }

    /// The bucket's hosts get as many requests as they may have.
    private func ask(_ tenure: Int32) {
        tenures[Int(tenure)].state = .asking
        let bucket = Int(tenures[Int(tenure)].bucket)
        if idleSince[bucket] >= 0 {
            spans[idleCause[bucket].rawValue].lengths.append(now - idleSince[bucket])
            idleHosts -= hosts[bucket]
            idleSince[bucket] = -1
        }
        for (index, part) in partsOf[bucket].enumerated() {
            while tenures[Int(tenure)].inFlight[index] < parts[Int(part)].share { send(tenure, part, index) }
        }
    }

    private func idle(_ bucket: Int, cause: Cause) {
        guard idleSince[bucket] < 0 else { return }
        idleSince[bucket] = now
        idleCause[bucket] = cause
        idleHosts += hosts[bucket]
    }

    /// The worker's requests to the bucket's hosts end here; what is in flight is closed.
    private func finish(_ tenure: Int32, cause: Cause) {
        let number = Int(tenure)
        guard tenures[number].state != .over else { return }
        tenures[number].state = .over
        let bucket = Int(tenures[number].bucket)
        for (index, part) in partsOf[bucket].enumerated() {
            hostInFlight[Int(parts[Int(part)].host)] -= tenures[number].inFlight[index]
            tenures[number].inFlight[index] = 0
        }
        tenures[number].total = 0
        if tenureOf[bucket] == tenure {
            tenureOf[bucket] = -1
            idle(bucket, cause: cause)
        }
    }

    private func duration(_ latency: Double) -> Tick {
        let bits = random.bits()
        if Double(bits >> 40) < Model.slowShare * 16_777_216 { return seconds(random.between(5, 60)) }
        return max(1, min(Model.deadline, seconds(latency * Model.noise[Int(bits & 1023)])))
    }

    private func send(_ tenure: Int32, _ part: Int32, _ index: Int) {
        requestCount += 1
        tenures[Int(tenure)].inFlight[index] += 1
        tenures[Int(tenure)].total += 1
        let host = Int(parts[Int(part)].host)
        hostInFlight[host] += 1
        if hostInFlight[host] > mostAtOnce {
            mostAtOnce = hostInFlight[host]
            if mostAtOnce > settings.perHost { violation = violation ?? describe(host, by: tenure) }
        }
        let request = freeRequests.popLast() ?? Int32(requests.count)
        if Int(request) == requests.count { requests.append(Request(tenure: 0, part: 0, index: 0, next: -1)) }
        requests[Int(request)] = Request(tenure: tenure, part: part, index: Int32(index), next: -1)
        schedule(request, after: duration(parts[Int(part)].latency))
    }

    private func describe(_ host: Int, by tenure: Int32) -> String {
        let bucket = tenures[Int(tenure)].bucket
        let others = tenures.indices.filter {
            tenures[$0].bucket == bucket && tenures[$0].worker != tenures[Int(tenure)].worker && tenures[$0].total > 0
        }
        let holders = others.map { "worker \(tenures[$0].worker)" }.joined(separator: " and ")
        let time = fixed(Double(now) / Double(ticksPerSecond), 2)
        return "after \(time) s host \(host + 1) of the sample saw \(mostAtOnce) requests at once, and "
            + "\(settings.perHost) are allowed: worker \(tenures[Int(tenure)].worker) took bucket \(bucket) while "
            + "\(holders) had requests in flight"
    }

    private func schedule(_ request: Int32, after delay: Tick) {
        let slot = (now + delay) % Self.wheelSize
        requests[Int(request)].next = wheel[slot]
        wheel[slot] = request
    }

    private func endRequests() {
        var request = wheel[now % Self.wheelSize]
        wheel[now % Self.wheelSize] = -1
        while request >= 0 {
            let ended = requests[Int(request)]
            endRequest(request, ended)
            request = ended.next
        }
    }

    private func endRequest(_ request: Int32, _ ended: Request) {
        let tenure = Int(ended.tenure)
        if tenures[tenure].state == .over {
            freeRequests.append(request)
        } else if workers[Int(tenures[tenure].worker)].awayUntil > now, settings.broken == "suspended" {
            // The host still has the request, since nobody reads its answer.
            schedule(request, after: ticksPerSecond)
        } else if tenures[tenure].state == .asking {
            requestCount += 1
            schedule(request, after: duration(parts[Int(ended.part)].latency))
        } else {
            tenures[tenure].inFlight[Int(ended.index)] -= 1
            tenures[tenure].total -= 1
            hostInFlight[Int(parts[Int(ended.part)].host)] -= 1
            freeRequests.append(request)
        }
    }

    // MARK: The other hosts, as rates

    private func fetch(seconds: Double) {
        for number in workers.indices where !workers[number].tenures.isEmpty {
            let asking = workers[number].tenures.filter {
                tenures[Int($0)].state == .asking && left[Int(tenures[Int($0)].bucket)] > 0
            }
            guard !asking.isEmpty else { continue }
            let share = Model.itemsPerSecond * seconds / Double(asking.count)
            for tenure in asking {
                let bucket = Int(tenures[Int(tenure)].bucket)
                let count = min(share, left[bucket])
                left[bucket] -= count
                workers[number].fetched += count
            }
        }
    }
}

// MARK: - What is printed

func fixed(_ value: Double, _ digits: Int) -> String {
    let scale = pow(10, Double(digits))
    let scaled = Int((abs(value) * scale).rounded())
    let whole = grouped(scaled / Int(scale))
    let rest = String(scaled % Int(scale))
    let sign = value < 0 && scaled > 0 ? "-" : ""
    return digits == 0 ? sign + whole : sign + whole + "." + String(repeating: "0", count: digits - rest.count) + rest
}

func grouped(_ value: Int) -> String {
    var digits = String(value)
    var groups: [Substring] = []
    while digits.count > 3 {
        groups.insert(digits.suffix(3), at: 0)
        digits.removeLast(3)
    }
    return ([Substring(digits)] + groups).joined(separator: ",")
}

func row(_ cells: [String], widths: [Int]) -> String {
    zip(cells, widths).enumerated().map { column, cell in
        let space = String(repeating: " ", count: max(0, cell.1 - cell.0.count))
        return column == 0 ? cell.0 + space : space + cell.0
    }.joined(separator: " ")
}

/// How evenly something is spread over workers.
struct Spread {
    let name: String
    var key: String { name.lowercased().split(separator: " ").joined(separator: "_") }
    let mean: Double
    let p99: Double
    let greatest: Double
    let without: Int

    init(_ name: String, _ values: [Double]) {
        self.name = name
        let sorted = values.sorted()
        mean = values.reduce(0, +) / Double(max(1, values.count))
        let unit = mean > 0 ? mean : 1
        p99 = sorted.isEmpty ? 0 : sorted[sorted.count * 99 / 100] / unit
        greatest = (sorted.last ?? 0) / unit
        without = values.count { $0 == 0 }
    }
}

struct Report {
    let simulation: Simulation
    let spreads: [Spread]
    /// What was fetched, as a part of what the workers at the beginning fetch if none of them ever waits.
    let throughput: Double

    /// Runs it. What is spread is counted before the first change.
    init(_ simulation: Simulation, _ population: Population) {
        self.simulation = simulation
        let count = simulation.settings.workers
        let should = simulation.assignment.should
        func spread(_ name: String, _ values: [Double]) -> Spread {
            var sums = [Double](repeating: 0, count: count)
            for (bucket, worker) in should.enumerated() { sums[Int(worker)] += values[bucket] }
            return Spread(name, sums)
        }
        let urls = population.added(population.urls, buckets: simulation.buckets)
        let before = [
            spread("buckets", [Double](repeating: 1, count: simulation.buckets)),
            spread("hosts", simulation.hosts), spread("URLs", urls), spread("URLs in time", simulation.left),
        ]
        let work = simulation.left.reduce(0, +)
        simulation.run()
        // Those that were there all the time.
        let fetched = simulation.workers.prefix(count).filter { $0.isAlive && $0.isListed }.map(\.fetched)
        let total = simulation.workers.reduce(0) { $0 + $1.fetched }
        let seconds = Double(simulation.settings.minutes * 60)
        spreads = before + [Spread("fetched", fetched)]
        throughput = min(1, total / min(work, Double(count) * Model.itemsPerSecond * seconds))
    }

    var all: Spans { Spans(lengths: simulation.spans.flatMap(\.lengths)) }

    func ideal(_ cause: Cause) -> Double {
        Double(simulation.buckets) / Double(simulation.settings.workers + (cause == .join ? 1 : 0))
    }

    func printDetails() {
        let settings = simulation.settings
        print("\(grouped(simulation.buckets)) buckets, \(simulation.policy.rawValue)")
        print("")
        let wide = [30, 12, 10, 10, 10]
        print(row(["over workers", "mean", "p99/mean", "max/mean", "with none"], widths: wide))
        for spread in spreads {
            print(
                row(
                    [
                        spread.name, fixed(spread.mean, spread.mean < 100 ? 2 : 0), fixed(spread.p99, 2),
                        fixed(spread.greatest, 2), grouped(spread.without),
                    ], widths: wide))
        }
        print("")
        print(row(["buckets moved by", "changes", "mean", "max", "ideal"], widths: wide))
        for cause in Cause.allCases where cause != .disconnect {
            let moves = simulation.moves[cause.rawValue]
            let mean = Double(moves.reduce(0, +)) / Double(max(1, moves.count))
            print(
                row(
                    [cause.name, "\(moves.count)", fixed(mean, 2), "\(moves.max() ?? 0)", fixed(ideal(cause), 2)],
                    widths: wide))
        }
        print("")
        print(row(["seconds without an owner", "buckets", "median", "p99", "max"], widths: wide))
        let causes = Cause.allCases.map { ("after " + $0.name, simulation.spans[$0.rawValue]) }
        for (name, spans) in causes + [("all", all)] {
            print(
                row(
                    [
                        name, grouped(spans.lengths.count), fixed(spans.quantile(0.5), 1),
                        fixed(spans.quantile(0.99), 1), fixed(spans.greatest, 1),
                    ], widths: wide))
        }
        print("")
        print(
            "hosts without an owner: \(fixed(100 * simulation.idleShare, 3)) % on average, "
                + "\(fixed(100 * simulation.mostIdle, 2)) % at the worst moment, "
                + "\(simulation.idleAtEnd) buckets at the end")
        print(
            "requests at once at one host: \(simulation.mostAtOnce) of \(settings.perHost) allowed, in "
                + "\(grouped(simulation.requestCount)) requests to \(grouped(simulation.simulatedHosts)) hosts")
    }

    static let compared = [
        "buckets", "assignment", "none", "max/mean", "rate", "a join", "ideal", "median", "p99", "idle", "at once",
    ]
    static let widths = [8, 11, 6, 9, 7, 8, 8, 7, 6, 8, 8]

    var comparedRow: [String] {
        let moves = simulation.moves[Cause.join.rawValue]
        return [
            grouped(simulation.buckets), simulation.policy.rawValue, grouped(spreads[0].without),
            fixed(spreads[3].greatest, 2), fixed(100 * throughput, 1) + " %",
            fixed(Double(moves.reduce(0, +)) / Double(max(1, moves.count)), 1), fixed(ideal(.join), 1),
            fixed(all.quantile(0.5), 1), fixed(all.quantile(0.99), 1), fixed(100 * simulation.idleShare, 3) + " %",
            "\(simulation.mostAtOnce)",
        ]
    }

    var json: String {
        func number(_ value: Double) -> String { "\((value * 10_000).rounded() / 10_000)" }
        let spread = spreads.map {
            "\"\($0.key)\":{\"mean\":\(number($0.mean)),\"p99_to_mean\":\(number($0.p99)),"
                + "\"max_to_mean\":\(number($0.greatest)),\"workers_without\":\($0.without)}"
        }
        let moved = Cause.allCases.map { "\"\($0.key)\":\(simulation.moves[$0.rawValue])" }
        let spans = Cause.allCases.map { ($0.key, simulation.spans[$0.rawValue]) } + [("all", all)]
        let waits = spans.map {
            "\"\($0.0)\":{\"buckets\":\($0.1.lengths.count),\"median\":\(number($0.1.quantile(0.5))),"
                + "\"p99\":\(number($0.1.quantile(0.99))),\"max\":\(number($0.1.greatest))}"
        }
        return "{\"buckets\":\(simulation.buckets),\"assignment\":\"\(simulation.policy.rawValue)\","
            + "\"spread\":{\(spread.joined(separator: ","))},\"moves\":{\(moved.joined(separator: ","))},"
            + "\"ideal_moves_of_a_join\":\(number(ideal(.join))),"
            + "\"seconds_without_owner\":{\(waits.joined(separator: ","))},\"throughput\":\(number(throughput)),"
            + "\"idle_share\":\(simulation.idleShare),\"most_idle_share\":\(simulation.mostIdle),"
            + "\"most_at_once\":\(simulation.mostAtOnce),\"requests\":\(simulation.requestCount)}"
    }
}

@main struct SimulateOwnership {
    static func main() {
        let arguments = CommandLine.arguments
        guard arguments.count == 10 else { return stop("run scripts/simulate-ownership instead", 64) }
        let numbers = arguments[1...7].compactMap { Int($0) }
        guard numbers.count == 7 else { return stop("the first seven arguments are numbers", 64) }
        let settings = Settings(
            workers: numbers[0], hosts: numbers[1], minutes: numbers[2], seed: UInt64(numbers[3]), perHost: numbers[4],
            lease: numbers[5], split: numbers[6], broken: arguments[8], isJSON: arguments[9] == "json")
        let population = Population(settings)
        let designs: [(buckets: Int, policy: Policy)] = [
            (1024, .rendezvous), (16_384, .rendezvous), (65_536, .rendezvous), (1024, .capped), (16_384, .capped),
            (1024, .steady), (16_384, .steady),
        ]
        if !settings.isJSON { printSettings(settings, population) }
        var reports: [Report] = []
        // A broken rule shows itself in the first design.
        for (buckets, policy) in settings.broken == "none" ? designs : [designs[0]] {
            let simulation = Simulation(
                settings, population, buckets: buckets, policy: policy, isDetailed: reports.isEmpty)
            let report = Report(simulation, population)
            if let violation = simulation.violation {
                return stop("\(buckets) buckets, \(policy.rawValue): \(violation)", 1)
            }
            if !settings.isJSON { show(report, isFirst: reports.isEmpty) }
            reports.append(report)
        }
        guard settings.isJSON else { return }
        print(
            "{\"workers\":\(settings.workers),\"hosts\":\(settings.hosts),\"minutes\":\(settings.minutes),"
                + "\"seed\":\(settings.seed),\"per_host\":\(settings.perHost),\"lease\":\(settings.lease),"
                + "\"split\":\(settings.split),"
                + "\"designs\":[\n\(reports.map(\.json).joined(separator: ",\n"))\n]}")
    }

    private static func printSettings(_ settings: Settings, _ population: Population) {
        let hours = settings.evenTime / 3600
        print(
            "\(grouped(settings.workers)) workers, \(grouped(settings.hosts)) hosts, \(fixed(settings.urls, 0)) URLs "
                + "(Zipf), \(settings.minutes) minutes, seed \(settings.seed)")
        print(
            "lease \(settings.lease) s; \(settings.changes) joins, leaves, crashes and lost connections each; "
                + "\(fixed(Model.itemsPerSecond, 0)) items a second and worker")
        print(
            "the largest host has \(fixed(population.largest, 0)) URLs; \(grouped(population.splitHosts)) hosts are split "
                + "into \(grouped(population.parts)) parts")
        let inTime = 100 * population.work.reduce(0, +) / settings.urls
        print(
            "evenly spread, the work takes \(fixed(hours, 2)) hours; the hosts' limits let \(fixed(inTime, 1)) % of the "
                + "URLs through in this time")
        print("")
    }

    private static func show(_ report: Report, isFirst: Bool) {
        if isFirst {
            report.printDetails()
            print("")
            print("Compared: workers with no bucket, URLs in time (max/mean), share of the full rate,")
            print("buckets that a join moves, seconds without an owner, hosts without an owner on average,")
            print("most requests at once at one host")
            print(row(Report.compared, widths: Report.widths))
        }
        print(row(report.comparedRow, widths: Report.widths))
    }

    private static func stop(_ sentence: String, _ code: Int32) {
        let line = "simulate-ownership: \(sentence)\n"
        fflush(nil)
        _ = line.withCString { write(STDERR_FILENO, $0, strlen($0)) }
        exit(code)
    }
}
