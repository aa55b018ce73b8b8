public import Core
public import Download
public import Imaging
public import Jobs

/// Everything a worker can be told, with the defaults of the command line.
public struct WorkerConfiguration: Sendable {
    public var database: String
    public var cache: String
    /// Downloads, limits and addresses; `concurrency` is how many at once.
    public var downloads = DownloadConfiguration()
    public var images = ImageLimits()
    public var helpers: HelperConfiguration
    /// For jobs that don't name an order.
    public var order = ExecutionOrder.fifo
    /// End when nothing is left that could still run.
    public var drains = false
    public var retries = RetryPolicy()
    /// How long a cached source is used without asking the origin, in milliseconds; negative for ever. 7 days, as in
    /// SDWebImage.
    public var maxAge: Int64 = 7 * 86_400_000
    /// The folder of the pictures that effects name, such as watermarks; nil for none.
    public var assets: String?
    /// Sees pictures of jobs with the option `progressive` while they arrive. Called from any thread.
    public var onPreview: (@Sendable (Preview) -> Void)?
    /// Coders and effects that the program adds to the built-in ones. Its helpers must be given the same: see
    /// ``HelperMain/runIfHelper(_:)``.
    public var extensions = ImagingExtensions()
    /// Programs that variants may name, each by a name of its own.
    public var commands: [TransformCommand] = []
    public var commandLimits = CommandLimits()
    /// Decides which URLs are fetched, and how.
    public var delegate: (any WorkerDelegate)?
    /// The same as a program; not asked where there is a ``delegate``.
    public var delegateCommand: DelegateCommand?
    /// Sources that need no network.
    public var local = LocalSources()
    /// Serve URLs of the program's own schemes or hosts; the last one is asked first.
    public var loaders: [any ImageLoader] = []
    /// Bytes kept free on the cache's disk.
    /// Nil for a twentieth of the disk, and at most 1 GiB.
    public var minimumFree: Int64?
    /// How much the cache may hold, and for how long; `minimumFree` is taken from above.
    public var cachePolicy = CachePolicy()
    /// How often the cache is collected while a worker runs, in milliseconds.
    public var collectEvery: Int64 = 60_000
    /// Whether a tree of links is kept for web servers; nil leaves it as it is.
    public var keepsLinks: Bool?
    /// Copies of the database; nil for none.
    public var backups: BackupPlan?
    /// How long ended jobs are kept, in milliseconds; nil for ever.
    public var retention: Int64?
    /// Caches that are asked after the main one and never written to.
    public var readOnlyCaches: [String] = []
    /// Bytes of recently used sources that are kept in memory, and how many.
    public var memoryTier = MemoryTier.Limits()
    /// Whether files are synced before they are said to exist. Off only to measure what it costs.
    public var syncs = true
    /// How long items in flight may take after a stop was requested, in milliseconds.
    public var grace: Int64 = 30_000
    /// How long a worker that is held up keeps its items, in milliseconds. One that died keeps none.
    public var lease = DatabaseGate.leaseDuration
    public var now: @Sendable () -> WallTime = DatabaseGate.wallClock

    public init(database: String, cache: String, transforms: Int) {
        self.database = database
        self.cache = cache
        helpers = HelperConfiguration(count: transforms)
        // Enough bodies ahead that no helper waits, few enough that the disk doesn't fill with what isn't wanted yet.
        downloads.maxUnconsumedBodies = downloads.concurrency + 8 * max(1, transforms)
    }
}
