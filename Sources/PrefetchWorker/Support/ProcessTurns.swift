internal import Synchronization

/// Items that wait until one of a limited number of processes of one kind takes their work.
final class ProcessTurns: Sendable {
    enum Kind: CaseIterable, Sendable {
        case helper, command, delegate
    }

    let kind: Kind
    /// Used in place of a host in reports of waits; no host has a space in its name.
    var name: String { Self.name(of: kind) }

    private static func name(of kind: Kind) -> String {
        switch kind {
        case .helper: "helper processes"
        case .command: "transform commands"
        case .delegate: "delegate program"
        }
    }

    /// The names of all kinds, which are not hosts.
    static let names = Set(Kind.allCases.map(name(of:)))

    /// The item that a task works for.
    @TaskLocal static var item: Int64?

    let places: Int
    private let state = Mutex((waiting: [Int64: ContinuousClock.Instant](), running: Set<Int64>()))

    init(_ kind: Kind, places: Int) { (self.kind, self.places) = (kind, places) }

    /// Runs `body`, during which the item waits until ``start(_:)`` is called for it.
    func waiting<Result>(_ body: () async -> Result) async -> Result {
        guard let item = Self.item else { return await body() }
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
        case .helper where places == 1: "The helper process is at work on another picture (--transforms)."
        case .helper: "All \(places) helper processes are at work on other pictures (--transforms)."
        case .command where places == 1: "The transform command is at work on another picture (--transforms)."
        case .command: "All \(places) places for transform commands are taken by other pictures (--transforms)."
        case .delegate where places == 1: "The delegate program is busy with another call."
        case .delegate: "The delegate program is busy with \(places) other calls."
        }
    }
}
