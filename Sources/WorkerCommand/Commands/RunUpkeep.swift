import ArgumentParser
import PrefetchWorker

/// What a worker does for the cache and the database besides its work.
struct RunUpkeep: ParsableArguments {
    @Option(help: ArgumentHelp("How often the cache is collected (60s).", valueName: "time"))
    var collectEvery: String?

    @Option(
        help: "Links that a web server finds by computing their names: tree or none. Kept until it is said otherwise.")
    var links: String?

    @Option(help: ArgumentHelp("A cache to look in after the main one; repeatable.", valueName: "folder"))
    var readOnlyCache: [String] = []

    @Option(help: ArgumentHelp("Memory for sources that were used lately; 0 for none (64MiB).", valueName: "bytes"))
    var memoryCache: String?

    @Option(help: ArgumentHelp("Folder for copies of the database (none).", valueName: "folder"))
    var backupDir: String?

    @Option(help: ArgumentHelp("How often it is copied (1d).", valueName: "time"))
    var backupEvery: String?

    @Option(help: ArgumentHelp("How many copies are kept (7).", valueName: "n"))
    var backupKeep: Int?

    @Option(help: ArgumentHelp("How long ended jobs and their results are kept (for ever).", valueName: "time"))
    var keepJobs: String?

    @Flag(help: ArgumentHelp("Don't sync files, to measure what it costs.", visibility: .private))
    var unsafeWithoutSync = false

    @Option(help: ArgumentHelp("How long a worker that is held up keeps its items (60s).", visibility: .private))
    var lease: String?

    func apply(to configuration: inout WorkerConfiguration, _ settings: Settings) throws {
        configuration.collectEvery = max(
            100, try settings.milliseconds("collect-every", flag: collectEvery, default: configuration.collectEvery))
        switch settings.text("links", flag: links) {
        case nil: break
        case "tree"?: configuration.keepsLinks = true
        case "none"?: configuration.keepsLinks = false
        case let other?: throw SettingsError(message: "links must be tree or none, not '\(other)'.")
        }
        configuration.readOnlyCaches = settings.list("read-only-cache", flag: readOnlyCache)
        configuration.memoryTier.bytes = try settings.bytes(
            "memory-cache", flag: memoryCache, default: configuration.memoryTier.bytes)
        var plan = BackupPlan(folder: settings.text("backup-dir", flag: backupDir) ?? "")
        plan.every = try settings.milliseconds("backup-every", flag: backupEvery, default: plan.every)
        plan.keep = try settings.number("backup-keep", flag: backupKeep, default: plan.keep, in: 1...10_000)
        if plan.folder != "" { configuration.backups = plan }
        if settings.text("keep-jobs", flag: keepJobs) != nil {
            configuration.retention = try settings.milliseconds("keep-jobs", flag: keepJobs, default: 0)
        }
        configuration.lease = max(
            100, try settings.milliseconds("lease", flag: lease, default: configuration.lease))
        configuration.syncs = !unsafeWithoutSync
    }
}
