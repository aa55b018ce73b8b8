internal import Synchronization

/// Asks a worker to stop: no new claims, and what is in flight gets its grace.
public final class StopSignal: Sendable {
    private struct State {
        var isRequested = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    public init() {}

    public var isRequested: Bool { state.withLock { $0.isRequested } }

    public func request() {
        let waiting = state.withLock { state in
            state.isRequested = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    func wait() async {
        await withCheckedContinuation { continuation in
            let isRequested = state.withLock { state in
                if !state.isRequested { state.waiting.append(continuation) }
                return state.isRequested
            }
            if isRequested { continuation.resume() }
        }
    }
}
