import ArgumentParser
import FoundationEssentials
import Jobs
import PrefetchWorker

struct MetricsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "metrics",
        abstract: "Prints the numbers of queue and cache in Prometheus' text format.",
        discussion: """
            With --output the file is replaced in one step, as node_exporter's textfile collector wants it.

            EXAMPLES:
              worker metrics
              worker metrics --output /var/lib/node_exporter/worker.prom
            """,
    )
    @OptionGroup var common: CommonOptions
    @Flag(help: "Print JSON.") var json = false
    @Option(help: ArgumentHelp("Write to a file instead.", valueName: "file")) var output: String?

    private struct Metric {
        let name: String
        let help: String
        let isCounter: Bool
        let value: Int64
    }

    func run() async throws {
        try await reportingErrors {
            let metrics = try await common.withStore { store in
                Self.metrics(try await store.cacheTotals(), try await store.backlog(), try await store.workers().count)
            }
            let text =
                json
                ? try Output.json(Dictionary(uniqueKeysWithValues: metrics.map { ($0.name, $0.value) })) + "\n"
                : metrics.map(Self.lines).joined()
            guard let output else { return Terminal.print(String(text.dropLast())) }
            do {
                try Data(text.utf8).write(to: URL(filePath: output), options: .atomic)
            } catch {
                throw WorkerError(.cannotCreate, "\(output) can't be written: \(error)")
            }
        }
    }

    private static func lines(_ metric: Metric) -> String {
        """
        # HELP \(metric.name) \(metric.help)
        # TYPE \(metric.name) \(metric.isCounter ? "counter" : "gauge")
        \(metric.name) \(metric.value)

        """
    }

    private static func metrics(_ cache: CacheTotals, _ backlog: Backlog, _ workers: Int) -> [Metric] {
        func gauge(_ name: String, _ help: String, _ value: Int64) -> Metric {
            Metric(name: "worker_\(name)", help: help, isCounter: false, value: value)
        }
        func counter(_ name: String, _ help: String, _ value: Int64) -> Metric {
            Metric(name: "worker_\(name)_total", help: help, isCounter: true, value: value)
        }
        return [
            gauge("workers", "Workers that are alive.", Int64(workers)),
            gauge("items_queued", "Items that wait.", Int64(backlog.queued)),
            gauge("items_active", "Items at work.", Int64(backlog.active)),
            gauge("items_delayed", "Items that wait for another try.", Int64(backlog.delayed)),
            gauge("cache_files", "Files in the cache.", cache.blobs),
            gauge("cache_bytes", "Bytes of the files in the cache.", cache.bytes),
            gauge("cache_reserved_bytes", "Bytes set aside for what is being published.", cache.reservedBytes),
            counter("cache_hits", "Items that ended without the network.", cache.hits),
            counter("cache_misses", "Items that were downloaded.", cache.misses),
            counter("cache_revalidated_bytes", "Bytes saved by 304.", cache.revalidatedBytes),
            counter("cache_deduped_bytes", "Bytes saved by finding the same bytes.", cache.dedupedBytes),
            counter("cache_evicted_files", "Files evicted.", cache.evictedBlobs),
            counter("cache_evicted_bytes", "Bytes evicted.", cache.evictedBytes),
            counter("failed_syncs", "Files given up because the disk did not confirm them.", cache.failedSyncs),
        ]
    }
}
