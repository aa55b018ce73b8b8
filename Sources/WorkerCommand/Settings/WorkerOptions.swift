import ArgumentParser
import Core
import Download
import PrefetchWorker

/// The options of the commands that run a worker, under the titles of their help.
struct WorkerOptions: ParsableArguments {
    @OptionGroup(title: "DATABASE AND CACHE") var common: CommonOptions
    @OptionGroup(title: "MOST USED") var options: RunOptions
    @OptionGroup(title: "MOST USED") var cacheSize: CacheSizeOptions
    @OptionGroup(title: "ADVANCED: HOSTS") var hosts: HostOptions
    @OptionGroup(title: "ADVANCED: DOWNLOADS") var downloads: DownloadOptions
    @OptionGroup(title: "ADVANCED: PICTURES") var pictures: PictureOptions
    @OptionGroup(title: "ADVANCED: CACHE") var cache: CacheOptions
    @OptionGroup(title: "ADVANCED: UPKEEP") var upkeep: UpkeepOptions
    @OptionGroup(title: "ADVANCED: PROGRAMS AND FOLDERS") var programs: ProgramOptions
    @OptionGroup(title: "ADVANCED: LOG") var log: LogOptions

    /// - Parameter drains: whether the run ends when no work is left.
    private func configuration(drains: Bool) throws -> WorkerConfiguration {
        let settings = try common.settings()
        var configuration = try options.configuration(
            database: common.databasePath(settings), cache: common.cachePath(settings), settings)
        configuration.drains = drains
        try hosts.apply(to: &configuration.downloads, settings)
        try downloads.apply(to: &configuration, settings)
        try pictures.apply(to: &configuration, settings)
        configuration.cachePolicy = try cache.policy(cacheSize, settings)
        try upkeep.apply(to: &configuration, settings)
        try programs.apply(to: &configuration, settings)
        do {
            try configuration.downloads.check()
        } catch {
            throw SettingsError(error.message)
        }
        return configuration
    }

    /// A run with these options.
    func supervised(drains: Bool) throws -> SupervisedRun {
        let line = Terminal.errorIsTerminal && !options.quiet ? ProgressLine() : nil
        return SupervisedRun(
            try configuration(drains: drains), line: line, isQuiet: options.quiet,
            log: try log.handler(try common.settings(), line: line))
    }
}
