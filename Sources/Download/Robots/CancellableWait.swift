import Core
import Synchronization

extension Task where Failure == Never {
    /// Waits for the value of a task that others may wait for too. Cancelling a waiter ends its wait, and the task
    /// continues.
    nonisolated func valueUnlessCancelled() async -> Success? {
        let waiter = Waiter<Success>()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                waiter.begin(continuation)
                // Not a child task, since its parent would have to wait for it. It ends with the awaited task.
                _ = Task<Void, Never> { waiter.end(await value) }
            }
        } onCancel: {
            waiter.end(nil)
        }
    }
}

/// Waits for the value or the cancellation, whichever comes first.
private final class Waiter<Value: Sendable>: Sendable {
    private enum State {
        case before
        case waiting(CheckedContinuation<Value?, Never>)
        case over(Value?)
    }

    private let state = Mutex(State.before)

    func begin(_ continuation: CheckedContinuation<Value?, Never>) {
        let early: Value?? = state.withLock { state in
            if case .over(let value) = state { return .some(value) }
            state = .waiting(continuation)
            return nil
        }
        if let early { continuation.resume(returning: early) }
    }

    func end(_ value: Value?) {
        let continuation: CheckedContinuation<Value?, Never>? = state.withLock { state in
            defer { if case .over = state {} else { state = .over(value) } }
            guard case .waiting(let continuation) = state else { return nil }
            return continuation
        }
        continuation?.resume(returning: value)
    }
}
