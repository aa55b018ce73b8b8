internal import ContentCache
internal import Core
internal import Jobs
internal import Logging
internal import Synchronization

/// Publishes stored pictures in groups, in the order of ``Publisher``: it names and syncs their files first, then one
/// transaction records that they exist.
final class PicturePublisher: Sendable {
    enum Outcome: Sendable {
        case recorded
        /// A known picture that the index no longer has.
        case gone
        /// The disk or the database failed.
        case broken(WorkerError)
    }

    struct Entry: Sendable {
        let picture: StoredPicture
        /// Nil for a known picture.
        let blob: PendingBlob?
        let ended: CheckedContinuation<Outcome, Never>
    }

    private let store: JobStore
    private let cache: ContentCache
    private let collector: Collector
    private let disk: DiskWatch
    private let budget: CacheBudget
    private let links: LinkKeeper
    private let logger: Logger
    private let queue = WorkQueue<Entry>()
    private let blocking = BlockingQueue("picture.publisher")
    /// For announcements of files.
    private let owner = Int64.random(in: 1 ... .max)
    /// Pictures that will be published soon or have been handed in.
    private let inFlight = Atomic(0)

    init(_ store: JobStore, _ cache: ContentCache, _ collector: Collector, _ budget: CacheBudget, _ logger: Logger) {
        self.store = store
        self.cache = cache
        self.collector = collector
        self.budget = budget
        self.logger = logger
        disk = DiskWatch(cache: cache, minimumFree: collector.policy.minimumFree)
        links = LinkKeeper(store: store, cache: cache, logger: logger)
    }

    /// Counts a picture as in flight while `body` runs: a group that contains all of them is published at once.
    func expecting<R>(_ body: () async throws(Failure) -> R) async throws(Failure) -> R {
        inFlight.add(1, ordering: .relaxed)
        defer { inFlight.subtract(1, ordering: .relaxed) }
        return try await body()
    }

    /// Records a picture, and returns once its record is durable.
    func commit(_ picture: StoredPicture, _ blob: PendingBlob?) async -> Outcome {
        await withCheckedContinuation { continuation in
            if !queue.put(Entry(picture: picture, blob: blob, ended: continuation)) {
                continuation.resume(returning: .broken(WorkerError(.internalError, "The cache is closed.")))
            }
        }
    }

    func close() { queue.close() }

    /// Publishes until it is closed and empty.
    func run() async {
        while await publishNext() {}
    }

    /// A function of its own, so that no file of a group stays open while the next group is awaited.
    private func publishNext() async -> Bool {
        guard let first = await queue.next() else { return false }
        var group = [first]
        let deadline = monotonicMilliseconds() + Publisher.groupMilliseconds
        while true {
            group += queue.takeAvailable(Publisher.groupItems - group.count)
            let isComplete =
                group.count >= Publisher.groupItems || group.count >= inFlight.load(ordering: .relaxed)
            if isComplete || queue.isClosed || monotonicMilliseconds() >= deadline { break }
            // Best effort: a cancelled task only polls without pauses, for as long as a group waits at most.
            try? await Task.sleep(for: .milliseconds(5))
        }
        await publish(group)
        return true
    }

    private func publish(_ group: [Entry]) async {
        let blobs = group.compactMap(\.blob)
        do throws(WorkerError) {
            if !blobs.isEmpty { try await checkDisk() }
        } catch {
            return end(group, .broken(error))
        }
        let names = blobs.map(\.hash.hex)
        budget.publishing.take(names)
        defer { budget.publishing.letGo(names) }
        do throws(JobsError) {
            try await store.eviction.announce(names, by: owner)
        } catch {
            return end(group, .broken(WorkerError(error)))
        }
        let published = await blocking.run { [cache] in cache.publish(blobs) }
        await store.cache.countFailedSyncs(among: published.errors, logger)
        var errors = published.errors[...]
        var (ready, failed): ([Entry], [(Entry, CacheError)]) = ([], [])
        for entry in group {
            if entry.blob != nil, let error = errors.popFirst() ?? nil {
                failed.append((entry, error))
            } else {
                ready.append(entry)
            }
        }
        await record(ready, HeldFiles(published.files, owner: owner))
        for (entry, error) in failed { entry.ended.resume(returning: .broken(WorkerError(error))) }
    }

    private func record(_ group: [Entry], _ held: HeldFiles) async {
        let made = await links.make(group.filter { $0.blob != nil }.map(\.picture.entry))
        let blobs = group.compactMap(\.blob)
        let reserved = budget.worker.map { worker in
            GroupReservation(
                worker: worker, hashes: Set(blobs.filter { $0.file.cacheReservation != nil }.map(\.hash.hex)))
        }
        do throws(JobsError) {
            let stored = try await store.cache.store(
                group.map(\.picture), held: held.hashes(links: made), reserved: reserved)
            await links.settle(made, changed: stored.links, isWhole: true)
            if reserved != nil { budget.handOver(blobs, counted: stored.counted) }
            for (place, entry) in group.enumerated() {
                entry.ended.resume(returning: stored.gone.contains(place) ? .gone : .recorded)
            }
        } catch {
            await links.settle(made, changed: [], isWhole: false)
            held.letGo(cache)
            // Best effort: announcements run out. Until then the files would count as files of another program.
            try? await store.eviction.takeBackAnnouncements(of: owner)
            await removeUnrecorded(blobs)
            end(group, .broken(WorkerError(error)))
        }
    }

    private func end(_ group: [Entry], _ outcome: Outcome) {
        for entry in group { entry.ended.resume(returning: outcome) }
    }

    /// - Throws: `tryLater` if the disk has less free space than it must keep, and nothing more can be evicted.
    private func checkDisk() async throws(WorkerError) {
        guard disk.trouble() != nil else { return }
        do {
            _ = try await collector.freeDisk()
        } catch {
            throw WorkerError(any: error)
        }
        disk.lookAgain()
        if let trouble = disk.trouble() { throw WorkerError(.tryLater, trouble) }
    }

    /// Files that could not be recorded have a name and are counted nowhere.
    private func removeUnrecorded(_ blobs: [PendingBlob]) async {
        do {
            _ = try await collector.remover.removeUnknown(Set(blobs.map(\.hash.hex)).sorted())
        } catch {
            logger.warning("Unreferenced files stay until the next collection.", metadata: ["error": "\(error)"])
        }
    }
}
