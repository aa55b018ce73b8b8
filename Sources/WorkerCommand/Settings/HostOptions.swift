import ArgumentParser
import Download
import PrefetchWorker

enum HostSettings {
    static let rate = Setting<Double>.requestsPerSecond(standardText: "no limit", unlimited: "leave --rate out")
    static let burst = Setting.whole(
        "burst", 1, in: 1...10_000, "Burst size: requests to one host that may follow each other without a pause.")
    static let circuitFailures = Setting.whole(
        "circuit-failures", 8, in: 1...1_000_000,
        "Failures to connect and timeouts in a row that open a host's circuit.")
    static let circuitTime = Setting.time(
        "circuit-time", "30s", "How long an open circuit keeps requests from a host; it doubles, up to ten minutes.",
        in: 1...600_000)
    static let patience = Setting.time(
        "host-patience", "30s",
        "How long a host that has never answered is tried, from its first failure on, before its items fail.",
        in: 1...86_400_000)
    static let all: [any NamedSetting] = [rate, burst, circuitFailures, circuitTime, patience]
}

extension Setting where Value == Double {
    /// - Parameter unlimited: what to do for no limit.
    static func requestsPerSecond(standardText: String?, unlimited: String) -> Setting {
        Setting(
            name: "rate", help: "Requests a second to one host.", placeholder: "n", standardText: standardText
        ) { text throws(SettingsError) in
            guard let rate = Double(text), rate >= 0.0001, rate <= 100_000 else {
                let none = Double(text) == 0 ? " For no limit, \(unlimited)." : ""
                throw SettingsError(
                    "rate must be a number of requests a second, from 0.0001 to 100000, not '\(text)'.\(none)")
            }
            return rate
        }
    }
}

/// How a run treats hosts.
struct HostOptions: ParsableArguments {
    @Option(HostSettings.rate) var rate: Double?
    @Option(HostSettings.burst) var burst: Int?
    @Option(HostSettings.circuitFailures) var circuitFailures: Int?
    @Option(HostSettings.circuitTime) var circuitTime: Int64?
    @Option(HostSettings.patience) var hostPatience: Int64?

    func apply(to downloads: inout DownloadConfiguration, _ settings: Settings) throws(SettingsError) {
        downloads.rate = try settings.optional(HostSettings.rate, rate) ?? downloads.rate
        downloads.burst = try settings.value(HostSettings.burst, burst)
        downloads.circuitBreaker.failures = try settings.value(HostSettings.circuitFailures, circuitFailures)
        downloads.circuitBreaker.time = .milliseconds(try settings.value(HostSettings.circuitTime, circuitTime))
        downloads.circuitBreaker.patience = .milliseconds(try settings.value(HostSettings.patience, hostPatience))
    }
}
