internal import ContentCache
internal import Core
internal import Jobs
internal import Logging
internal import Synchronization

/// Ends items in groups: it names and syncs their files first, then one transaction records that they exist.
///
/// A group has at most 256 items, and grows until it has 256 files or is 250 ms old: then the sync is cheap enough.
final class Publisher: Sendable {
    static let groupBlobs = 256
    static let groupItems = 256
    static let groupMilliseconds: Int64 = 250

    /// A class, since entries are passed on often, and copying the fields would cost more than the rest of the work.
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

    let store: JobStore
    let cache: any BlobStore
    let disk: DiskWatch
    let logger: Logger
    let budget: CacheBudget?
    private let links: LinkKeeper
    let remover: FileRemover
    let patience: PublishPatience
    let limits: OwnLimits
    let queue = WorkQueue<Entry>()
    let blocking = BlockingQueue("publisher")
    private let fatal = Mutex<JobsError?>(nil)
    let isHurried = Atomic(false)
    let outage = BucketOutage()
    /// For announcements of files.
    let owner = Int64.random(in: 1 ... .max)

    init(
        store: JobStore, cache: ContentCache, disk: DiskWatch, logger: Logger, budget: CacheBudget? = nil,
        patience: PublishPatience = PublishPatience(), limits: OwnLimits = OwnLimits(),
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

    /// The error that made further commits pointless, such as a damaged database.
    var failure: JobsError? { fatal.withLock { $0 } }

    /// Ends an item, and returns once its end is durable.
    ///
    /// - Returns: the ending that was recorded, which is ``ItemEnding/release`` if a file could not be published; nil
    ///   if none was, because another worker took the item meanwhile or the database accepts no writes.
    func commit(_ item: ClaimedItem, _ ending: ItemEnding, blobs: [PendingBlob] = []) async -> ItemEnding? {
        await withCheckedContinuation { continuation in
            let entry = Entry(item: item, ending: ending, blobs: blobs, committed: continuation)
            if !queue.put(entry) { continuation.resume(returning: nil) }
        }
    }

    func close() { queue.close() }

    /// From now on the publisher does not wait for a disk or a database to recover: the next worker repeats the work
    /// that can't be recorded.
    func hurry() { isHurried.store(true, ordering: .relaxed) }

    /// Publishes until it is closed and empty.
    ///
    /// - Parameter inFlight: the number of items in flight, including those handed in. A group that contains all of
    ///   them is published at once.
    func run(inFlight: @Sendable () -> Int = { .max }) async {
        while await publishNext(inFlight) {}
    }

    /// A function of its own, so that no file of a group stays open while the publisher waits for the next group.
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
            // Best effort: a cancelled task only polls without pauses, for as long as a group waits at most.
            try? await Task.sleep(for: .milliseconds(10))
        }
    }

    func publish(_ group: [Entry]) async {
        do {
            switch try await budget?.reserve(group.flatMap(\.blobs)) ?? .granted {
            case .granted: await publishReserved(group)
            case .full(let reason): await publish(group, withoutSpace: reason)
            }
        } catch {
            disk.report("\(error)")
            await end(group, .release)
        }
    }

    private func publishReserved(_ group: [Entry]) async {
        // The collector must not take these files for orphans until the transaction has recorded them.
        let names = group.flatMap { $0.blobs.map(\.hash.hex) }
        budget?.publishing.take(names)
        defer { budget?.publishing.letGo(names) }
        let unsent = await settle(await publishOnce(group))
        if !unsent.isEmpty { await sendAgain(unsent) }
    }

    /// An entry of a group, after its files were published.
    struct Published {
        let entry: Entry
        /// Of its first file without success; of a file that can be sent later only if all others succeeded.
        let failure: CacheError?
        let files: [BlobHash: BlobFile]
    }

    func publishOnce(_ group: [Entry]) async -> [Published] {
        do throws(JobsError) {
            try await store.eviction.announce(group.flatMap { $0.blobs.map(\.hash.hex) }, by: owner)
        } catch {
            let failure = CacheError(.disk, error.message)
            return group.map { Published(entry: $0, failure: $0.blobs.isEmpty ? nil : failure, files: [:]) }
        }
        let published = await blocking.run { [cache] in cache.publish(group.flatMap(\.blobs)) }
        await store.cache.countFailedSyncs(among: published.errors, logger)
        var errors = published.errors[...]
        return group.map { entry in
            let own = errors.prefix(entry.blobs.count).compactMap(\.self)
            errors = errors.dropFirst(entry.blobs.count)
            let files = entry.blobs.compactMap { blob in published.files[blob.hash].map { (blob.hash, $0) } }
            return Published(
                entry: entry, failure: own.first { !$0.isUnreachable } ?? own.first, files: Dictionary(files) { $1 })
        }
    }

    /// Records the endings of the entries that need not be sent again.
    ///
    /// - Returns: the others.
    func settle(_ results: [Published], isLast: Bool = false) async -> [Published] {
        let unsent = isLast ? [] : kept(of: results)
        let ended = unsent.isEmpty ? results : results.filter { $0.failure?.isUnreachable != true }
        if !ended.isEmpty {
            await settle(
                ended.map(\.entry), ended.map { ending(of: $0.entry, failure: $0.failure) },
                holding: ended.reduce(into: [:]) { files, result in files.merge(result.files) { $1 } })
        }
        return unsent
    }

    /// Ends items without their files.
    func end(_ group: [Entry], _ ending: ItemEnding) async {
        await settle(group, group.map { $0.blobs.isEmpty ? $0.ending : ending }, holding: [:])
    }

    /// Records the endings of a group. The transaction reads no files: it refuses a result with a file that may be
    /// deleted then. If the file still exists, the worker holds it, and a second transaction records the result.
    ///
    /// - Parameter published: the files of the published blobs, held until their items are ended.
    private func settle(
        _ group: [Entry], _ endings: [ItemEnding], holding published: [BlobHash: BlobFile],
    ) async {
        var held = HeldFiles(published, owner: owner)
        var endings = endings.map(Optional.some)
        var counted: [String: Int64] = [:]
        var rest = Array(group.indices)
        while !rest.isEmpty {
            let items = rest.compactMap { index in endings[index].map { (item: group[index].item, ending: $0) } }
            let links = await links.make(of: items)
            let finished = await finish(items, held.hashes(links: links), reservation(of: group))
            await self.links.settle(links, finished)
            guard let finished else {
                for index in rest { endings[index] = nil }
                break
            }
            counted.merge(finished.counted) { $1 }
            for index in rest where finished.fencedOut.contains(group[index].item.id) { endings[index] = nil }
            for index in rest {
                guard let failure = finished.refused[group[index].item.id], endings[index] != nil else { continue }
                endings[index] = .failed(failure)
            }
            rest = rest.filter { finished.doubtful.contains(group[$0].item.id) }
            for index in rest {
                guard case .done(let completion)? = endings[index] else { continue }
                if await !hold(completion, &held) { endings[index] = .release }
            }
        }
        // Files that the index refused may be deleted now.
        if endings.contains(where: { $0?.isDone != true }) {
            held.letGo(cache)
            // Best effort: they run out.
            try? await store.eviction.takeBackAnnouncements(of: owner)
        }
        await settleReservations(group, endings, counted)
        for (entry, ending) in zip(group, endings) { entry.committed.resume(returning: ending) }
    }

    /// - Returns: what the database did with each item; nil if the group could not be recorded. Its leases then
    ///   end with this process. Another worker repeats the items, and finds their files in the cache.
    private func finish(
        _ group: [(item: ClaimedItem, ending: ItemEnding)], _ held: HeldBlobs, _ reserved: GroupReservation?,
    ) async -> FinishedGroup? {
        for attempt in 1... {
            do {
                let finished = try await store.queue.finish(group, held: held, reserved: reserved)
                if group.contains(where: \.ending.isDone), disk.worked() { disk.sayItWorks(logger) }
                return finished
            } catch {
                if attempt == 1 { logger.error("Results can't be saved.", metadata: ["error": "\(error)"]) }
                let isUrgent = queue.isClosed || isHurried.load(ordering: .relaxed)
                guard error.isTransient, attempt < (isUrgent ? min(patience.retries, 10) : patience.retries) else {
                    fatal.withLock { $0 = $0 ?? error }
                    return nil
                }
                disk.report(error.message)
                // A cancelled task, too, gives the disk time to recover.
                await Pause.uncancelled(.seconds(1))
            }
        }
        return nil
    }
}
