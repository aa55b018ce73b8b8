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
        /// So many of a hundred blobs, at random.
        case sample(percent: Double)
        case full
    }

    public struct Options: Sendable {
        public var depth = Depth.full
        /// Bytes read in a second; nil for as fast as the disk gives them.
        public var rate: Int64?
        /// Goes on where the last verification stopped, if it did.
        public var resumes = false
        /// Queues missing and damaged files again.
        public var repairs = false
        /// Stops it, with its place written down.
        public var stop = StopSignal()

        public init() {}
    }

    /// Blobs that are what their names say, as far as they were looked at.
    public var good = 0
    public var bytes: Int64 = 0
    /// Blobs the index knows and the disk doesn't have.
    public var missing: [String] = []
    /// Blobs whose bytes are not what their name says; they are in quarantine now.
    public var damaged: [String] = []
    /// Blobs that the disk doesn't give, with its reason.
    public var unreadable: [String] = []
    /// Blobs that nothing refers to: a crash between publishing and the commit leaves them. Harmless.
    public var unreferenced = 0
    /// Files that have no business in the cache.
    public var strangers: [String] = []
    /// Rules that the database breaks.
    public var inconsistencies: [String] = []
    /// Links that were missing or led elsewhere, and were put right.
    public var repairedLinks = 0
    /// Jobs that were queued to fetch lost files again.
    public var repairJobs: [JobID] = []
    /// URLs of which something was lost that no job is known to have wanted.
    public var unrepairable = 0
    /// Files lost now or earlier that are neither back nor queued; 10,000 at most.
    public var lost: [LostFile] = []
    /// How many of them aren't queued again, since their URLs are on the blacklist.
    public var blacklisted = 0
    /// Files that were lost and that a job is about to fetch again.
    public var onTheirWay = 0
    /// Damaged blobs in quarantine.
    public var quarantinedFiles = 0
    public var quarantinedBytes: Int64 = 0
    /// Whether it was stopped before it had looked at everything.
    public var wasStopped = false

    /// Whether every invariant holds.
    public var isSound: Bool {
        missing.isEmpty && damaged.isEmpty && unreadable.isEmpty && strangers.isEmpty && inconsistencies.isEmpty
            && lost.isEmpty && repairJobs.isEmpty && unrepairable == 0
    }

    /// Checks every blob. The index forgets missing and damaged ones, so that the next job that needs them makes them anew.
    public static func run(
        store: JobStore, cache: ContentCache, options: Options = Options(), progress: (Int) -> Void = { _ in },
    ) async throws -> CacheAudit {
        var audit = CacheAudit()
        try await audit.checkIndex(store, cache, options, progress)
        if audit.wasStopped { return audit }
        // Files that an earlier verification found lost as well, however it ended.
        if options.repairs {
            let repairs = try await store.maintenance.repairLostFiles()
            (audit.repairJobs, audit.unrepairable) = (repairs.jobs, repairs.unknown)
        }
        audit.lost = try await store.cache.lostFiles(limit: 10_000)
        audit.blacklisted = try await store.cache.lostFilesOnBlacklist()
        (audit.quarantinedFiles, audit.quarantinedBytes) = try cache.quarantined()
        audit.onTheirWay = try await store.cache.lostFilesOnTheirWay()
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
                    // Evicted since the page was read, more often than not.
                    guard try await store.cache.use(of: hex) != nil else { continue }
                    missing.append(hex)
                    lost.append(blob)
                case .damaged:
                    damaged.append(hex)
                    lost.append(blob)
                }
                if isRead { await pace.spend(size) }
            }
            try await forget(lost, store)
            // The place is kept for a verification that is stopped; quick ones aren't worth it.
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
        // One that is gone by now was about to be evicted.
        unreferenced = unknown.count { name in BlobHash(name).map { cache.isThere($0) } ?? false }
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

/// Keeps reading to so many bytes a second.
private struct Pace {
    let rate: Int64?
    let stop: StopSignal
    private var started = monotonicMilliseconds()
    private var spent: Int64 = 0

    init(rate: Int64?, stop: StopSignal) {
        self.rate = rate
        self.stop = stop
    }

    mutating func spend(_ bytes: Int64) async {
        guard let rate, rate > 0 else { return }
        spent += bytes
        let due = started + Int64(Double(spent) / Double(rate) * 1_000)
        while !stop.isRequested, !Task.isCancelled {
            let ahead = due - monotonicMilliseconds()
            guard ahead > 0 else { return }
            // Cancellation cuts the nap short; the caller looks for it.
            try? await Task.sleep(for: .milliseconds(min(ahead, 100)))
        }
    }
}
