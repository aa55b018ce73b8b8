public import ContentCache
internal import Core
public import Jobs
internal import SystemPackage

/// The findings of a check of the cache against its index.
public struct CacheAudit: Sendable, Encodable {
    /// How much is read.
    public enum Depth: Sendable, Hashable {
        /// Names and sizes only.
        case quick
        /// This percentage of the blobs, chosen at random.
        case sample(percent: Double)
        case full
    }

    public struct Options: Sendable {
        public var depth = Depth.full
        /// Maximum bytes read per second; nil for no limit.
        public var rate: Int64?
        /// Resumes where the last verification stopped, if it did.
        public var resumes = false
        /// Queues missing and damaged files again.
        public var repairs = false
        /// Stops the verification and saves its position.
        public var stop = StopSignal()

        public init() {}
    }

    /// Checked blobs without a fault.
    public var good = 0
    /// Blobs whose bytes were read; of the others only the name and the size were looked at.
    public var read = 0
    public var bytes: Int64 = 0
    /// Blobs that the index has and the disk does not.
    public var missing: [String] = []
    /// Blobs whose bytes differ from their hash; they are in quarantine now.
    public var damaged: [String] = []
    /// Blobs that the disk cannot read, with the error.
    public var unreadable: [String] = []
    /// Blobs without a row: a crash between publishing and the commit leaves them. Harmless.
    public var orphans = 0
    /// Files that do not belong in the cache.
    public var strangers: [String] = []
    /// Consistency rules that the database breaks.
    public var inconsistencies: [String] = []
    /// Links that were missing or pointed elsewhere, and were repaired.
    public var repairedLinks = 0
    /// Jobs that were queued to fetch lost files again.
    public var repairJobs: [JobID] = []
    /// URLs with lost files for which no known job asked.
    public var unrepairable = 0
    /// Files lost now or earlier that are neither restored nor queued; at most 10,000.
    public var lost: [LostFile] = []
    /// The number of lost files that are not queued again because their URLs are on the blacklist.
    public var blacklisted = 0
    /// Lost files that a job will fetch again.
    public var onTheirWay = 0
    /// Damaged blobs in quarantine.
    public var quarantinedFiles = 0
    public var quarantinedBytes: Int64 = 0
    /// Whether it was stopped before it had checked everything.
    public var wasStopped = false

    /// Whether every invariant holds.
    public var isSound: Bool {
        missing.isEmpty && damaged.isEmpty && unreadable.isEmpty && strangers.isEmpty && inconsistencies.isEmpty
            && lost.isEmpty && repairJobs.isEmpty && unrepairable == 0
    }

    /// Checks every blob. The index forgets missing and damaged ones, so the next job that needs them makes them again.
    public static func run(
        store: JobStore, cache: ContentCache, options: Options = Options(), progress: (Int) -> Void = { _ in },
    ) async throws -> CacheAudit {
        var audit = CacheAudit()
        try await audit.checkIndex(store, cache, options, progress)
        if audit.wasStopped { return audit }
        // Also queues files that an earlier verification found lost, even if it was stopped.
        if options.repairs {
            let repairs = try await store.maintenance.repairLostFiles()
            (audit.repairJobs, audit.unrepairable) = (repairs.jobs, repairs.unknown)
        }
        audit.lost = try await store.lostFiles.list(limit: 10_000)
        audit.blacklisted = try await store.lostFiles.countOnBlacklist()
        (audit.quarantinedFiles, audit.quarantinedBytes) = try cache.quarantined()
        audit.onTheirWay = try await store.lostFiles.countOnTheirWay()
        try await audit.checkFolders(store, cache)
        audit.inconsistencies += try await store.maintenance.inconsistencies()
        let links = try await LinkKeeper(store: store, cache: cache).repair()
        audit.repairedLinks = links.made + links.removed
        audit.strangers += links.inTheWay
        if options.depth != .quick { try await store.cache.setProperty(Self.cursor, to: nil) }
        return audit
    }

