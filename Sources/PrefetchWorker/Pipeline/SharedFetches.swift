internal import Synchronization

/// One fetch for everybody who wants the same thing at the same time.
///
/// The fetch is a task of its own, so that the first asker's cancellation doesn't take it from the others; the last one
/// to be cancelled cancels it. What it brought stays shared until its first user has made it durable, so that nobody fetches
/// again in between.
final class SharedFetches<Value: Sendable>: Sendable {
    private struct Entry {
        let task: Task<Value, Never>
        var users: Int
        /// Users whose own task was cancelled. They stay until the fetch has ended.
        var cancelled = 0
    }

    private let entries = Mutex<[String: Entry]>([:])

    /// Joins the fetch under `key`, starting it if there is none. Every call is paired with one `leave`.
    func join(_ key: String, start: @escaping @Sendable () async -> Value) async -> Value {
        let task = entries.withLock { entries in
            if let running = entries[key] {
                entries[key]?.users += 1
                return running.task
            }
            // Not a child of the asker: it belongs to all who join. `leave` is its end.
            let task = Task { await start() }
            entries[key] = Entry(task: task, users: 1)
            return task
        }
        return await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            lostInterest(key)
        }
    }

    /// The caller no longer needs what it joined for.
    func leave(_ key: String) {
        entries.withLock { entries in
            guard var entry = entries[key] else { return }
            entry.users -= 1
            entries[key] = entry.users > 0 ? entry : nil
        }
    }

    private func lostInterest(_ key: String) {
        entries.withLock { entries in
            guard var entry = entries[key] else { return }
            entry.cancelled += 1
            entries[key] = entry
            if entry.cancelled >= entry.users { entry.task.cancel() }
        }
    }

    var isIdle: Bool { entries.withLock { $0.isEmpty } }
}
