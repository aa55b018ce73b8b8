internal import Synchronization

/// Wakes one sleeper. A ring without a sleeper is kept, and the next sleep returns at once.
final class Wakeup: Sendable {
    private enum State {
        case quiet, rung
        case sleeping(CheckedContinuation<Void, Never>)
    }

    private let state = Mutex(State.quiet)

    func ring() {
        let sleeper: CheckedContinuation<Void, Never>? = state.withLock { state in
            if case .sleeping(let continuation) = state {
                state = .quiet
                return continuation
            }
            state = .rung
            return nil
        }
        sleeper?.resume()
    }

    func wait() async {
        await withCheckedContinuation { continuation in
            let isRung = state.withLock { state in
                if case .rung = state {
                    state = .quiet
                    return true
                }
                state = .sleeping(continuation)
                return false
            }
            if isRung { continuation.resume() }
        }
    }
}
