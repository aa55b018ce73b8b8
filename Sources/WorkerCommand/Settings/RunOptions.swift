import ArgumentParser
import Core
import Download
import Glibc
import Jobs
import PrefetchWorker

enum RunSettings {
    static let concurrency = Setting.whole(
        "concurrency", 6, in: 1...1_000, "Maximum simultaneous downloads of all workers of the database.")
    static let perHost = Setting.whole("per-host", 6, in: 1...1_000, "Maximum simultaneous downloads from one host.")
    static let transforms = Setting.whole(
        "transforms", nil, in: 1...256, "Images transformed at once, each in its own process.",
        standardText: "one for each core")
    static let order = Setting<ExecutionOrder>.choice(
        "order", .fifo, "Order of jobs without an order of their own: fifo (oldest first) or lifo (newest first).",
        placeholder: "order")
    static let allowAddresses = Setting.text(
        "allow-addresses", nil, "range",
        "Addresses to connect to besides public ones: loopback, private, link-local or a CIDR block; repeatable.")
    static let maxTries = Setting.whole("max-tries", 4, in: 1...1_000, "Tries of one item in all.")
    static let maxAge = Setting.time(
        "max-age", "7d", "How long a cached source is used without asking its origin again; -1 for ever.",
        forEver: ["-1", "never"])
    static let links = Setting<LinkStyle>.choice(
        "links", nil,
        "Links whose names a web server can compute: tree or none. The database remembers the choice.",
        placeholder: "style")
    static let progressInterval = Setting.time(
        "progress-interval", "1s",
        "How often the progress of running transfers is written to the database; values below 400ms have no effect.",
        in: 100...3_600_000)
    static let all: [any NamedSetting] = [
        concurrency, perHost, transforms, order, allowAddresses, maxTries, maxAge, links, progressInterval,
    ]
}

/// The most common options of a run.
struct RunOptions: ParsableArguments {
    @Option(RunSettings.concurrency) var concurrency: Int?
    @Option(RunSettings.perHost) var perHost: Int?
    @Option(RunSettings.transforms) var transforms: Int?
    @Option(RunSettings.order) var order: ExecutionOrder?
    @Option(RunSettings.allowAddresses) var allowAddresses: [String] = []
    @Option(RunSettings.maxTries) var maxTries: Int?
    @Option(RunSettings.maxAge) var maxAge: Int64?
    @Option(RunSettings.links) var links: LinkStyle?
    @Option(RunSettings.progressInterval) var progressInterval: Int64?
    @Flag(help: "Print the summary as JSON.") var json = false
    @Flag(name: .shortAndLong, help: "No progress, only warnings and the summary.") var quiet = false

    /// - Returns: a configuration with these options and the defaults of all others.
    func configuration(_ common: CommonOptions, _ settings: Settings) throws -> WorkerConfiguration {
        let cores = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
        let transforms = try settings.optional(RunSettings.transforms, transforms) ?? cores
        var configuration = try common.configuration(settings, transforms: transforms)
        configuration.helpers = .installed(count: transforms)
        configuration.order = try settings.value(RunSettings.order, order)
        configuration.retries.maxTries = try settings.value(RunSettings.maxTries, maxTries)
        configuration.maxAge = try settings.value(RunSettings.maxAge, maxAge)
        configuration.keepsLinks = try settings.optional(RunSettings.links, links).map { $0 == .tree }
        if configuration.keepsLinks == true, try common.cacheLocation(settings).isBucket {
            throw SettingsError(
                "links: a cache in a bucket has no links, since the folder in front of it has only files in use. Serve the "
                    + "bucket, or see: worker get --help")
        }
        var downloads = configuration.downloads
        downloads.concurrency = try settings.value(RunSettings.concurrency, concurrency)
        downloads.perHost = try settings.value(RunSettings.perHost, perHost)
        downloads.maxUnconsumedBodies = downloads.concurrency + 8 * transforms
        downloads.progressInterval = .milliseconds(
            try settings.value(RunSettings.progressInterval, progressInterval))
        downloads.addresses = try addresses(settings)
        configuration.downloads = downloads
        if downloads.perHost > downloads.concurrency, perHost != nil {
            Terminal.error(
                "worker: warning: per-host is \(downloads.perHost), and concurrency allows \(downloads.concurrency) downloads at "
                    + "once, of all hosts together.")
        }
        return configuration
    }

    private func addresses(_ settings: Settings) throws(SettingsError) -> AddressPolicy {
        // One flag may hold several ranges, separated by commas.
        let ranges = try settings.list(RunSettings.allowAddresses, allowAddresses)
            .flatMap { $0.split(separator: ",") }.map { String($0.filter { $0 != " " }) }
        guard !ranges.isEmpty else { return .publicOnly }
        return try AddressRanges.policy(ranges)
    }
}

/// Parses `--allow-addresses`.
enum AddressRanges {
    private static let words = AddressPolicy.names
    private static let habits = ["localhost": "loopback", "local": "private", "lan": "private", "intranet": "private"]

    static func policy(_ ranges: [String]) throws(SettingsError) -> AddressPolicy {
        for range in ranges where !range.contains(where: { $0.isNumber || $0 == ":" }) && !words.contains(range) {
            guard let near = habits[range.lowercased()] ?? NearestWord.find(range, among: words) else { continue }
            throw SettingsError("allow-addresses: '\(range)' is no range of addresses. Did you mean '\(near)'?")
        }
        do {
            return try AddressPolicy(allowing: ranges)
        } catch {
            throw SettingsError("allow-addresses: \(error)")
        }
    }
}

/// The links that a worker keeps up to date.
enum LinkStyle: String, CaseIterable, Sendable {
    case tree, none
}
