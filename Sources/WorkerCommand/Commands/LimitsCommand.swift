import ArgumentParser
import Core
import Jobs
import PrefetchWorker

struct LimitsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "limits",
        abstract: "Shows and changes the limits of hosts and workers while workers run.",
        discussion: """
            Without options the command shows the limits in the database. Workers apply a changed limit within a second, in \
            place of the limit with which they were started. If you name no host, --per-host, --rate and --burst \
            apply to each host without a limit of its own. --concurrency, timeouts, tries and ages cannot be set for one \
            host. A job's own options override timeouts, tries and ages.

            EXAMPLES:
              worker limits
              worker limits --concurrency 12 --per-host 4
              worker limits images.example.com --rate 5 --burst 10
              worker limits --silence-timeout 5s --max-tries 6 --cache-max-age 30d
              worker limits images.example.com --reset
            """,
    )
    @OptionGroup var common: CommonOptions
    @Argument(help: "A host's name.") var host: String?
    @Option(LimitSettings.concurrency) var concurrency: Int?
    @Option(LimitSettings.perHost) var perHost: Int?
    @Option(LimitSettings.rate) var rate: Double?
    @Option(LimitSettings.burst) var burst: Int?
    @Option(LimitSettings.silenceTimeout) var silenceTimeout: Int64?
    @Option(LimitSettings.connectTimeout) var connectTimeout: Int64?
    @Option(LimitSettings.totalTimeout) var totalTimeout: Int64?
    @Option(LimitSettings.maxTries) var maxTries: Int?
    @Option(LimitSettings.retryDelay) var retryDelay: Int64?
    @Option(LimitSettings.cacheMaxAge) var cacheMaxAge: Int64?
    @Flag(help: "Go back to the limits with which workers were started.") var reset = false
    @OptionGroup var confirmation: Confirmation
    @Flag(help: "Print JSON.") var json = false

    func validate() throws {
        guard reset || !confirmation.yes && !confirmation.dryRun else {
            throw ValidationError("--yes and --dry-run go with --reset.")
        }
    }

    func run() async throws {
        try await reportingErrors {
            let name = try host.map(HostNames.parse) ?? LimitsRecord.everyHost
            var change = LimitsRecord(host: name, concurrency: concurrency, perHost: perHost, rate: rate, burst: burst)
            change.silenceTimeout = silenceTimeout
            change.connectTimeout = connectTimeout
            change.totalTimeout = totalTimeout
            change.maxTries = maxTries
            change.retryDelay = retryDelay
            change.cacheMaxAge = cacheMaxAge
            let isChange = change != LimitsRecord(host: name)
            guard !(isChange && reset) else { throw SettingsError("Either set limits or --reset them.") }
            if host != nil, let own = Self.workerLimits(of: change).first {
                throw SettingsError("\(own.name) applies to all hosts together: leave out the host.")
            }
            try await common.withStore { [change] store in
                if reset, try await !resetIfConfirmed(name, in: store) { return }
                if isChange { try await store.hosts.setLimits(change) }
                try show(await store.hosts.limits())
            }
        }
    }

    /// Resets limits, if the user says so.
    ///
    /// - Parameter name: the host's name, or the name that stands for the limits of all hosts.
    private func resetIfConfirmed(_ name: String, in store: JobStore) async throws -> Bool {
        let whose = host == nil ? "for all hosts" : "for \(Terminal.safe(name))"
        guard try await store.hosts.limits().contains(where: { $0.host == name }) else {
            Terminal.error("worker: No limits are set \(whose). List them with: worker limits")
            throw ExitCode.notFound
        }
        guard try confirmation.allows("The limits that are set \(whose) are removed.") else { return false }
        _ = try await store.hosts.resetLimits(host: name)
        return true
    }

    /// The limits that are set for the worker as a whole.
    private static func workerLimits(of limits: LimitsRecord) -> [(name: String, value: String)] {
        let numbers = [("concurrency", limits.concurrency), ("max-tries", limits.maxTries)]
        let times = [
            ("silence-timeout", limits.silenceTimeout), ("connect-timeout", limits.connectTimeout),
            ("total-timeout", limits.totalTimeout), ("retry-delay", limits.retryDelay),
            ("cache-max-age", limits.cacheMaxAge),
        ]
        return numbers.compactMap { name, value in value.map { (name, "\($0)") } }
            + times.compactMap { name, value in value.map { (name, $0 < 0 ? "never" : Setting.shown($0)) } }
    }

    private func show(_ limits: [LimitsRecord]) throws {
        if json { return Terminal.print(try Output.json(limits)) }
        let number: (Int?) -> String = { $0.map(String.init) ?? "" }
        let ofHosts = limits.filter { $0.concurrency != nil || $0.perHost != nil || $0.rate != nil || $0.burst != nil }
        guard !limits.isEmpty else {
            return Terminal.print("No limits are set: workers use those with which they were started.")
        }
        let rows = ofHosts.map { record in
            [
                Terminal.safe(record.host), number(record.concurrency), number(record.perHost),
                record.rate.map { Output.fixed($0, 2) } ?? "", number(record.burst),
            ]
        }
        Output.table(["host", "concurrency", "per host", "rate", "burst"], rows, right: [1, 2, 3, 4])
            .forEach(Terminal.print)
        for limit in limits.flatMap(Self.workerLimits) where limit.name != "concurrency" {
            Terminal.print("\(limit.name): \(limit.value)")
        }
    }
}

/// The settings of `worker run` that `worker limits` changes while workers run.
private enum LimitSettings {
    private static let longest = LimitsRecord.longestTime

    static let concurrency = Setting.whole("concurrency", nil, in: 1...1_000, "Downloads at once, over all hosts.")
    static let perHost = Setting.whole("per-host", nil, in: 1...1_000, "Downloads at once from one host.")
    static let rate = Setting<Double>.requestsPerSecond(standardText: nil, unlimited: "reset the limits with --reset")
    static let burst = Setting.whole(
        "burst", nil, in: 1...10_000, "Burst size: requests to one host that may follow each other without a pause.")
    static let silenceTimeout = Setting.time(
        "silence-timeout", nil, "Idle timeout: longest time without a byte.", in: 1...longest)
    static let connectTimeout = Setting.time("connect-timeout", nil, "Time to connect.", in: 1...longest)
    static let totalTimeout = Setting.time("total-timeout", nil, "Time for a whole transfer.", in: 1...longest)
    static let maxTries = Setting.whole("max-tries", nil, in: 1...1_000, "Maximum tries of an item, with the first.")
    static let retryDelay = Setting.time(
        "retry-delay", nil, "Longest wait before the second try.", in: 0...LimitsRecord.longestDelay)
    static let cacheMaxAge = Setting.time(
        "cache-max-age", nil, "How long a file stays after its last use; 'never' for ever.",
        in: -1...LimitsRecord.longestAge, forEver: ["never"])
}
