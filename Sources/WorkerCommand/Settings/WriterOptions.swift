import ArgumentParser
import Core
import Download
import Glibc
import PrefetchWorker

/// Options of commands that store pictures in the cache, including the limits on pictures.
struct WriterOptions: ParsableArguments {
    @Option(DownloadSettings.maxBody) var maxBody: Int64?
    @Option(UpkeepSettings.minFree) var minFree: Int64?
    @OptionGroup(title: "ADVANCED: PICTURES") var pictures: PictureOptions
    @OptionGroup(title: "ADVANCED: CACHE") var size: CacheSizeOptions
    @OptionGroup(title: "ADVANCED: CACHE") var cache: CacheOptions

    /// - Parameter helpers: how many pictures are decoded at once; nil for one for each core.
    func configuration(_ common: CommonOptions, helpers: Int?) throws -> WorkerConfiguration {
        let settings = try common.settings()
        var configuration = try common.configuration(
            settings, transforms: helpers ?? max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))))
        configuration.helpers = .installed(count: configuration.helpers.count)
        configuration.downloads.maxBodyBytes = try settings.value(DownloadSettings.maxBody, maxBody)
        configuration.minimumFree = try settings.optional(UpkeepSettings.minFree, minFree)
        configuration.cachePolicy = try cache.policy(size, settings)
        try pictures.apply(to: &configuration, settings)
        return configuration
    }
}

extension Failure {
    /// Why a picture is refused, as a command shows it.
    var shown: String { Terminal.safe("\(failureClass): \(message)") }
}
