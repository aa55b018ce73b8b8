internal import Jobs
internal import Synchronization

/// The items in flight. Each is a task that can be cancelled separately.
final class InFlightItems: Sendable {
    private struct Entry {
        let item: ClaimedItem
        let precedence: Precedence
        let task: Task<Void, Never>
    }

    private struct State {
        var entries: [Int64: Entry] = [:]
        /// The ids of suspects: items that were active when a worker died.
        var suspects: Set<Int64> = []
        var empty: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())
    private let onEmpty: @Sendable () -> Void

    /// - Parameter onEmpty: called each time the last item has ended.
    init(onEmpty: @escaping @Sendable () -> Void = {}) { self.onEmpty = onEmpty }

    var count: Int { state.withLock { $0.entries.count } }
    /// Whether one of the items in flight is a suspect.
    var hasSuspects: Bool { state.withLock { !$0.suspects.isEmpty } }
    var items: [ClaimedItem] { state.withLock { $0.entries.values.map(\.item) } }

    /// The precedence of the least urgent item in flight.
    var lowestPrecedence: Precedence? { state.withLock { $0.entries.values.lazy.map(\.precedence).min() } }

    /// The items of each job, with their precedence when they were claimed.
    var byJob: [JobID: [(item: ClaimedItem, claimed: Precedence)]] {
        state.withLock { state in
            state.entries.values.reduce(into: [:]) {
                $0[$1.item.job, default: []].append((item: $1.item, claimed: $1.precedence))
            }
        }
    }

    /// Starts `work` for an item.
    ///
    /// Not a child task, since a task group cannot cancel a single child; `waitUntilEmpty` waits for all of them
    /// instead.
    func start(_ item: ClaimedItem, precedence: Precedence, _ work: @escaping @Sendable () async -> Void) {
        state.withLock { state in
            // Detached: the service group's task-local values would be copied for each item.
            let task = Task.detached {
                await work()
                self.ended(item.id)
            }
            if item.deaths > 0 { state.suspects.insert(item.id) }
            state.entries[item.id] = Entry(item: item, precedence: precedence, task: task)
        }
    }

    func cancel(_ ids: some Sequence<Int64>) {
        let tasks = state.withLock { state in ids.compactMap { state.entries[$0]?.task } }
        for task in tasks { task.cancel() }
    }

    func cancelAll() {
        let tasks = state.withLock { $0.entries.values.map(\.task) }
        for task in tasks { task.cancel() }
    }

    func waitUntilEmpty() async {
        await withCheckedContinuation { continuation in
            let isEmpty = state.withLock { state in
                if !state.entries.isEmpty { state.empty.append(continuation) }
                return state.entries.isEmpty
            }
            if isEmpty { continuation.resume() }
        }
    }

    private func ended(_ id: Int64) {
        let waiting: [CheckedContinuation<Void, Never>]? = state.withLock { state in
            state.entries[id] = nil
            state.suspects.remove(id)
            guard state.entries.isEmpty else { return nil }
            defer { state.empty = [] }
            return state.empty
        }
        guard let waiting else { return }
        onEmpty()
        for continuation in waiting { continuation.resume() }
    }
}
