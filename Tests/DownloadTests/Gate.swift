import Glibc
import Synchronization

/// Holds up threads until it is opened, at most four minutes.
final class Gate: Sendable {
    private let isOpen = Atomic(false)

    func open() { isOpen.store(true, ordering: .releasing) }

    func wait() {
        for _ in 0..<120_000 where !isOpen.load(ordering: .acquiring) { usleep(2000) }
    }
}

/// Sets a variable while the body runs. libcurl reads the environment on its own thread, so tests that need it clean
/// must not mind this one.
func withEnvironment<R>(_ name: String, _ value: String, _ body: () async throws -> R) async rethrows -> R {
    setenv(name, value, 1)
    defer { unsetenv(name) }
    return try await body()
}
