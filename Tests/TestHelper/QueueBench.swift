import Core
import Glibc
import Jobs

/// Claims and ends items as fast as the database can, for `scripts/bench queue`. It downloads nothing.
struct QueueBench {
    let store: JobStore
    let group: Int
    let limit: Duration

    /// Prints one line: the number of items, and the seconds that they took.
    func run() async throws {
        let worker = try await store.workers.register(host: "bench", pid: getpid(), fetches: true)
        let start = ContinuousClock.now
        var count = 0
        while ContinuousClock.now - start < limit {
            let items = try await store.queue.claim(limit: group, worker: worker).items
            guard !items.isEmpty else { break }
            let now = store.database.currentTime
            let ended = items.map { ($0, ItemEnding.done(Self.completion(of: $0, at: now))) }
            let lost = try await store.queue.finish(ended).count
            guard lost == 0 else { throw Lost(count: lost) }
            count += items.count
        }
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        try await store.workers.unregister(worker: worker)
        let trips = store.database.roundTrips.map { " \($0)" } ?? ""
        print("\(count) \(seconds)\(trips)")
    }

    struct Lost: Error { let count: Int }

    /// As if the item had been fetched.
    private static func completion(of item: ClaimedItem, at now: WallTime) -> Completion {
        let digits = String(item.id, radix: 16)
        let hash = String(repeating: "0", count: 64 - digits.count) + digits
        let source =
            item.source ?? SourceRecord(key: item.key, hash: hash, size: 10_000, isKept: true, fetchedAt: now)
        let rendition = RenditionRecord(
            name: "original", blob: hash, size: 10_000, format: "jpeg", width: nil, height: nil)
        return Completion(
            source: source, renditions: [rendition], newVariants: [], origin: item.source == nil ? .network : .disk)
    }
}
