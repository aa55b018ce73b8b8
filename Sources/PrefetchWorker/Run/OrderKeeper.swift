internal import Jobs

/// Carries changes of a job's priority, order and pauses over to its items that wait in the downloader.
struct OrderKeeper: Sendable {
    let queue: JobQueue
    let tasks: InFlightItems
    let fetcher: Fetcher
    /// Of jobs that name none.
    let order: ExecutionOrder

    /// Called twice a second. An item that has just been claimed may come to the downloader a moment after its job was
    /// changed, so a job that is not as it was when its items were claimed is looked at each time.
    func keep() async throws(JobsError) {
        let items = tasks.byJob
        guard !items.isEmpty else { return }
        var moves: [Int64: FetchPlace] = [:]
        var paused: Set<Int64> = []
        for (place, isPaused) in try await queue.places(of: Set(items.keys), order: order) {
            let own = items[place.job] ?? []
            if isPaused { paused.formUnion(own.map(\.id)) }
            for item in own where item.claimed != place {
                moves[item.id] = FetchPlace(
                    priority: item.hasOwnPriority ? item.claimed.priority : place.priority,
                    rank: FetchPlace.rank(of: item.id, place.order))
            }
        }
        if !moves.isEmpty { fetcher.fetches.move(moves) }
        // What a paused job has in flight goes on to its end; what only waits goes back to the queue.
        if !paused.isEmpty { tasks.cancel(fetcher.waiting(paused)) }
    }
}
