public import Core
public import Download
public import ImageFiles
public import Jobs

/// The settings of a worker, with the defaults of the command line.
public struct WorkerConfiguration: Sendable {
    public var database: String
    /// A folder's path, or `s3://bucket/prefix`.
    public var cache: String
    /// Of a cache in a bucket.
    public var bucket = BucketSettings()
    /// Downloads, limits and addresses; `concurrency` is the number of downloads at once.
    public var downloads = DownloadConfiguration()
    public var images = ImageLimits()
    public var helpers: HelperConfiguration
    /// The order of jobs that name no order.
    public var order = ExecutionOrder.fifo
    /// Ends the run when no item is left that could still run.
    public var drains = false
    public var retries = RetryPolicy()
    /// How long a cached source is used without revalidation, in milliseconds; negative for ever. 7 days, as in
    /// SDWebImage.
    public var maxAge: Int64 = 7 * 86_400_000
    /// The folder of the other pictures that effects name, such as watermarks; nil for none.
    public var assets: String?
    /// Called with previews of arriving pictures, for jobs with the option `progressive`. Called from any thread.
    public var onPreview: (@Sendable (Preview) throws -> Void)?
    /// Called when the bytes of an item's source begin to arrive, at each ``DownloadConfiguration/progressInterval``,
    /// and when all have arrived: even the shortest transfer gets the first and the last call. Called from any
    /// thread; it must not block.
    public var onTransfer: (@Sendable (TransferReport) -> Void)?
    /// Coders and effects that the program adds to the built-in ones. Its helpers must get the same: see
    /// ``HelperMain/runIfHelper(_:)``.
    public var extensions = ImagingExtensions()
    /// Programs that variants may name, each with its own name.
    public var commands: [TransformCommand] = []
    public var commandLimits = CommandLimits()
    /// How the notices of ended jobs are sent; see ``NoticeKeeper``.
    public var notices = NoticeOptions()
    /// Decides which URLs are fetched, and how.
    public var delegate: (any WorkerDelegate)?
    /// A program that implements a delegate; ignored if there is a ``delegate``.
    public var delegateCommand: DelegateCommand?
    /// Sources that need no network.
    public var local = LocalSources()
    /// Serve URLs of the program's own schemes or hosts; the last one is asked first.
    public var loaders: [any ImageLoader] = []
    /// Disk space that the worker keeps free on the cache's disk, in bytes. Nil for a twentieth of the disk, but at
    /// most 1 GiB.
    public var minimumFree: Int64?
    /// The cache's maximum size and age; its `minimumFree` is replaced by the value above.
    public var cachePolicy = CachePolicy()
    /// How often the cache is collected while a worker runs, in milliseconds.
    public var collectEvery: Int64 = 60_000
    /// Whether a tree of links is kept for web servers; nil leaves it as it is.
    public var keepsLinks: Bool?
    /// Copies of the database; nil for none.
    public var backups: BackupPlan?
    /// How long ended jobs are kept, in milliseconds; nil for ever.
    public var retention: Int64?
    /// Caches that are searched after the main one and never written to.
    public var readOnlyCaches: [String] = []
    /// Maximum size and number of recently used sources that are kept in memory.
    public var memoryTier = MemoryTier.Limits()
    /// Whether files are synced before they are published. Off only to measure the cost.
    public var syncs = true
    /// Grace period: how long items in flight may continue after a stop was requested, in milliseconds.
    public var grace: Int64 = 30_000
    /// How long a worker that is suspended keeps its items, in milliseconds. A worker that died loses them at once.
    public var lease = DatabaseGate.leaseDuration
    /// How long writes wait for other programs that write to the database. Once a stop is requested, writes wait at
    /// most until ``grace`` is over, and those of a worker that has not begun its work give up at once.
    public var waiting = WriteWaiting()
    /// Hides secrets of URLs in the messages of failures.
    public var redaction = Redaction()
    public var now: @Sendable () -> WallTime = DatabaseGate.wallClock

    var cacheLocation: CacheLocation { CacheLocation(cache, bucket) }

    public init(database: String, cache: String, transforms: Int) {
        self.database = database
        self.cache = cache
        helpers = HelperConfiguration(count: transforms)
        // Enough unconsumed bodies that no helper waits, few enough that they do not fill the disk.
        downloads.maxUnconsumedBodies = downloads.concurrency + 8 * max(1, transforms)
    }
}
