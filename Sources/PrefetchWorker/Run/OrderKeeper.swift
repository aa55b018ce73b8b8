internal import Jobs

/// Applies changes of a job's priority, order and state, and of an item's own priority, to items that wait in the
/// downloader.
struct OrderKeeper: Sendable {
    let queue: JobQueue
    let tasks: InFlightItems
    let fetcher: Fetcher
    /// The order of jobs that name no order.
    let order: ExecutionOrder

    /// Called twice a second. A claimed item may reach the downloader shortly after its job was changed, so a job that
    /// differs from its state at the claim is examined each time.
    func keep() async throws(JobsError) {
        let items = tasks.byJob
        guard !items.isEmpty else { return }
        let waiting = fetcher.waiting(Set(items.values.joined().map(\.item.id)))
        let priorities = try await queue.ownPriorities(of: waiting)
        let waitingItems = Set(waiting)
        var moves: [Int64: FetchPosition] = [:]
        var changed: Set<Int64> = []
        var paused: Set<Int64> = []
        for (precedence, isPaused) in try await queue.precedences(of: Set(items.keys), order: order) {
            let claims = items[precedence.job] ?? []
            if isPaused { paused.formUnion(claims.map(\.item.id)) }
            for (item, claimed) in claims {
                let own = priorities[item.id]
                guard waitingItems.contains(item.id) || claimed != precedence else { continue }
                if waitingItems.contains(item.id), own != item.own?.priority { changed.insert(item.id) }
                moves[item.id] = FetchPosition(
                    priority: own ?? precedence.priority, rank: FetchPosition.rank(of: item.id, precedence.order),
                    isOwn: own != nil)
            }
        }
        if !moves.isEmpty { fetcher.fetches.move(moves, changed: changed) }
        // A paused job's running transfers continue; its waiting items go back to the queue.
        if !paused.isEmpty { tasks.cancel(fetcher.waiting(paused)) }
    }
}
