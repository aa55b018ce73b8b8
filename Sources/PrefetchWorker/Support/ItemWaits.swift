internal import Synchronization

/// Items in flight that wait for something other than their host, for reports.
protocol ItemWaits: Sendable {
    /// Used in place of a host; no host has a space in its name.
    var name: String { get }
    /// Why they wait: a sentence.
    var reason: String { get }
    var counts: (waiting: Int, running: Int) { get }

    func waits(longerThan time: Duration) -> [Int64]
}

/// Items that wait until one of a limited number of processes or calls of one kind takes their work.
final class ProcessTurns: ItemWaits {
    enum Kind: Sendable {
        case helper, command, delegate, loader
    }

    let kind: Kind

    var name: String {
        switch kind {
        case .helper: "helper processes"
        case .command: "transform commands"
        case .delegate: "delegate program"
        case .loader: "loaders of the program"
        }
    }

    /// The item that a task works for.
    @TaskLocal static var item: Int64?

    let slots: Int
    /// Memory that an item needs beside a process.
    private let memory: MemoryBudget?
    private let state = Mutex((waiting: [Int64: ContinuousClock.Instant](), running: Set<Int64>()))

    init(_ kind: Kind, slots: Int, memory: MemoryBudget? = nil) {
        (self.kind, self.slots, self.memory) = (kind, slots, memory)
    }

    /// Runs `body`, during which the item waits until ``start(_:)`` is called for it.
    func waiting<Result>(_ item: Int64? = ProcessTurns.item, _ body: () async -> Result) async -> Result {
        guard let item else { return await body() }
        state.withLock { $0.waiting[item] = $0.waiting[item] ?? .now }
        defer {
            state.withLock { state in
                state.waiting[item] = nil
                state.running.remove(item)
            }
        }
        return await body()
    }

    /// A process has taken the item's work.
    func start(_ item: Int64?) {
        guard let item else { return }
        state.withLock { state in
            guard state.waiting.removeValue(forKey: item) != nil else { return }
            state.running.insert(item)
        }
    }

    var counts: (waiting: Int, running: Int) { state.withLock { ($0.waiting.count, $0.running.count) } }

    func waits(longerThan time: Duration) -> [Int64] {
        let now = ContinuousClock.now
        return state.withLock { $0.waiting.filter { now - $0.value >= time }.map(\.key) }
    }

    var reason: String {
        switch kind {
        case .helper where counts.running < slots && memory?.isShort == true:
            "Large pictures are at work, and use the memory that all decoders together may use."
        case .helper where slots == 1: "The helper process is at work on another picture (--transforms)."
        case .helper: "All \(slots) helper processes are at work on other pictures (--transforms)."
        case .command where slots == 1: "The transform command is at work on another picture (--transforms)."
        case .command: "All \(slots) slots for transform commands are taken by other pictures (--transforms)."
        case .delegate where slots == 1: "The delegate program is busy with another call."
        case .delegate: "The delegate program is busy with \(slots) other calls."
        case .loader where slots == 1: "The slot for a loader is taken by another picture (--concurrency)."
        case .loader: "All \(slots) slots for loaders are taken by other pictures (--concurrency)."
        }
    }
}

/// Items whose files wait for space in the cache (`--cache-max-size`).
final class SpaceWaits: ItemWaits {
    let name = "space in the cache"

    private struct Wait {
        let since: ContinuousClock.Instant
        var files = 0
        var reason: String
    }

    private let state = Mutex<[Int64: Wait]>([:])

    /// A file of the item began to wait.
    func began(_ item: Int64, _ reason: String) {
        state.withLock { state in
            var wait = state[item] ?? Wait(since: .now, reason: reason)
            wait.files += 1
            state[item] = wait
        }
    }

    func ended(_ item: Int64) {
        state.withLock { state in
            guard var wait = state[item] else { return }
            wait.files -= 1
            state[item] = wait.files > 0 ? wait : nil
        }
    }

    var counts: (waiting: Int, running: Int) { state.withLock { ($0.count, 0) } }
    var reason: String { state.withLock { $0.values.first?.reason } ?? "The cache is full (--cache-max-size)." }

    func waits(longerThan time: Duration) -> [Int64] {
        let now = ContinuousClock.now
        return state.withLock { $0.filter { now - $0.value.since >= time }.map(\.key) }
    }
}
