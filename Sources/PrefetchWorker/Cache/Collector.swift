public import ContentCache
internal import Core
public import Jobs
public import Logging

/// Removes files that the cache needn't hold any more, beside workers that write to it.
///
/// Blobs are chosen without a lock, marked in one transaction, and removed in others that take a few milliseconds each.
public struct Collector: Sendable {
    /// The result of a collection.
    public struct Report: Sendable, Encodable {
        public var evictedBlobs = 0
        public var evictedBytes: Int64 = 0
        /// Files without a row in the index: a crash between publishing and the commit leaves them.
        public var orphans = 0
        /// Files that had been in quarantine for long enough, or whose room was needed.
        public var quarantined = 0
        public var quarantinedBytes: Int64 = 0
        /// Files that could not be deleted, and why the last of them. The others were.
        public var stuck = 0
        public var trouble: String?
        /// Why nothing was deleted though the disk has too little room; nil where something may help.
        public var hopeless: String?

        public init() {}
    }

    let store: JobStore
    let cache: ContentCache
    let policy: CachePolicy
    let logger: Logger
    let remover: FileRemover
    private let links: LinkKeeper
    /// Files that are being published, and so aren't orphans.
    let inHand = PublishingBlobs()
    private let quarantine: QuarantineMeter
    let disk = BlockingQueue("cache.collector")

    public init(store: JobStore, cache: ContentCache, policy: CachePolicy, logger: Logger) {
        self.store = store
        self.cache = cache
        self.policy = policy
        self.logger = logger
        remover = FileRemover(store.eviction, cache)
        links = LinkKeeper(store: store, cache: cache, logger: logger)
        quarantine = QuarantineMeter(cache)
    }

    /// Applies the whole policy: age, size, free space, and the rest of an earlier collection.
    ///
    /// - Parameter myself: a worker whose reservations are still in use.
    public func collect(orphans: Bool = true, myself: Int64? = nil) async throws -> Report {
        var report = Report()
        try await store.database.keepCacheClock()
        try await store.eviction.releaseStuck()
        try await removeMarked(&report)
        try await evictOld(&report)
        if let limit = policy.maxBytes, try await held() > limit {
            try await evict(&report, downTo: lowWater(of: limit))
        }
        try await makeFree(policy.minimumFree, &report)
        let dead = try await store.eviction.deadReservations(myself: myself)
        if orphans || !dead.isEmpty { try await removeOrphans(&report, of: dead, myself: myself) }
        if orphans { try await removeLeftovers(&report) }
        try await store.database.noteSlices()
        return report
    }

    /// Evicts until `bytes` more fit into the cache's limit, or nothing is left that may go.
    func makeRoom(for bytes: Int64) async throws -> Report {
        var report = Report()
        guard let limit = policy.maxBytes else { return report }
        try await removeMarked(&report)
        guard try await held() + bytes > limit else { return report }
        // Down to the low-water mark at once, so that it isn't done again for the next group.
        try await evict(&report, downTo: min(lowWater(of: limit), limit - bytes))
        return report
    }

    /// Evicts until the disk has its free room again, or nothing is left that may go.
    func freeDisk() async throws -> Report {
        var report = Report()
        try await removeMarked(&report)
        try await makeFree(policy.minimumFree, &report)
        return report
    }

    /// Everything that isn't pinned or in use.
    public func clear() async throws -> Report {
        var report = Report()
        try await store.eviction.releaseStuck()
        try await removeMarked(&report)
        try await evict(&report) { .max }
        try await store.cache.forgetLostFiles(foundBefore: .max)
        try await store.database.noteSlices()
        return report
    }

    /// Removes single pictures at once: index, links and, where nothing else needs them, bytes. Pinned ones go, too.
    ///
    /// - Returns: how many entries there were, and what went of the files.
    public func remove(_ selection: EntrySelection) async throws -> (entries: Int, Report) {
        var report = Report()
        var count = 0
        var next: CacheEntry?
        repeat {
            let page: [CacheEntry]
            (page, next) = try await store.cache.entries(selection, after: next)
            count += try await store.cache.remove(page)
        } while next != nil && !Task.isCancelled
        try await removeMarked(&report)
        return (count, report)
    }

    private func held() async throws -> Int64 {
        let totals = try await store.cache.totals()
        return try await totals.bytes + totals.reservedBytes + quarantinedBytes()
    }

    /// What damaged files take up of the cache's room.
    func quarantinedBytes() async throws -> Int64 {
        try await disk.run { [quarantine] in Result { try quarantine.bytes() } }.get()
    }

