internal import Jobs
internal import Synchronization

/// The priority and rank of a fetch, as those of a download.
struct FetchPosition: Hashable, Sendable {
    var priority: Int
    /// Smaller goes first.
    var rank: Int64
    /// Whether the priority is the item's own, of its row or of a hook: a change of its job's priority leaves it.
    var isOwn = false
    /// Whether the priority of the item's row was changed since the claim.
    var isChanged = false

    static func rank(of item: Int64, _ order: ExecutionOrder) -> Int64 { order == .fifo ? item : ~item }

    func isBefore(_ other: FetchPosition) -> Bool {
        priority != other.priority ? priority > other.priority : rank < other.rank
    }
}

/// Coalesces fetches: all items that need the same URL at the same time share one.
///
/// The fetch is a task of its own, so that cancelling the item that started it does not affect the others; cancelling
/// the last waiter cancels the fetch. It has the position of its most urgent waiter. Its result stays shared until its
/// first user has made it durable, so that it is not fetched again in between.
final class SharedFetches<Value: Sendable>: Sendable {
    /// A class, so that looking at one number copies neither the other fields nor the dictionary. The lock guards it.
    private final class Entry {
        let task: Task<Value, Never>
        /// The id of the user that started it, which is also the id of the download.
        let name: Int64
        var users: Int
        /// Users whose own task was cancelled. They stay until the fetch has ended.
        var cancelled = 0
        var positions: [Int64: FetchPosition] = [:]
        var position: FetchPosition?

        init(_ task: Task<Value, Never>, user: Int64, _ position: FetchPosition?) {
            self.task = task
            name = user
            users = 1
            positions = position.map { [user: $0] } ?? [:]
            self.position = position
        }

        /// - Returns: the new position, if it has changed.
        func rerank() -> FetchPosition? {
            let best = positions.values.min { $0.isBefore($1) }
            guard let best, best != position else { return nil }
            position = best
            return best
        }
    }

    private let entries = Mutex<[String: Entry]>([:])
    private let rerank: @Sendable (Int64, FetchPosition) -> Void

    /// - Parameter rerank: called with the id of the user that started a fetch, and the fetch's new position.
    init(rerank: @escaping @Sendable (Int64, FetchPosition) -> Void = { _, _ in }) {
        self.rerank = rerank
    }

    /// Joins the fetch with this `key`, and starts it if there is none. Each call needs one `leave`.
    func join(
        _ key: String, user: Int64 = 0, position: FetchPosition? = nil, start: @escaping @Sendable () async -> Value,
    ) async -> Value {
        let (task, move) = entries.withLock { entries -> (Task<Value, Never>, (Int64, FetchPosition)?) in
            if let running = entries[key] {
                running.users += 1
                running.positions[user] = position
                return (running.task, running.rerank().map { (running.name, $0) })
            }
            // Not a child task of the first caller, since it belongs to all that join. `leave` ends it.
            let task = Task { await start() }
            entries[key] = Entry(task, user: user, position)
            return (task, nil)
        }
        if let move { rerank(move.0, move.1) }
        return await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            lostInterest(key, user)
        }
    }

    /// Leaves a fetch that the caller has joined.
    func leave(_ key: String, user: Int64 = 0) {
        // The result is released outside the lock, since releasing it may close a file.
        let last: Task<Value, Never>? = entries.withLock { entries in
            guard let entry = entries[key] else { return nil }
            entry.users -= 1
            entry.positions[user] = nil
            return entry.users <= 0 ? entries.removeValue(forKey: key)?.task : nil
        }
        withExtendedLifetime(last) {}
    }

    /// Changes the positions that users need for their fetches.
    ///
    /// - Parameter changed: the users whose own priority was changed since their claim. Other users with a priority of
    ///   their own keep it.
    func move(_ wanted: [Int64: FetchPosition], changed: Set<Int64> = []) {
        let moves = entries.withLock { entries in
            entries.values.compactMap { entry -> (Int64, FetchPosition)? in
                for (user, old) in entry.positions {
                    guard var position = wanted[user] else { continue }
                    position.isChanged = changed.contains(user)
                    if old.isOwn, !old.isChanged, !position.isChanged {
                        (position.priority, position.isOwn) = (old.priority, true)
                    }
                    entry.positions[user] = position
                }
                return entry.rerank().map { (entry.name, $0) }
            }
        }
        for (name, position) in moves { rerank(name, position) }
    }

    /// The users among these whose fetch is running, each with the id of the user that started it.
    func names(of users: Set<Int64>) -> [(user: Int64, name: Int64)] {
        entries.withLock { entries in
            entries.values.flatMap { entry in
                entry.positions.keys.filter(users.contains).map { (user: $0, name: entry.name) }
            }
        }
    }

    /// The user that started a fetch.
    func starter(of key: String) -> Int64? { entries.withLock { $0[key]?.name } }

    /// The present position of a fetch.
    func position(_ key: String) -> FetchPosition? { entries.withLock { $0[key]?.position } }

    /// The users of each fetch that its starter does not use alone, by the starter's id.
    var sharers: [Int64: [Int64]] {
        entries.withLock { entries in
            entries.values.filter { $0.positions.count > 1 || $0.positions[$0.name] == nil }
                .reduce(into: [:]) { $0[$1.name] = Array($1.positions.keys) }
        }
    }

    private func lostInterest(_ key: String, _ user: Int64) {
        let (move, unwanted) = entries.withLock { entries -> ((Int64, FetchPosition)?, Task<Value, Never>?) in
            guard let entry = entries[key] else { return (nil, nil) }
            entry.cancelled += 1
            entry.positions[user] = nil
            let other = entry.rerank()
            return (other.map { (entry.name, $0) }, entry.cancelled >= entry.users ? entry.task : nil)
        }
        // Outside the lock: cancelling runs the fetch's own handlers, which take the downloader's lock. The downloader
        // takes both in the other order, when it reads a position.
        unwanted?.cancel()
        if let move { rerank(move.0, move.1) }
    }

    var isIdle: Bool { entries.withLock { $0.isEmpty } }
}
