internal import DequeModule
internal import Synchronization

/// A budget of bytes that several tasks share. A request for more than is left waits, first come, first served.
final class MemoryBudget: Sendable {
    private struct State {
        var left: Int
        var waiting: Deque<(bytes: Int, turn: CheckedContinuation<Void, Never>)> = []
    }

    private let total: Int
    private let state: Mutex<State>

    init(bytes: Int) {
        total = max(1, bytes)
        state = Mutex(State(left: max(1, bytes)))
    }

    /// Whether a request waits.
    var isShort: Bool { state.withLock { !$0.waiting.isEmpty } }

    /// Runs `body` while it holds this many bytes; a request for more than the whole budget holds all of it.
    func holding<Result>(_ bytes: Int, _ body: () async -> Result) async -> Result {
        let share = min(bytes, total)
        guard share > 0 else { return await body() }
        await take(share)
        defer { giveBack(share) }
        return await body()
    }

    private func take(_ bytes: Int) async {
        await withCheckedContinuation { turn in
            let isServed = state.withLock { state in
                // First come, first served; otherwise small requests could overtake a large one for ever.
                guard state.waiting.isEmpty, state.left >= bytes else {
                    state.waiting.append((bytes, turn))
                    return false
                }
                state.left -= bytes
                return true
            }
            if isServed { turn.resume() }
        }
    }

    private func giveBack(_ bytes: Int) {
        let served = state.withLock { state in
            state.left += bytes
            var served: [CheckedContinuation<Void, Never>] = []
            while let first = state.waiting.first, first.bytes <= state.left {
                state.left -= first.bytes
                served.append(first.turn)
                state.waiting.removeFirst()
            }
            return served
        }
        for turn in served { turn.resume() }
    }
}
