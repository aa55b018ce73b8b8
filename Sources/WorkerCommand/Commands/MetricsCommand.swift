import ArgumentParser
import Jobs
import PrefetchWorker

struct MetricsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "metrics",
        abstract: "Prints metrics of the queue, the work and the cache in Prometheus' text format.",
        discussion: """
            With --output the command replaces the file in one step, as node_exporter's textfile collector requires.

            EXAMPLES:
              worker metrics
              worker metrics --output /var/lib/node_exporter/worker.prom
            """,
    )
    @OptionGroup var common: CommonOptions
    @Flag(help: "Print JSON.") var json = false
    @Option(help: ArgumentHelp("Write to a file instead.", valueName: "file")) var output: String?

    func run() async throws {
        try await reportingErrors {
            let settings = try common.settings()
            let cache = try common.cacheLocation(settings).folder
            let metrics = try await common.readingStore { store in
                try await WorkerMetrics(store: store, cache: cache).all()
            }
            let text =
                json
                ? try Output.json(Dictionary(metrics.flatMap(\.values)) { first, _ in first }) + "\n"
                : metrics.map(\.lines).joined()
            guard let output else { return Terminal.print(String(text.dropLast())) }
            do {
                try OutputFile.replace(output, text)
            } catch {
                throw WorkerError(.cannotCreate, "\(output) can't be written: \(error)")
            }
        }
    }
}
