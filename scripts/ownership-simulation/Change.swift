/// Why a bucket moves to another worker.
enum Cause: Int, CaseIterable {
    case join, leave, crash, disconnect
    var name: String { ["a join", "a leave", "a crash", "a lost connection"][rawValue] }
    /// Of the figures as JSON.
    var key: String { ["join", "leave", "crash", "lost_connection"][rawValue] }
}

/// Something that happens to a worker, which is chosen when it happens.
struct Change {
    let at: Tick
    let cause: Cause

    /// The changes of a run, the last one first. The first 2 % of the time have none, nor have the last 10 %, so that
    /// buckets find an owner before the end.
    static func planned(_ settings: Settings, until end: Tick, _ random: inout Random) -> [Change] {
        var changes: [Change] = []
        for cause in Cause.allCases {
            for _ in 0..<settings.changesPerCause {
                let at = ticks(random.between(0.02, 0.9) * Double(end) / Double(ticksPerSecond))
                changes.append(Change(at: at, cause: cause))
            }
        }
        return changes.sorted { ($0.at, $0.cause.rawValue) > ($1.at, $1.cause.rawValue) }
    }
}
