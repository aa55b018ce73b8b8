/// Workers that share the hosts of one queue, for some time.
///
/// The database, which is one place with one clock, is `assignment`, `owner`, `wantedBy`, and what it knows of each
/// worker. Workers poll it once a second, and renew their leases every five. Requests are simulated one by one at the
/// hosts of the sample; at all other hosts they are rates. docs/architecture/internet-scale.md has the rules.
final class Simulation {
    let settings: Settings
    let buckets: Int
    let end: Tick
    var now: Tick = 0
    var random: Random
    var workers: [Worker] = []
    /// The workers that poll in each tick of a second.
    var pollers = [[Int]](repeating: [], count: Model.poll)
    /// What will happen, the last change first.
    var changes: [Change] = []

    // For each bucket; a worker or tenure of -1 is none.
    var assignment: Assignment
    var owner: [Int]
    var wantedBy: [Int]
    var tenureOf: [Int]
    var moveCause: [Cause]
    let hosts: [Double]
    var urlsLeft: [Double]
    var ownerless: OwnerlessBuckets

    var sample: HostSample
    var tenures: [Tenure] = []
    var requests = RequestWheel()

    // What is measured.
    var requestCount = 0
    var mostAtOnce = 0
    /// Names the first host that saw too many requests at once.
    var violation: String?
    /// How many buckets each change moved, by its cause.
    var moves = [[Int]](repeating: [], count: Cause.allCases.count)
    var ownerlessAtEnd = 0

    init(_ settings: Settings, _ population: Population, buckets: Int, policy: Policy, isDetailed: Bool) {
        self.settings = settings
        self.buckets = buckets
        end = settings.minutes * 60 * ticksPerSecond
        var random = Random(state: mixed(settings.seed &+ 3))
        sample = HostSample(population, settings, buckets: buckets, isDetailed: isDetailed, &random)
        self.random = random
        assignment = Assignment(policy: policy, buckets: buckets, workers: settings.workers, seed: settings.seed)
        owner = assignment.assigned
        wantedBy = [Int](repeating: -1, count: buckets)
        tenureOf = [Int](repeating: -1, count: buckets)
        moveCause = [Cause](repeating: .join, count: buckets)
        hosts = Population.added(population.hosts, buckets: buckets)
        urlsLeft = Population.added(population.urlsInTime, buckets: buckets)
        ownerless = OwnerlessBuckets(hosts: hosts)
        for _ in 0..<settings.workers { startWorker() }
        for bucket in 0..<buckets { beginTenure(of: bucket, by: owner[bucket]) }
        changes = Change.planned(settings, until: end, &self.random)
    }

    /// Runs to the end, or until a host sees too many requests at once.
    func run() {
        while now < end, violation == nil {
            now += 1
            while let change = changes.last, change.at <= now {
                changes.removeLast()
                apply(change.cause)
            }
            endRequests()
            for worker in pollers[now % Model.poll] where workers[worker].isAlive { poll(worker) }
            if now % ticksPerSecond == 0 {
                reviewLiving()
                ownerless.countSecond()
            }
            if now % (5 * ticksPerSecond) == 0 { fetch(seconds: 5) }
        }
        ownerlessAtEnd = ownerless.endAll(at: now)
    }

    /// The hosts without an owner, as a part of all and on average.
    var ownerlessShare: Double { ownerless.hostSeconds / Double(settings.minutes * 60) / Double(settings.hosts) }
    /// The same at the worst moment.
    var mostOwnerlessShare: Double { ownerless.mostHosts / Double(settings.hosts) }
}
