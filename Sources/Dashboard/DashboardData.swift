internal import ContentCache
internal import Core
internal import FoundationEssentials
internal import Glibc
internal import HTTPTypes
internal import Jobs
internal import PrefetchWorker
internal import Synchronization
internal import SystemPackage

/// The data of the pages, read from the database.
struct DashboardData: Sendable {
    private let store: JobStore
    /// The cache's folder on this machine; the pages show the free space of its disk.
    private let folder: String
    private let redaction: Redaction
    private let shown: ShownURLs
    private let files: OpenCache
    private let sorted: SortedItems

    init(store: JobStore, cache: CacheLocation, redaction: Redaction, shown: ShownURLs) {
        self.store = store
        folder = cache.folder
        self.redaction = redaction
        self.shown = shown
        files = OpenCache(cache)
        sorted = SortedItems(store.reports)
    }

    // MARK: - The overview

    struct State: Encodable {
        let now: WallTime
        /// Since when all jobs are paused.
        let suspendedSince: WallTime?
        let jobs: [JobProgress]
        let waits: [HostWaits]
        let queued, active, delayed: Int
        let workers: [WorkerStatus]
        let blacklisted, blockedHosts: Int
        let cacheFiles, cacheBytes, hits, misses: Int64
        let diskFree: Int64?
        /// Of the last slot and the one before, so that a rate can be shown at once.
        let endedPerSecond, bytesPerSecond: Double
    }

    func state() async throws(JobsError) -> State {
        let backlog = try await store.reports.backlog()
        let gauges = try await store.reports.gauges()
        let totals = try await store.cache.totals()
        let now = store.database.currentTime
        let clock = Double(now.milliseconds) / 1_000
        // Older slots say nothing about the present rate.
        let recent = try await store.activity.lastHour().suffix(2).filter { clock - Double($0.start) < 90 }
        let seconds = recent.first.map { max(1, clock - Double($0.start)) } ?? 1
        return State(
            now: now, suspendedSince: try await store.reports.suspendedSince(),
            jobs: try await store.reports.progress(latest: 20), waits: try await store.hosts.waits(limit: 20),
            queued: backlog.queued, active: backlog.active, delayed: backlog.delayed,
            workers: try await store.workers.live(),
            blacklisted: gauges.blacklisted, blockedHosts: gauges.blockedHosts, cacheFiles: totals.blobs,
            cacheBytes: totals.bytes, hits: totals.hits, misses: totals.misses, diskFree: diskFree,
            endedPerSecond: Double(recent.reduce(0) { $0 + $1.counts.total(of: .ended) }) / seconds,
            bytesPerSecond: Double(recent.reduce(0) { $0 + $1.counts.total(of: .received) }) / seconds)
    }

    private var diskFree: Int64? {
        var info = statvfs()
        guard statvfs(folder, &info) == 0 else { return nil }
        return Int64(clamping: info.f_bavail.multipliedReportingOverflow(by: info.f_frsize).partialValue)
    }

    /// A slot of the charts.
    struct Slot: Encodable {
        /// UTC seconds.
        let start: Int64
        let done, cached, failed, bytes, helperRestarts: Int64
        /// By class.
        let failures: [String: Int64]
        /// The median and the 95th percentile, in seconds; nil where nothing was measured.
        let fetch, transform, publish: [Double?]
    }

    struct Charts: Encodable {
        let now: WallTime
        let slotSeconds: Int64
        let slots: [Slot]
    }

    func charts() async throws(JobsError) -> Charts {
        let slots = try await store.activity.lastHour().map { slot in
            let ended = slot.counts.labels(of: .ended)
            let failures = ended.filter { $0.label.hasPrefix("failed ") }.prefix(100)
                .map { (String($0.label.dropFirst("failed ".count)), $0.value) }
            func count(_ label: String) -> Int64 { ended.first { $0.label == label }?.value ?? 0 }
            func times(_ counter: Counter) -> [Double?] { [0.5, 0.95].map { slot.counts.quantile($0, of: counter) } }
            return Slot(
                start: slot.start, done: count("done"), cached: count("cached"),
                failed: slot.counts.total(of: .ended, labels: "failed ") + count("blacklisted"),
                bytes: slot.counts.total(of: .received),
                helperRestarts: slot.counts.total(of: .helperRestarts),
                failures: Dictionary(failures) { first, _ in first },
                fetch: times(.fetching), transform: times(.transforming), publish: times(.publishing))
        }
        return Charts(now: store.database.currentTime, slotSeconds: ActivityBook.slotSeconds, slots: slots)
    }

    // MARK: - A job

    struct Job: Encodable {
        let job: JobProgress
        let waits: [HostWaits]
    }

    struct Failures: Encodable {
        /// The most frequent first.
        let counts: [FailureCounts.Count]
        /// Whether only the first failures were counted.
        let isCut: Bool
    }

    func job(_ id: JobID) async throws -> Job {
        guard let job = try await store.reports.progress(job: id) else {
            throw Refusal(.notFound, "There is no job \(id).")
        }
        return Job(job: job, waits: try await store.hosts.waits(job: id, limit: 20))
    }

    /// A request of its own, since searching a job of a million items for its failures takes a while.
    func failures(of job: JobID) async throws(JobsError) -> Failures {
        let failures = try await FailureCounts(of: [job], in: store)
        return Failures(counts: Array(failures.counts.prefix(100)), isCut: failures.isCut)
    }

    func items(of job: JobID, _ query: ItemQuery) async throws -> ItemPage {
        var page =
            if let sort = query.sort {
                try await sorted.page(job: job, query, sortedBy: sort)
            } else {
                try await store.reports.items(job: job, query)
            }
        page.items = page.items.map { $0.hidden(by: redaction) }
        return page
    }

