// The simulation behind scripts/simulate-ownership, which builds it from these files and checks its arguments.

import Glibc

/// The designs that are compared. The first one is simulated in detail.
private let designs: [(buckets: Int, policy: Policy)] = [
    (1024, .rendezvous), (16_384, .rendezvous), (65_536, .rendezvous), (1024, .capped), (16_384, .capped),
    (1024, .steady), (16_384, .steady),
]

private func simulate(_ settings: Settings) {
    let population = Population(settings)
    if !settings.isJSON { printSettings(settings, population) }
    var reports: [Report] = []
    // A broken rule shows itself in the first design.
    for (buckets, policy) in settings.broken == nil ? designs : [designs[0]] {
        let simulation = Simulation(
            settings, population, buckets: buckets, policy: policy, isDetailed: reports.isEmpty)
        let report = Report(simulation, population)
        if let violation = simulation.violation {
            fail("\(buckets) buckets, \(policy.rawValue): \(violation)", code: 1)
        }
        if !settings.isJSON {
            if reports.isEmpty {
                report.printDetails()
                Report.printHeading()
            }
            report.printRow()
        }
        reports.append(report)
    }
    if settings.isJSON { print(Report.json(reports, settings)) }
}

private func printSettings(_ settings: Settings, _ population: Population) {
    print(
        "\(grouped(settings.workers)) workers, \(grouped(settings.hosts)) hosts, \(fixed(settings.urls, 0)) URLs "
            + "(Zipf), \(settings.minutes) minutes, seed \(settings.seed)")
    print(
        "lease \(settings.lease) s; \(settings.changesPerCause) joins, leaves, crashes and lost connections each; "
            + "\(fixed(Model.itemsPerSecond, 0)) items a second and worker")
    print(
        "the largest host has \(fixed(population.urlsOfLargest, 0)) URLs; \(grouped(population.splitHosts)) hosts are "
            + "split into \(grouped(population.parts)) parts")
    let inTime = 100 * population.urlsInTime.reduce(0, +) / settings.urls
    print(
        "evenly spread, the work takes \(fixed(settings.evenTime / 3600, 2)) hours; the hosts' limits let "
            + "\(fixed(inTime, 1)) % of the URLs through in this time\n")
}

private func fail(_ sentence: String, code: Int32) -> Never {
    // What was printed comes before the error, also where both go to one file.
    fflush(nil)
    let line = "simulate-ownership: \(sentence)\n"
    _ = line.withCString { write(STDERR_FILENO, $0, strlen($0)) }
    exit(code)
}

guard let settings = Settings(CommandLine.arguments.dropFirst()) else {
    fail("run scripts/simulate-ownership, which passes the arguments", code: 64)
}
simulate(settings)
