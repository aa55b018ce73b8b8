import ArgumentParser
import Jobs
import PrefetchWorker

enum CommonSettings {
    static let database = Setting.text(
        "db", "worker.db", "path", "The database: a file, or postgres://USER@HOST/NAME; or WORKER_DB.")
    static let cache = Setting.text(
        "cache", "cache", "place", "The cache's folder, or s3://bucket/prefix; or WORKER_CACHE.")
    static let cacheFolder = Setting.text(
        "cache-folder", "cache", "folder", "The folder in front of a cache in a bucket.")
    static let waiting = Setting.time(
        "wait", "60s", "How long to wait while another program writes to the database; then exit code 75.")
    static let redacted = Setting.text(
        "redact", nil, "name",
        "A query parameter whose values are hidden in output, besides the usual ones; repeatable.")
    static let all: [any NamedSetting] = [database, cache, cacheFolder, waiting, redacted]
}

/// The options of every command.
struct CommonOptions: ParsableArguments {
    @Option(CommonSettings.database) var db: String?
    @Option(CommonSettings.cache) var cache: String?
    @Option(CommonSettings.cacheFolder) var cacheFolder: String?

    @Option(
        help: ArgumentHelp(
            "A YAML file of settings, spelled like the flags; or WORKER_CONFIG.", valueName: "file"))
    var config: String?

    @Option(CommonSettings.waiting) var wait: Int64?
    @Option(CommonSettings.redacted) var redact: [String] = []

    func settings() throws -> Settings { try Settings(configFile: config) }

    func redaction() throws -> Redaction { Redaction(also: try settings().list(CommonSettings.redacted, redact)) }

    func databasePath(_ settings: Settings) throws(SettingsError) -> String {
        try settings.value(CommonSettings.database, db)
    }
    func cachePath(_ settings: Settings) throws(SettingsError) -> String {
        try settings.value(CommonSettings.cache, cache)
    }
    func bucket(_ settings: Settings) throws(SettingsError) -> BucketSettings {
        try S3Settings.settings(folder: try settings.value(CommonSettings.cacheFolder, cacheFolder), settings)
    }

    func cacheLocation(_ settings: Settings) throws(SettingsError) -> CacheLocation {
        CacheLocation(try cachePath(settings), try bucket(settings))
    }

    /// The settings of a worker with the database and the cache.
    func configuration(_ settings: Settings, transforms: Int) throws(SettingsError) -> WorkerConfiguration {
        var configuration = WorkerConfiguration(
            database: try databasePath(settings), cache: try cachePath(settings), transforms: transforms)
        configuration.bucket = try bucket(settings)
        configuration.redaction = Redaction(also: try settings.list(CommonSettings.redacted, redact))
        return configuration
    }
}

/// The settings of all commands: a configuration file may have these, and no others.
enum AllSettings {
    static let list: [any NamedSetting] =
        CommonSettings.all + RunSettings.all + CacheSizeSettings.all + HostSettings.all + DownloadSettings.all
        + PictureSettings.all + CacheSettings.all + UpkeepSettings.all + ProgramSettings.all + LogSettings.all
        + DashboardSettings.all + S3Settings.all
}
