import ArgumentParser
import Download
import Jobs
import PrefetchWorker

/// The limits of a run, each with a default.
struct RunLimits: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Addresses that may be connected to besides public ones: loopback, private, link-local or a CIDR block; repeatable.",
            valueName: "range"))
    var allowAddresses: [String] = []

    @Option(help: ArgumentHelp("Bytes of one body (64MiB).", valueName: "bytes"))
    var maxBody: String?

    @Option(help: ArgumentHelp("Redirects followed (5).", valueName: "n"))
    var maxRedirects: Int?

    @Option(help: ArgumentHelp("Time to connect (10s).", valueName: "time"))
    var connectTimeout: String?

    @Option(help: ArgumentHelp("Time without a byte (15s).", valueName: "time"))
    var silenceTimeout: String?

    @Option(help: ArgumentHelp("Time for a whole transfer (300s).", valueName: "time"))
    var totalTimeout: String?

    @Option(
        help: ArgumentHelp("How long a name's addresses are used before it is looked up anew (60s).", valueName: "time")
    )
    var nameLifetime: String?

    @Option(help: ArgumentHelp("User-Agent; say who you are and how to reach you.", valueName: "text"))
    var userAgent: String?

    @Option(
        help: ArgumentHelp("A page or address for the User-Agent to name, for whoever is asked.", valueName: "text"))
    var contact: String?

    @Option(help: ArgumentHelp("Certificate authorities to trust instead of the system's.", valueName: "file"))
    var caFile: String?

    @Option(
        help: ArgumentHelp(
            "A proxy; the environment's variables are not used. What it connects to is not judged by --allow-addresses.",
            valueName: "url"))
    var proxy: String?

    @Option(help: ArgumentHelp("Tries of one item in all (4).", valueName: "n"))
    var maxTries: Int?

    @Option(
        help: ArgumentHelp("Upper bound of the first wait between tries; it doubles each time (1s).", valueName: "time")
    )
    var retryDelay: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "How long a cached source is used without asking its origin (7d; -1 for ever).", valueName: "time"))
    var maxAge: String?

    @Option(help: ArgumentHelp("Disk space to keep free (1GiB, or a twentieth of a smaller disk).", valueName: "bytes"))
    var minFree: String?

    @Option(help: ArgumentHelp("Time for what is in flight when asked to stop (30s).", valueName: "time"))
    var grace: String?

    func apply(to configuration: inout WorkerConfiguration, _ settings: Settings) throws {
        var downloads = configuration.downloads
        downloads.maxBodyBytes = try settings.bytes("max-body", flag: maxBody, default: downloads.maxBodyBytes)
        downloads.maxRedirects = try settings.number(
            "max-redirects", flag: maxRedirects, default: downloads.maxRedirects, in: 0...50)
        downloads.connectTimeout = try time("connect-timeout", connectTimeout, settings, default: 10_000)
        downloads.silenceTimeout = try time("silence-timeout", silenceTimeout, settings, default: 15_000)
        downloads.totalTimeout = try time("total-timeout", totalTimeout, settings, default: 300_000)
        downloads.nameLifetime = try time("name-lifetime", nameLifetime, settings, default: 60_000)
        downloads.userAgent =
            settings.text("user-agent", flag: userAgent)
            ?? "PrefetchWorker/\(workerVersion) (image prefetcher; \(contactText(settings)))"
        downloads.caFile = settings.text("ca-file", flag: caFile)
        downloads.proxy = settings.text("proxy", flag: proxy)
        downloads.addresses = try addresses(settings)
        configuration.downloads = downloads
        configuration.retries.maxTries = try settings.number("max-tries", flag: maxTries, default: 4, in: 1...100)
        configuration.retries.base = try settings.milliseconds("retry-delay", flag: retryDelay, default: 1_000)
        configuration.maxAge = try settings.milliseconds(
            "max-age", flag: maxAge, default: configuration.maxAge, forEver: ["-1", "never"])
        // -1 stands for a part of the disk, which is known when the cache is open.
        let minimumFree = try settings.bytes("min-free", flag: minFree, default: -1)
        configuration.minimumFree = minimumFree < 0 ? nil : minimumFree
        configuration.grace = try settings.milliseconds("grace", flag: grace, default: configuration.grace)
    }

    private func contactText(_ settings: Settings) -> String {
        settings.text("contact", flag: contact).map { "+\($0)" } ?? "set --contact to name one"
    }

    private func time(_ name: String, _ flag: String?, _ settings: Settings, default fallback: Int64) throws -> Duration
    {
        let value = try settings.milliseconds(name, flag: flag, default: fallback)
        guard value > 0 else { throw SettingsError(message: "\(name) must be more than nothing.") }
        return .milliseconds(value)
    }

    private func addresses(_ settings: Settings) throws -> AddressPolicy {
        let text = settings.text(
            "allow-addresses", flag: allowAddresses.isEmpty ? nil : allowAddresses.joined(separator: ","))
        let ranges = (text ?? "").split(separator: ",").map { String($0.filter { $0 != " " }) }
        guard !ranges.isEmpty else { return .publicOnly }
        do {
            return try AddressPolicy(allowing: ranges)
        } catch {
            throw SettingsError(message: "allow-addresses: \(error)")
        }
    }
}
