internal import ContentCache
internal import Download
internal import Imaging
internal import Jobs
internal import Logging

/// The way of one item: cache, blacklist, network, pixels, publisher.
///
/// An item ends exactly once, through the publisher, whatever happens on the way.
final class Pipeline: Sendable {
    let store: JobStore
    let cache: ContentCache
    let downloader: Downloader
    let helpers: HelperPool
    let publisher: Publisher
    let disk: DiskWatch
    let collector: Collector
    let budget: CacheBudget
    let memory: MemoryTier
    let readOnly: [ReadOnlyCache]
    let settings: PipelineSettings
    let fetches: SharedFetches<Fetched>
    let crowds = Crowds()
    let retryBudget = RetryBudget()
    let toldWaits = ToldWaits()
    let sources = KeyedLock()
    let makings = Makings()
    let reading: BlockingQueue
    let assets: Assets
    /// Nil where nobody watches.
    let previews: Previews?
    let commands: Commands
    let delegate: (any WorkerDelegate)?
    let coder: String
    let delegates: DelegateVersions
    let logger: Logger

    init(
        store: JobStore, cache: ContentCache, downloader: Downloader, helpers: HelperPool, publisher: Publisher,
        disk: DiskWatch, collector: Collector, budget: CacheBudget, memory: MemoryTier,
        readOnly: [ReadOnlyCache], settings: PipelineSettings, assets directory: String?, previews: Previews?,
        commands: Commands, delegate: (any WorkerDelegate)?, extensions: ImagingExtensions, logger: Logger,
    ) {
        self.store = store
        self.cache = cache
        self.downloader = downloader
        self.helpers = helpers
        self.publisher = publisher
        self.disk = disk
        self.collector = collector
        self.budget = budget
        self.memory = memory
        self.readOnly = readOnly
        self.settings = settings
        self.commands = commands
        self.delegate = delegate
        coder = extensions.coders.version
        delegates = DelegateVersions(extensions, commands.installed)
        self.logger = logger
        self.previews = previews
        fetches = SharedFetches { name, place in
            downloader.update(priority: place.priority, rank: place.rank, for: name)
        }
        reading = BlockingQueue("cache.reading", width: 4)
        assets = Assets(directory: directory, store: store, cache: cache, reading: reading)
    }

    /// Takes an item to its end.
    ///
    /// - Parameter onMade: called once, when all that is left is to write it down.
    func process(
        _ item: ClaimedItem, _ plan: JobPlan, onMade: @Sendable () -> Void = {},
    ) async -> PublishedEnding {
        var holdings = Holdings()
        var item = item
        let result: ItemResult
        do throws(FetchFailure) {
            item = try await keyed(item, plan)
            result = await ProcessTurns.$item.withValue(item.id) { [item] in
                await self.result(of: item, plan, &holdings)
            }
        } catch {
            result = decided(error, of: item.url, attempts: item.attempts, isFetched: false)
        }
        var ending = result.ending
        if case .release(let reason?) = result.kind {
            let shortage = budget.reasonOfShortage
            if let shortage, !budget.isStuck, !disk.isInTrouble {
                ending = budget.putOff(shortage, now: store.currentTime)
            } else {
                disk.report(shortage ?? reason)
            }
        }
        let ended = holdings.lastTry.map(item.tried) ?? item
        onMade()
        let published = await publisher.commit(ended, ending, blobs: result.blobs)
        // Only now does the index know what was made, so only now may others look for it there.
        holdings.release(makings, fetches, item.id)
        return published
    }

    /// What items wait for, beside hosts.
    var turns: [ProcessTurns] {
        [helpers.turns, commands.turns] + ((delegate as? CommandDelegate).map { [$0.turns] } ?? [])
    }

    private func result(of item: ClaimedItem, _ plan: JobPlan, _ holdings: inout Holdings) async -> ItemResult {
        let result: ItemResult
        do throws(FetchFailure) {
            result = try await resultByKey(of: item, plan, &holdings)
        } catch {
            result = decided(error, of: item.url, attempts: item.attempts, isFetched: false)
        }
        if let stale = await stale(result, item, plan, &holdings) { return stale }
        guard delegate != nil, case .ended(.failed(let record)) = result.kind else { return result }
        return .failed(await judged(record, item.url))
    }

    private func resultByKey(
        of item: ClaimedItem, _ plan: JobPlan, _ holdings: inout Holdings,
    ) async throws(FetchFailure) -> ItemResult {
        if let cached = try await fromCache(item, plan, &holdings) { return cached }
        if plan.options.contains(.fromCacheOnly) {
            return .failed(FailureRecord(.notCached, "Not in the cache, and the job says from-cache-only."))
        }
        if !plan.options.contains(.retryFailed), let entry = item.blacklisting, settings.limits.keeps(entry),
            !plan.asksOtherwise(than: entry), try await !overrules(entry)
        {
            return .ending(.blacklisted(entry))
        }
        if let denied = try await denied(item) { return denied }
        if let blocked = blocked(item) { return blocked }
        return try await fromNetwork(item, plan, &holdings)
    }
}

/// The numbers that the pipeline goes by.
struct PipelineSettings: Sendable {
    var retries: RetryPolicy
    /// How long a cached source is used without asking the origin, in milliseconds; negative for ever.
    var maxAge: Int64
    var local = LocalSources()
    var maxBodyBytes: Int64 = 64 << 20
    var limits = OwnLimits()
    /// UTC milliseconds.
    var now: @Sendable () -> Int64
}

/// What an item came to, before it is published.
struct ItemResult: Sendable {
    enum Kind: Sendable {
        case ended(ItemEnding)
        /// Goes back to the queue as it was; the reason is the disk's, if there is one.
        case release(reason: String?)
    }

    let kind: Kind
    var blobs: [PendingBlob] = []

    var ending: ItemEnding {
        switch kind {
        case .ended(let ending): ending
        case .release: .release
        }
    }

    static func ending(_ ending: ItemEnding) -> ItemResult { ItemResult(kind: .ended(ending)) }
    static func failed(_ failure: FailureRecord) -> ItemResult { .ending(.failed(failure)) }
    static func release(_ reason: String? = nil) -> ItemResult { ItemResult(kind: .release(reason: reason)) }
}

/// What an item keeps others from doing twice until it is durable.
struct Holdings {
    /// The bytes of which it has made something, or uses what others have.
    private var bytes: String?
    var fetch: String?
    /// What would be sent for it, as the delegate has it.
    var request: DownloadRequest?
    /// The request that was made for it.
    var lastTry: TryRecord?

    mutating func join(_ makings: Makings, _ hash: String) {
        guard bytes != hash else { return }
        if let bytes { makings.leave(bytes) }
        makings.join(hash)
        bytes = hash
    }

    func release(_ makings: Makings, _ fetches: SharedFetches<Fetched>, _ user: Int64) {
        if let bytes { makings.leave(bytes) }
        if let fetch { fetches.leave(fetch, user: user) }
    }
}

extension Duration {
    var milliseconds: Int64 { components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000 }
}
