/// A rule of the design that a run breaks, to show that the simulation notices it. `scripts/simulate-ownership --help`
/// describes each.
enum BrokenRule: String {
    case noDrain = "no-drain"
    case wrongClock = "wrong-clock"
    case noAbort = "no-abort"
    case noLease = "no-lease"
    case suspended
}

/// What the command line asks for.
struct Settings {
    let workers: Int
    let hosts: Int
    let minutes: Int
    let seed: UInt64
    /// Requests that a host may see at once.
    let perHost: Int
    /// How long a worker's lease lasts, in seconds.
    let lease: Int
    /// A part of a host has at most one in so many of the URLs that one machine fetches in `evenTime`.
    let split: Int
    let broken: BrokenRule?
    let isJSON: Bool

    /// Reads the nine arguments that scripts/simulate-ownership passes, which has checked their ranges.
    init?(_ arguments: some Collection<String>) {
        let arguments = Array(arguments)
        guard arguments.count == 9 else { return nil }
        let numbers = arguments[..<7].compactMap { UInt32($0) }.map(Int.init)
        guard numbers.count == 7 else { return nil }
        broken = BrokenRule(rawValue: arguments[7])
        guard broken != nil || arguments[7] == "none" else { return nil }
        (workers, hosts, minutes, seed) = (numbers[0], numbers[1], numbers[2], UInt64(numbers[3]))
        (perHost, lease, split) = (numbers[4], numbers[5], numbers[6])
        isJSON = arguments[8] == "json"
    }

    /// The URLs of all hosts.
    var urls: Double { 100 * Double(hosts) }
    /// How many seconds the workers need if the work is spread evenly over them.
    var evenTime: Double { urls / (Double(workers) * Model.itemsPerSecond) }
    /// How often each kind of change happens: 20 times in an hour with 1,000 workers.
    var changesPerCause: Int { max(2, workers * minutes / 3000) }
}
