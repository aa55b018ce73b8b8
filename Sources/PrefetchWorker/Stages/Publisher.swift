internal import ContentCache
internal import Core
internal import Jobs
internal import Logging
internal import Synchronization

/// Ends items in groups: their files are named and synced first, then one transaction writes down that they exist.
///
/// A group is at most 256 files or what came in 250 ms; both numbers are where the cost of a sync stops mattering.
final class Publisher: Sendable {
    static let groupBlobs = 256
    static let groupItems = 256
    static let groupMilliseconds: Int64 = 250

    /// A class, since it is handed on often: a copy of all that it holds costs more than everything else here.
    final class Entry: Sendable {
        let item: ClaimedItem
        let ending: ItemEnding
        let blobs: [PendingBlob]
        let committed: CheckedContinuation<ItemEnding?, Never>

        init(
            item: ClaimedItem, ending: ItemEnding, blobs: [PendingBlob],
            committed: CheckedContinuation<ItemEnding?, Never>,
        ) {
            self.item = item
            self.ending = ending
            self.blobs = blobs
            self.committed = committed
        }
    }

    private let store: JobStore
    private let cache: any BlobStore
    private let disk: DiskWatch
    let logger: Logger
    let budget: CacheBudget?
    private let links: LinkKeeper
    let remover: FileRemover
    /// How often a transaction is tried that fails for what may pass, a second apart.
    private let patience: Int
    private let limits: OwnLimits
    private let queue = WorkQueue<Entry>()
    private let blocking = BlockingQueue("publisher")
    private let fatal = Mutex<JobsError?>(nil)
    private let isHurried = Atomic(false)

    init(
        store: JobStore, cache: ContentCache, disk: DiskWatch, logger: Logger, budget: CacheBudget? = nil,
        patience: Int = 30, limits: OwnLimits = OwnLimits(),
    ) {
        self.patience = patience
        self.limits = limits
        self.budget = budget
        links = LinkKeeper(store: store, cache: cache, logger: logger)
        remover = FileRemover(store.eviction, cache)
        self.store = store
        self.cache = cache
        self.disk = disk
        self.logger = logger
    }

    /// What made further commits pointless, such as a damaged database.
    var failure: JobsError? { fatal.withLock { $0 } }

    /// Ends an item, and returns once that is durable.
    ///
    /// - Returns: the ending that was written down, which is ``ItemEnding/release`` where a file could not be published; nil
    ///   where none was: another worker had the item meanwhile, or the database takes nothing any more.
    func commit(_ item: ClaimedItem, _ ending: ItemEnding, blobs: [PendingBlob] = []) async -> ItemEnding? {
        await withCheckedContinuation { continuation in
            let entry = Entry(item: item, ending: ending, blobs: blobs, committed: continuation)
            if !queue.put(entry) { continuation.resume(returning: nil) }
        }
    }

    func close() { queue.close() }

    /// From now on the publisher doesn't wait for a disk or a database to recover: the next worker does again what can't be
    /// written down.
    func hurry() { isHurried.store(true, ordering: .relaxed) }

    /// Publishes until it is closed and empty.
    ///
    /// - Parameter inFlight: how many items are on their way, those handed in included, and may soon come. A group that holds them
    ///   all is published at once.
    func run(inFlight: @Sendable () -> Int = { .max }) async {
        while await publishNext(inFlight) {}
    }

