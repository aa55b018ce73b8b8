internal import Jobs

/// Applies changes of a job's priority, order and state to its items that wait in the downloader.
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
        var moves: [Int64: FetchPosition] = [:]
        var paused: Set<Int64> = []
        for (precedence, isPaused) in try await queue.precedences(of: Set(items.keys), order: order) {
            let own = items[precedence.job] ?? []
            if isPaused { paused.formUnion(own.map(\.id)) }
            for item in own where item.claimed != precedence {
                moves[item.id] = FetchPosition(
                    priority: precedence.priority, rank: FetchPosition.rank(of: item.id, precedence.order))
            }
        }
        if !moves.isEmpty { fetcher.fetches.move(moves) }
        // A paused job's running transfers continue; its waiting items go back to the queue.
        if !paused.isEmpty { tasks.cancel(fetcher.waiting(paused)) }
    }
}
