import ArgumentParser
import Download
import PrefetchWorker

/// How a run treats hosts.
struct RunHosts: ParsableArguments {
    @Option(help: "Downloads at once from one host (6).")
    var perHost: Int?

    @Option(help: ArgumentHelp("Requests a second to one host (no limit).", valueName: "n"))
    var rate: String?

    @Option(
        help: ArgumentHelp("Requests to one host that may follow each other at once after a pause (1).", valueName: "n")
    )
    var burst: Int?

    @Option(
        help: ArgumentHelp(
            "Failed connections and timeouts in a row after which a host is left alone (8).", valueName: "n"))
    var parkAfter: Int?

    @Option(help: ArgumentHelp("For how long the first time; it doubles up to ten minutes (30s).", valueName: "time"))
    var parkTime: String?

    @Option(
        help: ArgumentHelp(
            "How long a host that has never answered is tried, from its first failure on, before its items end (30s).",
            valueName: "time"))
    var hostPatience: String?

    @Option(
        help: ArgumentHelp(
            "Sent with every request to every host, unless a job has its own of that name; @FILE for a file of such lines; repeatable.",
            valueName: "name: value"))
    var header: [String] = []

    @Option(help: ArgumentHelp("A folder whose files file: URLs may name; repeatable.", valueName: "folder"))
    var allowFiles: [String] = []

    @Flag(help: "Read pictures that stand in their own data: URL.")
    var allowData = false

    func apply(to configuration: inout WorkerConfiguration, _ settings: Settings) throws {
        var downloads = configuration.downloads
        downloads.perHost = try settings.number("per-host", flag: perHost, default: 6, in: 1...1_000)
        downloads.burst = try settings.number("burst", flag: burst, default: 1, in: 1...10_000)
        if let text = settings.text("rate", flag: rate) {
            guard let rate = Double(text), rate >= 0.0001, rate <= 100_000 else {
                throw SettingsError(message: "rate must be a number of requests a second, not '\(text)'.")
            }
            downloads.rate = rate
        }
        downloads.parking.failures = try settings.number(
            "park-after", flag: parkAfter, default: downloads.parking.failures, in: 1...1_000_000)
        let time = try settings.milliseconds("park-time", flag: parkTime, default: 30_000)
        guard time > 0, time <= 600_000 else {
            throw SettingsError(message: "park-time must be more than nothing and at most ten minutes.")
        }
        downloads.parking.time = .milliseconds(time)
        let patience = try settings.milliseconds("host-patience", flag: hostPatience, default: 30_000)
        guard patience > 0, patience <= 86_400_000 else {
            throw SettingsError(message: "host-patience must be positive and at most a day.")
        }
        downloads.parking.patience = .milliseconds(patience)
        // In a file they stand on lines of their own, since values have commas.
        let lines =
            header.isEmpty ? (settings.text("header", flag: nil) ?? "").split(separator: "\n").map(String.init) : header
        downloads.headers = try HeaderLine.common(lines)
        do {
            try downloads.check()
        } catch {
            throw SettingsError(message: error.message)
        }
        configuration.downloads = downloads
        let folders = settings.text("allow-files", flag: allowFiles.isEmpty ? nil : allowFiles.joined(separator: ","))
        configuration.local.folders = (folders ?? "").split(separator: ",").map(String.init)
        configuration.local.allowsData = allowData || settings.text("allow-data", flag: nil) == "true"
    }
}