    /// A step of its own, so that nothing of a group is held while the next is waited for: its files would stay open.
    private func publishNext(_ inFlight: @Sendable () -> Int) async -> Bool {
        guard let first = await queue.next() else { return false }
        await publish(await group(startingWith: first, inFlight))
        return true
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
            // Cancellation only cuts the nap short; the group is published all the same.
            try? await Task.sleep(for: .milliseconds(10))
        }
    }

    private func publish(_ group: [Entry]) async {
        let blobs = group.flatMap(\.blobs)
        do {
            switch try await budget?.reserve(blobs) ?? .granted {
            case .granted: return await publishReserved(group)
            case .full(let reason):
                // Half of it may fit, and then the other half. One item that doesn't fit by itself is where it ends.
                if group.count > 1 {
                    await publish(Array(group[..<(group.count / 2)]))
                    return await publish(Array(group[(group.count / 2)...]))
                }
                let isHopeless = blobs.reduce(0) { $0 + $1.size } > (budget?.limit ?? .max)
                // Only a source that is too large by itself is too large for every job.
                let failure: FailureClass = blobs.count > 1 ? .transform : .tooLarge
                let record = limits.explained(Failure(failure, reason))
                if !isHopeless, let budget, !budget.isStuck {
                    return await end(group, budget.putOff(reason, now: store.database.currentTime))
                }
                await end(group, isHopeless ? .failed(record) : .release)
                if !isHopeless { disk.report(reason) }
            }
        } catch {
            disk.report("\(error)")
            await end(group, .release)
        }
    }

    /// Ends items without their files.
    private func end(_ group: [Entry], _ ending: ItemEnding) async {
        await settle(group, group.map { $0.blobs.isEmpty ? $0.ending : ending }, holding: [:])
    }

    private func publishReserved(_ group: [Entry]) async {
        // Until they are written down.
        let names = group.flatMap { $0.blobs.map(\.hash.hex) }
        budget?.inHand.take(names)
        defer { budget?.inHand.letGo(names) }
        let published = await blocking.run { [cache] in cache.publish(group.flatMap(\.blobs)) }
        await count(published.errors)
        var rest = published.errors[...]
        let endings = group.map { entry in
            let own = rest.prefix(entry.blobs.count)
            rest = rest.dropFirst(entry.blobs.count)
            return ending(of: entry, failure: own.compactMap { $0 }.first)
        }
        await settle(group, endings, holding: published.files)
    }

    /// Writes the endings of a group down. The transaction looks at no file: it refuses a result with a file that may be
    /// deleted at that moment. The file is held then, if it is still there, and the result is written down in a second one.
    ///
    /// - Parameter published: the files of the blobs that were published, held until their items are ended.
    private func settle(
        _ group: [Entry], _ endings: [ItemEnding], holding published: [BlobHash: BlobFile],
    ) async {
        var held = HeldFiles(published)
        var endings = endings.map(Optional.some)
        var counted: [String: Int64] = [:]
        var rest = Array(group.indices)
        while !rest.isEmpty {
            let items = rest.compactMap { index in endings[index].map { (item: group[index].item, ending: $0) } }
            let links = await links.make(of: items)
            let finished = await finish(items, held.hashes, room(of: group))
            await self.links.settle(links, finished)
            guard let finished else {
                for index in rest { endings[index] = nil }
                break
            }
            counted.merge(finished.counted) { $1 }
            for index in rest where finished.fencedOut.contains(group[index].item.id) { endings[index] = nil }
            rest = rest.filter { finished.doubtful.contains(group[$0].item.id) }
            for index in rest {
                guard case .done(let completion)? = endings[index] else { continue }
                if await !hold(completion, &held) { endings[index] = .release }
            }
        }
        // Files that the index did not take are to be deleted.
        if endings.contains(where: { $0?.isDone != true }) { held.letGo(cache) }
        await settleRoom(group, endings, counted)
        for (entry, ending) in zip(group, endings) { entry.committed.resume(returning: ending) }
    }

    /// - Returns: whether all files of a result are held now; false where one is gone.
    private func hold(_ completion: Completion, _ held: inout HeldFiles) async -> Bool {
        let (all, isWhole) = await blocking.run { [cache, logger, held] in
            var held = held
            let isWhole = held.hold(completion, cache, logger)
            return (held, isWhole)
        }
        held = all
        return isWhole
    }

    private func count(_ failures: [CacheError?]) async {
        let syncs = failures.count { $0?.isFailedSync == true }
        guard syncs > 0 else { return }
        do {
            try await store.cache.countFailedSyncs(syncs)
        } catch {
            logger.warning("A failed sync could not be counted.", metadata: ["error": "\(error)"])
        }
    }

    private func ending(of entry: Entry, failure: CacheError?) -> ItemEnding {
        guard let failure else { return entry.ending }
        // A full disk fails many files at once; it is said once.
        let level: Logger.Level = disk.isInTrouble ? .debug : .error
        disk.report(failure.message)
        logger.log(level: level, "A file can't be published; its item goes back.", metadata: ["error": "\(failure)"])
        return .release
    }

    /// - Returns: the items that were no longer ours; `nil` when the group could not be written down. Its leases then
    ///   lapse with this process, and the items are done again: their files are found to exist.
    private func finish(
        _ group: [(item: ClaimedItem, ending: ItemEnding)], _ held: HeldBlobs, _ room: GroupRoom?,
    ) async -> FinishedGroup? {
        for attempt in 1... {
            do {
                let finished = try await store.queue.finish(group, held: held, room: room)
                if group.contains(where: \.ending.isDone), disk.worked() { disk.sayItWorks(logger) }
                return finished
            } catch {
                if attempt == 1 { logger.error("Results can't be written down.", metadata: ["error": "\(error)"]) }
                let isUrgent = queue.isClosed || isHurried.load(ordering: .relaxed)
                guard error.mayPass, attempt < (isUrgent ? min(patience, 10) : patience) else {
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
