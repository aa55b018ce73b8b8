import ArgumentParser
import Core
import Jobs
import PrefetchWorker

struct HostsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hosts",
        abstract: "Shows transfers, rates and failures of each host, and which hosts are blocked.",
        discussion: """
            EXAMPLES:
              worker hosts
              worker hosts --json
            """,
    )
    @OptionGroup var common: CommonOptions
    @Option(help: "How many at most.") var limit = 100
    @Flag(help: "Print JSON.") var json = false

    func run() async throws {
        try await reportingErrors {
            guard limit > 0 else { throw SettingsError("limit must be at least 1, not '\(limit)'.") }
            try await common.readingStore { store in
                let hosts = try await store.hosts.statuses(limit: limit)
                if json { return Terminal.print(try Output.json(hosts)) }
                let rows = hosts.map { host in
                    [
                        Terminal.safe(host.host), "\(host.running)", "\(host.waiting)", Output.fixed(host.rate, 1),
                        host.width.map { Output.fixed($0, 2) } ?? "",
                        host.failures.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(
                            separator: ", "),
                        host.why.map { Terminal.safe($0) + (host.until.map { " Until \(Output.time($0))." } ?? "") }
                            ?? "",
                    ]
                }
                let header = ["host", "in flight", "waiting", "per second", "width", "failures", "why it waits"]
                Output.table(header, rows, right: [1, 2, 3, 4]).forEach(Terminal.print)
            }
        }
    }
}

struct LimitsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "limits",
        abstract: "Shows and changes the limits of hosts while workers run.",
        discussion: """
            Without options it shows the limits that are set in the database; they go over what workers were started with, \
            within a second. Without a host they hold for all hosts that have none of their own.

            EXAMPLES:
              worker limits
              worker limits --concurrency 12 --per-host 4
              worker limits images.example.com --rate 5 --burst 10
              worker limits images.example.com --reset
            """,
    )
    @OptionGroup var common: CommonOptions
    @Argument(help: "A host's name.") var host: String?
    @Option(help: "Downloads at once, over all hosts.") var concurrency: Int?
    @Option(help: "Downloads at once from one host.") var perHost: Int?
    @Option(help: "Requests a second to one host.") var rate: Double?
    @Option(help: "Burst size: requests to one host that may follow each other without a pause.") var burst: Int?
    @Flag(help: "Back to what workers were started with.") var reset = false
    @Flag(help: "Print JSON.") var json = false

    func run() async throws {
        try await reportingErrors {
            let name = try host.map(HostNames.parse) ?? LimitsRecord.everyHost
            let change = LimitsRecord(host: name, concurrency: concurrency, perHost: perHost, rate: rate, burst: burst)
            let isChange = change != LimitsRecord(host: name)
            guard !(isChange && reset) else { throw SettingsError("Either set limits or --reset them.") }
            guard concurrency == nil || host == nil else {
                throw SettingsError("concurrency is over all hosts: leave the host out.")
            }
            try Self.check(change)
            try await common.withStore { store in
                if reset, try await !store.hosts.resetLimits(host: name) { throw ExitCode.notFound }
                if isChange { try await store.hosts.setLimits(change) }
                show(try await store.hosts.limits())
            }
        }
    }

    /// The same bounds as the database's. SQLite stores NaN as NULL, so the database cannot refuse NaN.
    private static func check(_ limits: LimitsRecord) throws(SettingsError) {
        for (name, value, most) in [
            ("concurrency", limits.concurrency, 1_000), ("per-host", limits.perHost, 1_000),
            ("burst", limits.burst, 10_000),
        ] {
            guard let value, !(1...most).contains(value) else { continue }
            throw SettingsError("\(name) must be a whole number from 1 to \(most), not '\(value)'.")
        }
        if let rate = limits.rate, !(0.0001...100_000).contains(rate) {
            throw SettingsError("rate must be a number of requests a second, from 0.0001 to 100000, not '\(rate)'.")
        }
    }

    private func show(_ limits: [LimitsRecord]) {
        if json, let text = try? Output.json(limits) { return Terminal.print(text) }  // Cannot fail: numbers and names.
        let number: (Int?) -> String = { $0.map(String.init) ?? "" }
        let rows = limits.map { record in
            [
                Terminal.safe(record.host), number(record.concurrency), number(record.perHost),
                record.rate.map { Output.fixed($0, 2) } ?? "", number(record.burst),
            ]
        }
        Output.table(["host", "concurrency", "per host", "rate", "burst"], rows, right: [1, 2, 3, 4])
            .forEach(Terminal.print)
    }
}
