public import ContentCache
internal import Core
public import Jobs
public import Logging

/// Removes files that the cache need not keep, while workers write to the cache.
///
/// It chooses blobs without a lock, marks them in one transaction, and removes them in others of a few milliseconds
/// each.
public struct Collector: Sendable {
    /// The result of a collection.
    public struct Report: Sendable, Encodable {
        public var evictedBlobs = 0
        public var evictedBytes: Int64 = 0
        /// Files without a row in the index: a crash between publishing and the commit leaves them.
        public var orphans = 0
        /// Quarantined files that were removed because they expired or because their space was needed.
        public var quarantined = 0
        public var quarantinedBytes: Int64 = 0
        /// Files that could not be deleted, and the error of the last one. All other files were deleted.
        public var stuck = 0
        public var trouble: String?
        /// Why nothing was deleted although the disk has too little space; nil if deleting may help.
        public var hopeless: String?

        public init() {}
    }

    let store: JobStore
    let cache: ContentCache
    let policy: CachePolicy
    let logger: Logger
    let remover: FileRemover
    private let links: LinkKeeper
    /// Files that are being published, which therefore are no orphans.
    let publishing = PublishingBlobs()
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

    /// Applies the whole policy: age, size, free space, and what an earlier collection left.
    ///
    /// - Parameter myself: the running worker, whose reservations are in use.
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

    /// Evicts until `bytes` more fit into the cache's limit, or no evictable file is left.
    func freeSpace(for bytes: Int64) async throws -> Report {
        var report = Report()
        guard let limit = policy.maxBytes else { return report }
        try await removeMarked(&report)
        guard try await held() + bytes > limit else { return report }
        // Down to the low-water mark at once, so that the next group does not evict again.
        try await evict(&report, downTo: min(lowWater(of: limit), limit - bytes))
        return report
    }

    /// Evicts until the disk has its minimum of free space, or no evictable file is left.
    func freeDisk() async throws -> Report {
        var report = Report()
        try await removeMarked(&report)
        try await makeFree(policy.minimumFree, &report)
        return report
    }

    /// Evicts all files that are neither pinned nor in use.
    public func clear() async throws -> Report {
        var report = Report()
        try await store.eviction.releaseStuck()
        try await removeMarked(&report)
        try await evict(&report) { .max }
        try await store.lostFiles.forget(foundBefore: .max)
        try await store.database.noteSlices()
        return report
    }

    /// Removes the selected entries at once: index rows, links and, if no other entry needs them, bytes; also pinned
    /// ones.
    ///
    /// - Returns: the number of entries, and the report on the files.
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

    /// Removes the links and files of entries that another program has deleted from the index.
    func removeDeleted() async throws {
        guard try await store.eviction.hasMarked() else { return }
        var report = Report()
        try await removeMarked(&report)
    }

    private func held() async throws -> Int64 {
        let totals = try await store.cache.totals()
        return try await totals.bytes + totals.reservedBytes + quarantinedBytes()
    }

    /// The quarantine's bytes.
    func quarantinedBytes() async throws -> Int64 {
        try await disk.run { [quarantine] in Result { try quarantine.bytes() } }.get()
    }

    private func lowWater(of limit: Int64) -> Int64 { Int64(Double(limit) * min(1, max(0, policy.lowWater))) }

    // MARK: - Eviction

    private func evictOld(_ report: inout Report) async throws {
        var next: CacheEviction.Candidate?
        repeat {
            let page: [CacheEviction.Candidate]
            (page, next) = try await store.eviction.expired(by: policy.expiry, after: next)
            try await remove(page, &report)
        } while next != nil && !Task.isCancelled
        let maxAge = try await store.hosts.cacheMaxAge() ?? policy.maxAge
        guard maxAge >= 0 else { return }
        let cutoff = try await store.database.cacheTime() - maxAge
        try await store.lostFiles.forget(foundBefore: cutoff)
        repeat {
            let page: [CacheEviction.Candidate]
            (page, next) = try await store.eviction.candidates(nil, by: policy.expiry, notAfter: cutoff, after: next)
            try await remove(page, &report)
        } while next != nil && !Task.isCancelled
        // Forgets keys that were not used since `cutoff`, although other keys have used their files.
        while !Task.isCancelled, try await store.eviction.forgetKeys(usedBefore: cutoff) > 0 {
            try await store.maintenance.checkpoint()
            // Cancellation only ends the sleep early.
            try? await Task.sleep(for: .milliseconds(2))
        }
        try await links.unlinkRemoved()
    }

    private func evict(_ report: inout Report, downTo target: Int64) async throws {
        // Quarantined bytes are useless, so they are removed first.
        try await evictQuarantine(&report, try await held() - target)
        try await evict(&report) { try await held() - target }
    }

    /// Evicts in the policy's order, as long as there is an excess and an evictable file.
    ///
    /// - Parameter excess: the bytes above the target. It is called again for each group, since other workers evict as
    ///   well.
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

    /// The first candidates whose sizes cover the excess.
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
        // A folder in front of a bucket frees its disk without forgetting a blob.
        if cache.backing != nil { return try await trimFolder(keepingFree: minimum) }
        guard minimum > 0, try cache.freeBytes() < minimum else { return }
        if let hopeless = try await shortfall(of: minimum) {
            report.hopeless = hopeless
            return
        }
        try await evictQuarantine(&report, minimum - (try cache.freeBytes()))
        try await evict(&report) { minimum - (try cache.freeBytes()) }
    }

    /// - Returns: why deleting every evictable file would not free enough; then nothing is deleted.
    private func shortfall(of minimum: Int64) async throws -> String? {
        let evictable = max(0, try await store.cache.totals().bytes - store.cache.pinnedBytes())
        let free = try await cache.freeBytes() + evictable + quarantinedBytes()
        guard free < minimum else { return nil }
        return """
            Even without any file of the cache \(cache.directory) only \(diskText(free)) of its disk would be free, less than the \
            \(diskText(minimum)) that --min-free keeps, so nothing is deleted: lower --min-free, or free space on the disk.
            """
    }

    // MARK: - Removal

    /// Deletes the links of removed entries, and makes those again whose entries have come back.
    func settleLinks() async throws { try await links.unlinkRemoved() }

    private func remove(_ candidates: [CacheEviction.Candidate], _ report: inout Report) async throws {
        guard !candidates.isEmpty, try await store.eviction.markDying(candidates) > 0 else { return }
        try await removeMarked(&report)
    }

    /// Removes marked blobs in slices and pauses between them, so that writers get the lock.
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
            // Cancellation only ends the sleep early.
            try? await Task.sleep(for: .milliseconds(2))
        }
    }
}
