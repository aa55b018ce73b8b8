internal import ContentCache
internal import Jobs
internal import Logging
internal import Synchronization

/// Ends items in groups: their files are named and synced first, then one transaction writes down that they exist.
///
/// A group is at most 64 files or what came in 250 ms; both numbers are where the cost of a sync stops mattering.
final class Publisher: Sendable {
    static let groupBlobs = 64
    static let groupItems = 256
    static let groupMilliseconds: Int64 = 250

    private struct Entry: Sendable {
        let item: ClaimedItem
        let ending: ItemEnding
        let blobs: [PendingBlob]
        let committed: CheckedContinuation<PublishedEnding, Never>
    }

    private let store: JobStore
    private let cache: ContentCache
    private let disk: DiskWatch
    private let logger: Logger
    private let queue = WorkQueue<Entry>()
    private let blocking = BlockingQueue("publisher")
    private let fatal = Mutex<JobsError?>(nil)

    init(store: JobStore, cache: ContentCache, disk: DiskWatch, logger: Logger) {
        self.store = store
        self.cache = cache
        self.disk = disk
        self.logger = logger
    }

    /// What made further commits pointless, such as a damaged database.
    var failure: JobsError? { fatal.withLock { $0 } }

    /// Ends an item, and returns once that is durable.
    func commit(_ item: ClaimedItem, _ ending: ItemEnding, blobs: [PendingBlob] = []) async -> PublishedEnding {
        await withCheckedContinuation { continuation in
            let entry = Entry(item: item, ending: ending, blobs: blobs, committed: continuation)
            if !queue.put(entry) { continuation.resume(returning: .abandoned) }
        }
    }

    func close() { queue.close() }

    /// Publishes until it is closed and empty.
    ///
    /// - Parameter inFlight: how many items are on their way, those handed in included. A group that holds them all
    ///   waits for nobody.
    func run(inFlight: @Sendable () -> Int = { .max }) async {
        while let first = await queue.next() {
            await publish(await group(startingWith: first, inFlight))
        }
    }

    private func group(startingWith first: Entry, _ inFlight: @Sendable () -> Int) async -> [Entry] {
        var group = [first]
        let deadline = monotonicMilliseconds() + Self.groupMilliseconds
        while true {
            group += queue.takeAvailable(Self.groupItems - group.count)
            let blobs = group.reduce(0) { $0 + $1.blobs.count }
            let isFull = blobs >= Self.groupBlobs || group.count >= Self.groupItems
            let isComplete = isFull || group.count >= inFlight()
            if isComplete || queue.isClosed || monotonicMilliseconds() >= deadline { return group }
            // Cancellation only cuts the nap short; what was handed in is published all the same.
            try? await Task.sleep(for: .milliseconds(10))
        }
    }

    private func publish(_ group: [Entry]) async {
        let failures = await blocking.run { [cache] in cache.publish(group.flatMap(\.blobs)) }
        var rest = failures[...]
        let endings = group.map { entry in
            let own = rest.prefix(entry.blobs.count)
            rest = rest.dropFirst(entry.blobs.count)
            return ending(of: entry, failure: own.compactMap { $0 }.first)
        }
        let fencedOut = await finish(zip(group, endings).map { (item: $0.item, ending: $1) })
        for (entry, ending) in zip(group, endings) {
            guard let fencedOut else {
                entry.committed.resume(returning: .abandoned)
                continue
            }
            let isLost = fencedOut.contains(entry.item.id)
            entry.committed.resume(returning: isLost ? .fencedOut : .committed(ending))
        }
    }

    private func ending(of entry: Entry, failure: CacheError?) -> ItemEnding {
        guard let failure else { return entry.ending }
        disk.report(failure.message)
        logger.error("A file can't be published; its item goes back.", metadata: ["error": "\(failure)"])
        return .release
    }

    /// - Returns: the items that were no longer ours; `nil` when the group could not be written down. Its leases then
    ///   lapse with this process, and the items are done again: their files are found to exist.
    private func finish(_ group: [(item: ClaimedItem, ending: ItemEnding)]) async -> Set<Int64>? {
        for attempt in 1... {
            do {
                return try await store.finish(group)
            } catch {
                logger.error("Results can't be written down.", metadata: ["error": "\(error)", "try": "\(attempt)"])
                let mayPass = error.code == .busy || error.code == .diskFull
                guard mayPass, attempt < 30 else {
                    fatal.withLock { $0 = $0 ?? error }
                    return nil
                }
                disk.report(error.message)
                // Cancellation only cuts the nap short; the next attempt decides.
                try? await Task.sleep(for: .seconds(1))
            }
        }
        return nil
    }
}

/// What became of an ending that was handed to the publisher.
enum PublishedEnding: Sendable {
    case committed(ItemEnding)
    /// Somebody else had the item meanwhile; nothing was recorded.
    case fencedOut
    /// It could not be written down.
    case abandoned
}
