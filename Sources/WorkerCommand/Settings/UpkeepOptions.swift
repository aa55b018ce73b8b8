import ArgumentParser
import Glibc
import PrefetchWorker

enum UpkeepSettings {
    static let minFree = Setting.bytes(
        "min-free", nil, "Disk space to keep free.", standardText: "1GiB, or a twentieth of a disk smaller than 20GiB")
    static let grace = Setting.time("grace", "30s", "Time that running work gets to end after a signal to stop.")
    static let collectEvery = Setting.time(
        "collect-every", "60s",
        "How often the worker evicts files; every 60th time it also removes files that a crash left.")
    static let readOnlyCache = Setting.text(
        "read-only-cache", nil, "folder", "A cache to look in after the main one; repeatable.")
    static let memoryCache = Setting.bytes(
        "memory-cache", "64MiB", "Memory for the sources that were used last; 0 for none.")
    static let backupFolder = Setting.text("backup-dir", nil, "folder", "Folder for copies of the database.")
    static let backupEvery = Setting.time("backup-every", "1d", "How often the database is copied.")
    static let backupKeep = Setting.whole("backup-keep", 7, in: 1...10_000, "How many copies are kept.")
    static let keepJobs = Setting.time(
        "keep-jobs", nil, "How long ended jobs and their results are kept.", standardText: "for ever")
    static let lease = Setting.time("lease", "60s", "How long a worker that hangs or is suspended keeps its items.")
    static let all: [any NamedSetting] = [
        minFree, grace, collectEvery, readOnlyCache, memoryCache, backupFolder, backupEvery, backupKeep, keepJobs,
    ]
}

/// The periodic work of a worker: disk, cache and database.
struct UpkeepOptions: ParsableArguments {
    @Option(UpkeepSettings.minFree) var minFree: Int64?
    @Option(UpkeepSettings.grace) var grace: Int64?
    @Option(UpkeepSettings.collectEvery) var collectEvery: Int64?
    @Option(UpkeepSettings.readOnlyCache) var readOnlyCache: [String] = []
    @Option(UpkeepSettings.memoryCache) var memoryCache: Int64?
    @Option(UpkeepSettings.backupFolder) var backupDir: String?
    @Option(UpkeepSettings.backupEvery) var backupEvery: Int64?
    @Option(UpkeepSettings.backupKeep) var backupKeep: Int?
    @Option(UpkeepSettings.keepJobs) var keepJobs: Int64?

    @Flag(help: ArgumentHelp("Don't sync files, to measure what it costs.", visibility: .private))
    var unsafeWithoutSync = false

    @Option(
        help: ArgumentHelp(UpkeepSettings.lease.help, visibility: .private),
        transform: { try UpkeepSettings.lease.read($0) })
    var lease: Int64?

    func apply(to configuration: inout WorkerConfiguration, _ settings: Settings) throws {
        configuration.minimumFree = try settings.optional(UpkeepSettings.minFree, minFree)
        configuration.grace = try settings.value(UpkeepSettings.grace, grace)
        configuration.collectEvery = max(100, try settings.value(UpkeepSettings.collectEvery, collectEvery))
        configuration.readOnlyCaches = try settings.list(UpkeepSettings.readOnlyCache, readOnlyCache)
        configuration.memoryTier.bytes = try settings.value(UpkeepSettings.memoryCache, memoryCache)
        if let folder = try settings.optional(UpkeepSettings.backupFolder, backupDir), folder != "" {
            var status = stat()
            if stat(folder, &status) == 0, status.st_mode & S_IFMT != S_IFDIR {
                throw SettingsError("backup-dir: \(folder) is a file, and not a folder.")
            }
            var plan = BackupPlan(folder: folder)
            plan.every = try settings.value(UpkeepSettings.backupEvery, backupEvery)
            plan.keep = try settings.value(UpkeepSettings.backupKeep, backupKeep)
            configuration.backups = plan
        }
        configuration.retention = try settings.optional(UpkeepSettings.keepJobs, keepJobs)
        configuration.lease = max(100, try settings.value(UpkeepSettings.lease, lease))
        configuration.syncs = !unsafeWithoutSync
    }
}
