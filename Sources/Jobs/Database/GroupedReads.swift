internal import Synchronization

/// Look-ups by many tasks at once. Those that come while a read is running are answered together by the next read: with
/// PostgreSQL each read takes a round trip.
final class GroupedReads<Key: Sendable, Value: Sendable>: Sendable {
    private struct State {
        var waiting: [(key: Key, answer: CheckedContinuation<Result<Value, JobsError>, Never>)] = []
        var isReading = false
    }

    private let state = Mutex(State())
    /// Gets keys, and gives a value for each.
    private let read: @Sendable ([Key]) async throws(JobsError) -> [Value]

    init(_ read: @escaping @Sendable ([Key]) async throws(JobsError) -> [Value]) { self.read = read }

    func value(of key: Key) async throws(JobsError) -> Value {
        let result = await withCheckedContinuation { answer in
            let isFirst = state.withLock { state in
                state.waiting.append((key, answer))
                defer { state.isReading = true }
                return !state.isReading
            }
            if isFirst { Task { await readAll() } }
        }
        return try result.get()
    }

    /// Reads until no task waits.
    private func readAll() async {
        while true {
            let group = state.withLock { state in
                defer { state.waiting = [] }
                if state.waiting.isEmpty { state.isReading = false }
                return state.waiting
            }
            guard !group.isEmpty else { return }
            do throws(JobsError) {
                let values = try await read(group.map(\.key))
                for (one, value) in zip(group, values) { one.answer.resume(returning: .success(value)) }
            } catch {
                for one in group { one.answer.resume(returning: .failure(error)) }
            }
        }
    }
}
