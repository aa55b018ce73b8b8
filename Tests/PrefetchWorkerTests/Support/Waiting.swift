import Glibc
import Synchronization

/// Waits until a condition holds, at most twenty seconds.
func eventually(_ condition: () async throws -> Bool) async rethrows -> Bool {
    for _ in 0..<2_000 {
        if try await condition() { return true }
        // A cancelled wait just looks again at once.
        try? await Task.sleep(for: .milliseconds(10))
    }
    return try await condition()
}

/// A value that several tasks of a test look at.
final class Shared<Value: Sendable>: Sendable {
    private let value: Mutex<Value>

    init(_ value: sending Value) { self.value = Mutex(value) }

    func withLock<R: Sendable>(_ body: (inout Value) -> R) -> R { value.withLock { body(&$0) } }
}

/// For threads that are not Swift's own.
func usleepMilliseconds(_ count: UInt32) { usleep(count * 1_000) }
