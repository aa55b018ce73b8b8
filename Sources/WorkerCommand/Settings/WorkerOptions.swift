import ArgumentParser
import Core
import Download
import Jobs
import Logging
import PrefetchWorker

/// A command that runs a worker. Each command declares the groups of options itself, in the order of its help. A group
/// that contained them would cost a second at each start of a debug build: the argument parser checks its definitions
/// there, and would read the nested groups anew for every check.
protocol WorkerOptions: ParsableArguments {
    var common: CommonOptions { get }
    var options: RunOptions { get }
    var cacheSize: CacheSizeOptions { get }
    var hosts: HostOptions { get }
    var downloads: DownloadOptions { get }
    var pictures: PictureOptions { get }
    var cache: CacheOptions { get }
    var upkeep: UpkeepOptions { get }
    var programs: ProgramOptions { get }
    var log: LogOptions { get }
}

extension WorkerOptions {
    /// - Parameter drains: whether the run ends when no work is left.
    private func configuration(drains: Bool) throws -> WorkerConfiguration {
        let settings = try common.settings()
        var configuration = try options.configuration(common, settings)
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
        let line = Terminal.errorIsTerminal && !options.quiet ? LiveDisplay() : nil
        let settings = try common.settings()
        let log = try log.handler(settings, line: line, hiding: try common.redaction())
        var configuration = try configuration(drains: drains)
        configuration.waiting = try common.waiting(settings) { sentence in
            Logger(label: "worker") { _ in log }.notice("\(sentence)")
        }
        return SupervisedRun(
            configuration, line: line, isQuiet: options.quiet, log: log,
            access: try access())
    }

    /// The lists that schedules may read.
    func access() throws -> ListAccess {
        ListAccess(
            common: common, folder: try common.settings().optional(ProgramSettings.lists, programs.lists),
            addresses: options.allowAddresses)
    }
}

struct DrainOption: ParsableArguments {
    @Flag(help: "End when no work is left, delayed retries included.") var drain = false
}
