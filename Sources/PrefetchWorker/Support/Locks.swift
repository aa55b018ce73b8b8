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