    private static let cursor = "verify"

    private mutating func checkIndex(
        _ store: JobStore, _ cache: ContentCache, _ options: Options, _ progress: (Int) -> Void,
    ) async throws {
        let reading = BlockingQueue("cache.verify")
        var last = options.resumes ? try await store.cache.property(Self.cursor) ?? "" : ""
        var pace = Pace(rate: options.rate, stop: options.stop)
        while true {
            let page = try await store.cache.blobs(after: last, limit: 200)
            guard !page.isEmpty else { break }
            var lost: [IndexedBlob] = []
            for blob in page {
                let (hex, size) = (blob.hash, blob.size)
                if options.stop.isRequested || Task.isCancelled {
                    wasStopped = true
                    break
                }
                last = hex
                guard let hash = BlobHash(hex) else {
                    inconsistencies.append("The index names a blob '\(hex.prefix(80))', which is no SHA-256.")
                    continue
                }
                let isRead = options.depth.isRead()
                switch await reading.run({ isRead ? cache.check(hash, size: size) : cache.glance(hash, size: size) }) {
                case .good:
                    good += 1
                    bytes += size
                case .unreadable(let reason): unreadable.append(reason)
                case .missing:
                    // Most often it was evicted after the page was read.
                    guard try await store.cache.lastUse(of: hex) != nil else { continue }
                    missing.append(hex)
                    lost.append(blob)
                case .damaged:
                    damaged.append(hex)
                    lost.append(blob)
                }
                if isRead {
                    read += 1
                    await pace.spend(size)
                }
            }
            try await forget(lost, store)
            // The position is saved for a verification that is stopped; a quick one is simply repeated.
            if options.depth != .quick { try await store.cache.setProperty(Self.cursor, to: last) }
            progress(good)
            if wasStopped { return }
        }
    }

    private mutating func forget(_ lost: [IndexedBlob], _ store: JobStore) async throws {
        guard !lost.isEmpty else { return }
        let forgotten = Set(try await store.cache.forget(lost: lost))
        let back = Set(lost.map(\.hash)).subtracting(forgotten)
        // Files that were evicted or restored meanwhile are no fault.
        missing.removeAll { back.contains($0) }
    }

    private mutating func checkFolders(_ store: JobStore, _ cache: ContentCache) async throws {
        var found: [BlobHash] = []
        try cache.forEachFile { path, hash in
            if let hash { found.append(hash) } else { strangers.append(path.string) }
        }
        let unknown = try await store.eviction.unknown(blobs: found.map(\.hex))
        // A file that is missing by now was being evicted.
        orphans = unknown.count { name in BlobHash(name).map { cache.isThere($0) } ?? false }
    }
}

extension CacheAudit.Depth {
    fileprivate func isRead() -> Bool {
        switch self {
        case .quick: false
        case .sample(let percent): Double.random(in: 0..<100) < percent
        case .full: true
        }
    }
}

/// Limits reading to a number of bytes per second.
private struct Pace {
    let rate: Int64?
    let stop: StopSignal
    private var started = monotonicMilliseconds()
    private var spent: Int64 = 0
    /// In milliseconds: a century. It keeps the sum with the present time from overflowing.
    private static let longestWait = 3.2e12

    init(rate: Int64?, stop: StopSignal) {
        self.rate = rate
        self.stop = stop
    }

    mutating func spend(_ bytes: Int64) async {
        guard let rate, rate > 0 else { return }
        spent += bytes
        let due = started + Int64(min(Double(spent) / Double(rate) * 1_000, Self.longestWait))
        while !stop.isRequested, !Task.isCancelled {
            let ahead = due - monotonicMilliseconds()
            guard ahead > 0 else { return }
            // Cancellation only ends the sleep early; the caller checks for it.
            try? await Task.sleep(for: .milliseconds(min(ahead, 100)))
        }
    }
}
