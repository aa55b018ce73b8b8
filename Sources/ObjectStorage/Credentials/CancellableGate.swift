internal import Synchronization

/// Lets one task in at a time; a cancelled task doesn't wait any longer.
final class CancellableGate: Sendable {
    private struct State {
        var isTaken = false
        var lastID: UInt64 = 0
        var waiting: [(id: UInt64, continuation: CheckedContinuation<Bool, Never>)] = []
    }

    private let state = Mutex(State())

    /// - Returns: false if the task is cancelled; then it has not entered, and must not leave.
    func enter() async -> Bool {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let hasEntered = state.withLock { state -> Bool? in
                    // A task that is cancelled later finds itself among the waiting ones.
                    guard !Task.isCancelled else { return false }
                    guard state.isTaken else {
                        state.isTaken = true
                        return true
                    }
                    state.waiting.append((id, continuation))
                    return nil
                }
                if let hasEntered { continuation.resume(returning: hasEntered) }
            }
        } onCancel: {
            let found = state.withLock { state in
                state.waiting.firstIndex { $0.id == id }.map { state.waiting.remove(at: $0).continuation }
            }
            found?.resume(returning: false)
        }
    }

    func leave() {
        let next = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            guard state.waiting.isEmpty else { return state.waiting.removeFirst().continuation }
            state.isTaken = false
            return nil
        }
        next?.resume(returning: true)
    }
}
