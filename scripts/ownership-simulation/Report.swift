/// How evenly something is spread over workers.
struct Spread {
    let name: String
    var key: String { name.lowercased().split(separator: " ").joined(separator: "_") }
    let mean: Double
    /// Relative to the mean.
    let p99: Double
    /// Relative to the mean.
    let greatest: Double
    /// Workers that have nothing of it.
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

/// The figures of one simulation.
struct Report {
    let simulation: Simulation
    let buckets: Spread
    let hosts: Spread
    let urls: Spread
    /// The URLs that the limit of each host lets through in `Settings.evenTime`.
    let urlsInTime: Spread
    /// Of the workers that were there all the time.
    let fetched: Spread
    /// What was fetched, as a part of what the workers at the beginning fetch if none of them ever waits.
    let rate: Double

    /// Runs the simulation. What is spread is counted before the first change.
    init(_ simulation: Simulation, _ population: Population) {
        self.simulation = simulation
        let count = simulation.settings.workers
        let assigned = simulation.assignment.assigned
        func spread(_ name: String, _ values: [Double]) -> Spread {
            var sums = [Double](repeating: 0, count: count)
            for (bucket, worker) in assigned.enumerated() { sums[worker] += values[bucket] }
            return Spread(name, sums)
        }
        buckets = spread("buckets", [Double](repeating: 1, count: simulation.buckets))
        hosts = spread("hosts", simulation.hosts)
        urls = spread("URLs", Population.added(population.urls, buckets: simulation.buckets))
        urlsInTime = spread("URLs in time", simulation.urlsLeft)
        let work = simulation.urlsLeft.reduce(0, +)
        simulation.run()
        let present = simulation.workers.prefix(count).filter { $0.isAlive && $0.isListed }
        fetched = Spread("fetched", present.map(\.fetched))
        let total = simulation.workers.reduce(0) { $0 + $1.fetched }
        let seconds = Double(simulation.settings.minutes * 60)
        rate = min(1, total / min(work, Double(count) * Model.itemsPerSecond * seconds))
    }

    var spreads: [Spread] { [buckets, hosts, urls, urlsInTime, fetched] }
    func spans(_ cause: Cause) -> Spans { simulation.ownerless.spans[cause.rawValue] }
    var allSpans: Spans { Spans(lengths: simulation.ownerless.spans.flatMap(\.lengths)) }

    func moves(_ cause: Cause) -> [Int] { simulation.moves[cause.rawValue] }
    func meanMoves(_ cause: Cause) -> Double {
        Double(moves(cause).reduce(0, +)) / Double(max(1, moves(cause).count))
    }

    /// The buckets that a change moves if no bucket moves without need.
    func idealMoves(_ cause: Cause) -> Double {
        Double(simulation.buckets) / Double(simulation.settings.workers + (cause == .join ? 1 : 0))
    }
}
