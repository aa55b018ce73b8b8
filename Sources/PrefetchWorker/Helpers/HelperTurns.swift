internal import Synchronization

/// Items that wait until a helper process takes their picture.
final class HelperTurns: Sendable {
    /// Stands for a host in what is told of waits; no host has a space in its name.
    static let name = "helper processes"

    /// The item that a task works for.
    @TaskLocal static var item: Int64?

    let places: Int
    private let state = Mutex((waiting: [Int64: ContinuousClock.Instant](), running: Set<Int64>()))

    init(places: Int) { self.places = places }

    /// Runs `body`, in which the item waits until ``start(_:)`` is called for it.
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

    /// A helper has taken its picture.
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
        places == 1
            ? "The helper process is at work on another picture (--transforms)."
            : "All \(places) helper processes are at work on other pictures (--transforms)."
    }
}
