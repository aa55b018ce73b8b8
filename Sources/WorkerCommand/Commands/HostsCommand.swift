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
    @Option(Setting.whole("limit", 100, in: 1...1_000_000, "How many at most.")) var limit: Int?
    @Flag(help: "Print JSON.") var json = false

    func run() async throws {
        try await reportingErrors {
            let limit = limit ?? 100
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