    struct History: Encodable {
        let item: ItemLine
        let results: [ResultRow]
        let tries: [TryRecord]
        let wait: String?
        let blacklisted: BlacklistEntry?
        let source: SourceRecord?
        let isPinned: Bool
        /// Of the item's URL, for the button that pins it.
        let handle: String
    }

    func history(ofItem id: Int64) async throws -> History {
        guard let item = try await store.reports.item(id) else { throw Refusal(.notFound, "There is no item \(id).") }
        var source: SourceRecord?
        var entry: BlacklistEntry?
        for key in try await store.cache.keys(ofURL: item.url, everyState: true) {
            if source == nil { source = try await store.cache.source(key: key) }
            if entry == nil { entry = try await store.blacklist.entries(.url(key), limit: 1).first }
        }
        return History(
            item: item.hidden(by: redaction),
            results: try await store.reports.results(job: item.job, after: id - 1, limit: 1)
                .filter { $0.item == id }.map { $0.hidden(by: redaction) },
            tries: try await store.reports.tries(ofURL: item.url, limit: 20),
            wait: try await store.hosts.waitReason(of: id)?.reason,
            blacklisted: entry?.hidden(by: redaction), source: source?.hidden(by: redaction),
            isPinned: try await store.cache.isPinned(item.url), handle: shown.handle(of: item.url))
    }

    // MARK: - Pictures

    /// Pictures that every browser shows, by format.
    private static let types = [
        "webp": "image/webp", "jpeg": "image/jpeg", "png": "image/png", "gif": "image/gif", "avif": "image/avif",
    ]
    /// A larger picture is no thumbnail.
    private static let maxBytes: Int64 = 4 << 20

    /// The smallest picture of an item that a browser shows, and its type.
    func picture(ofItem id: Int64) async throws -> ([UInt8], String) {
        guard let item = try await store.reports.item(id) else { throw Refusal(.notFound, "There is no item \(id).") }
        let rows = try await store.reports.results(job: item.job, after: id - 1, limit: 1)
            .filter { $0.item == id && ($0.size ?? .max) <= Self.maxBytes && Self.types[$0.format ?? ""] != nil }
        guard let row = rows.min(by: { ($0.size ?? 0) < ($1.size ?? 0) }), let variant = row.variant,
            let type = row.format.flatMap({ Self.types[$0] })
        else { throw Refusal(.notFound, "The item has no picture that a browser shows.") }
        let found = try await CacheReader(store: store, cache: try files.opened()).find(item.url, variant: variant)
        guard let path = found.path, found.entry?.blob == row.blob else {
            throw Refusal(.notFound, "The picture is not in the cache any longer.")
        }
        return (Array(try Data(contentsOf: URL(filePath: path))), type)
    }

    // MARK: - Other pages

    struct Hosts: Encodable {
        let hosts: [HostStatus]
        let limits: [LimitsRecord]
    }

    func hosts() async throws(JobsError) -> Hosts {
        Hosts(hosts: try await store.hosts.statuses(limit: 500), limits: try await store.hosts.limits())
    }

    struct ListedURL: Encodable {
        let entry: BlacklistEntry
        let handle: String

        private enum CodingKeys: CodingKey { case handle }

        func encode(to encoder: any Encoder) throws {
            try entry.encode(to: encoder)
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(handle, forKey: .handle)
        }
    }

    struct ListedURLs: Encodable {
        /// The latest 500.
        let entries: [ListedURL]
        /// How many the selection has, expired ones included.
        let count: Int
    }

    func blacklist(_ selection: Blacklist.Selection) async throws(JobsError) -> ListedURLs {
        ListedURLs(
            entries: try await store.blacklist.entries(selection, limit: 500).map {
                ListedURL(entry: $0.hidden(by: redaction), handle: shown.handle(of: $0.url))
            },
            count: try await store.blacklist.count(selection))
    }

    struct CacheReport: Encodable {
        let totals: CacheTotals
        let diskFree: Int64?
        let formats: [CacheIndex.CacheShare]
        let pinned: [ShownURLs.Shown]
        /// The files that would be evicted first.
        let next: [Next]
    }

    struct Next: Encodable {
        let size: Int64
        /// One of the URLs that use the file.
        let url: String?
        let handle: String?
        let variant: String?
    }

    func cacheReport() async throws -> CacheReport {
        CacheReport(
            totals: try await store.cache.totals(), diskFree: diskFree,
            formats: try await store.cache.shares(by: .format),
            pinned: try await store.cache.pinned(limit: 100).map(shown.callAsFunction), next: try await next())
    }

    private func next() async throws(JobsError) -> [Next] {
        var next: [Next] = []
        for candidate in try await store.eviction.candidates(nil, by: .used, limit: 10).page {
            let entry = try await store.cache.entries(ofBlob: candidate.hash, limit: 1).first
            let url = entry.map { shown($0.key) }
            next.append(Next(size: candidate.size, url: url?.url, handle: url?.handle, variant: entry?.variant))
        }
        return next
    }

    func schedules() async throws(JobsError) -> [ScheduleRecord] { try await store.schedules.all() }
}

/// The cache, opened when its first picture is shown: opening it looks at each of its folders.
private final class OpenCache: Sendable {
    private let location: CacheLocation
    private let cache = Mutex<ContentCache?>(nil)

    init(_ location: CacheLocation) { self.location = location }

    func opened() throws -> ContentCache {
        try cache.withLock { cache in
            let opened = try cache ?? location.open(isNew: false)
            cache = opened
            return opened
        }
    }
}
