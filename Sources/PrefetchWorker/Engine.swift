internal import ContentCache
internal import Core
internal import Download
internal import ImageFiles
internal import Jobs
internal import Logging
internal import SystemPackage

/// The parts of a run, built from its configuration.
struct Engine: Sendable {
    let store: JobStore
    let downloader: Downloader
    let helpers: HelperPool
    let collector: Collector
    let stages: Stages
    /// The processes that items wait for: helpers, commands and delegate programs.
    let waits: [any ItemWaits]

    let cache: ContentCache
    private let files: SourceFiles
    var disk: DiskWatch { stages.failures.disk }
    var budget: CacheBudget { files.budget }
    var memory: MemoryTier { files.memory }

    init(_ configuration: WorkerConfiguration, _ store: JobStore, logger: Logger) throws {
        self.store = store
        let cache = try configuration.cacheLocation.open(syncs: configuration.syncs)
        var policy = configuration.cachePolicy
        policy.folderBytes = configuration.bucket.folderBytes
        policy.minimumFree = try configuration.minimumFree ?? min(1 << 30, cache.diskBytes() / 20)
        self.cache = cache
        let disk = DiskWatch(cache: cache, minimumFree: policy.minimumFree)
        collector = Collector(store: store, cache: cache, policy: policy, logger: logger)
        let files = SourceFiles(
            cache: cache, memory: MemoryTier(limits: configuration.memoryTier),
            budget: CacheBudget(store: store, collector: collector),
            reading: BlockingQueue("cache.reading", width: 4))
        self.files = files
        downloader = try Self.downloader(configuration, cache, files.budget, limit: policy.maxBytes)
        helpers = HelperPool(
            configuration: configuration.helpers, limits: configuration.images, cache: cache, logger: logger)
        let scratch = ScratchFiles(cache: cache, isInMemory: policy.maxBytes != nil)
        let commands = Commands(
            try configuration.commands.map { try InstalledCommand($0) }, limits: configuration.commandLimits,
            width: configuration.helpers.count, scratch: scratch)
        let delegate = DelegateQuestions(
            delegate: try Self.delegate(configuration, scratch), files: files, logger: logger)
        let settings = StageSettings(
            retries: configuration.retries, maxAge: configuration.maxAge, cacheMaxAge: policy.maxAge,
            limits: OwnLimits(
                addresses: configuration.downloads.addresses.text, maxRedirects: configuration.downloads.maxRedirects,
                maxBodyBytes: configuration.downloads.maxBodyBytes, maxCacheBytes: policy.maxBytes,
                images: configuration.images),
            now: configuration.now)
        let transfers = Transfers(
            interval: configuration.downloads.progressInterval, tell: configuration.onTransfer)
        stages = Stages(
            lookup: SourceLookup(
                index: store.cache, files: files, readOnly: try configuration.readOnlyCaches.map(ReadOnlyCache.init),
                requests: downloader.configuration, settings: settings, logger: logger),
            fetcher: Fetcher(
                downloader: downloader,
                loaders: Loaders(
                    configuration.loaders, local: configuration.local, files: files,
                    inspector: Self.inspector(configuration), transfers: transfers,
                    timeouts: (configuration.downloads.totalTimeout, configuration.downloads.silenceTimeout),
                    width: configuration.downloads.concurrency),
                hosts: store.hosts, settings: settings,
                options: Fetcher.Options(
                    previews: configuration.onPreview.map { [helpers] in Previews(helpers: helpers, show: $0) },
                    inspectsBodies: !(delegate.delegate?.hooks.contains(.bytes) ?? false)),
                logger: logger),
            renderer: Renderer(
                index: store.cache, cache: cache,
                assets: Assets(
                    directory: configuration.assets, redaction: configuration.redaction, store: store, cache: cache,
                    reading: files.reading),
                maker: VariantMaker(helpers: helpers, commands: commands, files: files),
                identities: IdentitySource(
                    program: helpers.program,
                    delegates: DelegateVersions(configuration.extensions, commands.installed)),
                logger: logger),
            publisher: Publisher(
                store: store, cache: cache, disk: disk, logger: logger, budget: files.budget,
                patience: configuration.drains ? PublishPatience() : .endless, limits: settings.limits),
            delegate: delegate,
            rules: StageRules(
                hosts: BlockedHosts(downloader: downloader, shedHosts: ShedHosts(), now: configuration.now),
                failures: FailurePolicy(
                    settings: settings, downloader: downloader, disk: disk, budget: files.budget,
                    reports: store.reports),
                settings: settings))
        waits =
            [helpers.turns, commands.turns, stages.fetcher.loaders.turns, files.budget.waits, disk]
            + ((delegate.delegate as? CommandDelegate).map { [$0.turns] } ?? [])
    }

    /// Reserves space in the cache under this worker's number from now on.
    func reserveSpace(for worker: Int64) throws(JobsError) {
        budget.use(by: worker)
        helpers.connections.mark.hold(try store.workers.helperMark(of: worker))
    }

    private static func downloader(
        _ configuration: WorkerConfiguration, _ cache: ContentCache, _ budget: CacheBudget, limit: Int64?,
    ) throws -> Downloader {
        var downloads = configuration.downloads
        // A partial body that waits for a second try occupies space that nothing else can use.
        if let limit { downloads.maxPartialBytes = min(downloads.maxPartialBytes, limit / 8) }
        let inspector = Self.inspector(configuration)
        return try Downloader(
            configuration: downloads,
            makeFile: { try cache.makeDescriptor() },
            makeReservation: { budget.newReservation(for: $0) },
            inspect: { inspector.inspect($0) },
            measure: { inspector.size($0) },
        )
    }

    private static func inspector(_ configuration: WorkerConfiguration) -> HeaderInspector {
        HeaderInspector(limits: configuration.images, coders: configuration.extensions.coders)
    }

    private static func delegate(
        _ configuration: WorkerConfiguration, _ scratch: ScratchFiles,
    ) throws(WorkerError) -> (any WorkerDelegate)? {
        if let delegate = configuration.delegate { return delegate }
        guard let command = configuration.delegateCommand else { return nil }
        return try CommandDelegate(
            command, limits: configuration.commandLimits, width: 2 * configuration.helpers.count, scratch: scratch)
    }
}
