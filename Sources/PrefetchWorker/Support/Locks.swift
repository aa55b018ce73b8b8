internal import Synchronization

/// A lock for each key, granted in order of request. Free keys take no memory.
final class KeyedLock: Sendable {
    private let waiting = Mutex<[String: [CheckedContinuation<Void, Never>]]>([:])

    /// Waits for the key. The caller must call `unlock`, also after an error.
    func lock(_ key: String) async {
        await withCheckedContinuation { continuation in
            let isFree = waiting.withLock { waiting in
                guard waiting[key] != nil else {
                    waiting[key] = []
                    return true
                }
                waiting[key]?.append(continuation)
                return false
            }
            if isFree { continuation.resume() }
        }
    }

    func unlock(_ key: String) {
        let next: CheckedContinuation<Void, Never>? = waiting.withLock { waiting in
            guard var line = waiting[key], !line.isEmpty else {
                waiting[key] = nil
                return nil
            }
            let next = line.removeFirst()
            waiting[key] = line
            return next
        }
        next?.resume()
    }

    /// Whether all keys are free; for tests.
    var isIdle: Bool { waiting.withLock { $0.isEmpty } }
}

/// An asynchronous counting semaphore; waiters are served in order of arrival.
final class AsyncSemaphore: Sendable {
    private let state: Mutex<(free: Int, waiting: [CheckedContinuation<Void, Never>])>

    init(_ count: Int) { state = Mutex((free: count, waiting: [])) }

    func enter() async {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                guard state.free > 0 else {
                    state.waiting.append(continuation)
                    return false
                }
                state.free -= 1
                return true
            }
            if isFree { continuation.resume() }
        }
    }

    func leave() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard !state.waiting.isEmpty else {
                state.free += 1
                return nil
            }
            return state.waiting.removeFirst()
        }
        next?.resume()
    }
}