    private func lowWater(of limit: Int64) -> Int64 { Int64(Double(limit) * min(1, max(0, policy.lowWater))) }

    // MARK: - Eviction

    private func evictOld(_ report: inout Report) async throws {
        guard policy.maxAge >= 0 else { return }
        let cutoff = try await store.database.cacheTime() - policy.maxAge
        try await store.cache.forgetLostFiles(foundBefore: cutoff)
        var next: CacheEviction.Candidate?
        repeat {
            let page: [CacheEviction.Candidate]
            (page, next) = try await store.eviction.candidates(nil, by: policy.expiry, notAfter: cutoff, after: next)
            try await remove(page, &report)
        } while next != nil && !Task.isCancelled
        // Of files that others have used since, the names of those who have not.
        while !Task.isCancelled, try await store.eviction.forgetKeys(usedBefore: cutoff) > 0 {
            try await store.maintenance.checkpoint()
            // Cancellation only cuts the nap short.
            try? await Task.sleep(for: .milliseconds(2))
        }
        try await links.unlinkRemoved()
    }

    private func evict(_ report: inout Report, downTo target: Int64) async throws {
        // Quarantined bytes are of no use, and go first.
        try await evictQuarantine(&report, try await held() - target)
        try await evict(&report) { try await held() - target }
    }

    /// Evicts in the policy's order for as long as there is an excess, and something that may go.
    ///
    /// - Parameter excess: bytes that are still too many. Asked again after every group, since others collect as well.
    private func evict(_ report: inout Report, excess: () async throws -> Int64) async throws {
        for kind in classes {
            var next: CacheEviction.Candidate?
            repeat {
                var page: [CacheEviction.Candidate]
                (page, next) = try await store.eviction.candidates(kind, by: policy.expiry, after: next)
                while !page.isEmpty {
                    let group = enough(of: page, for: try await excess())
                    if group.isEmpty { return }
                    try await remove(group, &report)
                    if Task.isCancelled { return }
                    page.removeFirst(group.count)
                }
            } while next != nil
        }
    }

    /// No more than has to go.
    private func enough(of page: [CacheEviction.Candidate], for excess: Int64) -> [CacheEviction.Candidate] {
        var left = excess
        var group: [CacheEviction.Candidate] = []
        for candidate in page where left > 0 {
            group.append(candidate)
            left -= candidate.size
        }
        return group
    }

    private var classes: [CacheEviction.Kind?] {
        switch policy.first {
        case .oldest: [nil]
        case .sources: [.sources, .variants]
        case .variants: [.variants, .sources]
        }
    }

    private func makeFree(_ minimum: Int64, _ report: inout Report) async throws {
        guard minimum > 0, try cache.freeBytes() < minimum else { return }
        if let hopeless = try await shortfall(of: minimum) {
            report.hopeless = hopeless
            return
        }
        try await evictQuarantine(&report, minimum - (try cache.freeBytes()))
        try await evict(&report) { minimum - (try cache.freeBytes()) }
    }

    /// Where deleting everything that may go would not do, nothing is deleted.
    private func shortfall(of minimum: Int64) async throws -> String? {
        let evictable = max(0, try await store.cache.totals().bytes - store.cache.pinnedBytes())
        let free = try await cache.freeBytes() + evictable + quarantinedBytes()
        guard free < minimum else { return nil }
        return """
            Even without any file of the cache \(cache.directory) only \(free >> 20) MiB of its disk would be free, less than the \
            \(minimum >> 20) MiB that --min-free keeps, so nothing is deleted: lower --min-free, or make room on the disk.
            """
    }

    // MARK: - How it goes

    private func remove(_ candidates: [CacheEviction.Candidate], _ report: inout Report) async throws {
        guard !candidates.isEmpty, try await store.eviction.markDying(candidates) > 0 else { return }
        try await removeMarked(&report)
    }

    /// Slice by slice, with a breath between them, so that writers have their turn.
    private func removeMarked(_ report: inout Report) async throws {
        try await links.unlinkRemoved()
        while true {
            let removal = try await remover.removeDying()
            try await links.unlinkRemoved()
            report.evictedBlobs += removal.gone.count
            report.evictedBytes += removal.bytes
            report.stuck += removal.stuck.count
            report.trouble = removal.trouble ?? report.trouble
            guard removal.isUnfinished, !Task.isCancelled else { return }
            try await store.maintenance.checkpoint()
            // Cancellation only cuts the nap short.
            try? await Task.sleep(for: .milliseconds(2))
        }
    }
}
