/// A job's place in the claim order.
public struct Precedence: Hashable, Sendable, Comparable {
    public let priority: Int
    public let order: ExecutionOrder
    /// Smaller ids are older jobs.
    public let job: JobID

    public init(priority: Int, order: ExecutionOrder, job: JobID) {
        self.priority = priority
        self.order = order
        self.job = job
    }

    /// `a < b` if `a` is claimed after `b`. At equal priority, LIFO jobs go before FIFO jobs: a user who asks for the
    /// newest items first needs them now.
    public static func < (a: Precedence, b: Precedence) -> Bool {
        if a.priority != b.priority { return a.priority < b.priority }
        switch (a.order, b.order) {
        case (.fifo, .lifo): return true
        case (.lifo, .fifo): return false
        case (.fifo, .fifo): return a.job > b.job
        case (.lifo, .lifo): return a.job < b.job
        }
    }
}

extension JobDefinition {
    /// The job's place in the claim order.
    public var precedence: Precedence {
        Precedence(priority: priority, order: order, job: id)
    }
}

/// The queued items of a job that are claimed at one priority.
struct ClaimQueue {
    let job: JobDefinition
    /// The priority of items with their own; nil for all other items.
    let priority: Int?

    var precedence: Precedence { Precedence(priority: priority ?? job.priority, order: job.order, job: job.id) }
}

/// Which stalled jobs to pass over: jobs of which a worker already holds many items that make no progress.
public struct StalledJobPolicy: Sendable {
    public enum Otherwise: Sendable {
        /// Claims from them as usual if no other job of the highest priority has items.
        case asUsual
        /// Jobs of lower priority go before them, too. If there are only stalled jobs, the one with the fewest items in
        /// flight goes first.
        case least
        /// Claims nothing from them.
        case nothing
    }

    /// Items in flight of each stalled job.
    public let inFlight: [JobID: Int]
    public let otherwise: Otherwise

    public init(_ inFlight: [JobID: Int] = [:], otherwise: Otherwise = .asUsual) {
        self.inFlight = inFlight
        self.otherwise = otherwise
    }

    func choose(from all: [ClaimQueue]) -> [ClaimQueue] {
        guard !inFlight.isEmpty, let highest = all.map(\.precedence.priority).max() else { return all }
        let others = all.filter { inFlight[$0.job.id] == nil }
        switch otherwise {
        case .nothing: return others
        case .asUsual:
            let equals = others.filter { $0.precedence.priority == highest }
            return equals.isEmpty ? all : equals
        case .least:
            guard others.isEmpty else { return others }
            return all.enumerated().sorted { a, b in
                (inFlight[a.element.job.id] ?? 0, a.offset) < (inFlight[b.element.job.id] ?? 0, b.offset)
            }.map(\.element)
        }
    }
}
