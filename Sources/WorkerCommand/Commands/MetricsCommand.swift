import ArgumentParser
import Core
import FoundationEssentials
import Glibc
import Jobs
import PrefetchWorker

struct MetricsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "metrics",
        abstract: "Prints metrics of the queue and the cache in Prometheus' text format.",
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
        /// Nil for the same metric as above with another label.
        let help: String?
        let isCounter: Bool
        let value: Double
        var label = ""
    }

    func run() async throws {
        try await reportingErrors {
            let cache = try common.cachePath(try common.settings())
            let metrics = try await common.readingStore { store in
                let now = store.database.currentTime
                return Self.metrics(
                    try await store.cache.totals(), try await store.reports.backlog(),
                    try await store.queue.workers().count)
                    + Self.origins(try await store.cache.totals())
                    + Self.metrics(try await store.database.longestSlices())
                    + Self.metrics(try await store.maintenance.logState(), at: now)
                    + Self.metrics(try await store.reports.gauges(), at: now) + Self.disk(of: cache)
                    + Self.metrics(try await store.schedules.all())
            }
            let text =
                json
                ? try Output.json(Dictionary(uniqueKeysWithValues: metrics.map { ($0.name + $0.label, $0.value) }))
                    + "\n"
                : metrics.map(Self.lines).joined()
            guard let output else { return Terminal.print(String(text.dropLast())) }
            do {
                try OutputFile.replace(output, text)
            } catch {
                throw WorkerError(.cannotCreate, "\(output) can't be written: \(error)")
            }
        }
    }

    private static func metrics(_ log: LogState, at now: WallTime) -> [Metric] {
        [
            Metric(
                name: "worker_database_log_bytes", help: "Size of the database's write-ahead log.", isCounter: false,
                value: Double(log.bytes)),
            Metric(
                name: "worker_database_reader_age_seconds",
                help: "How long the oldest reader has kept the log from being cut; 0 when none does.", isCounter: false,
                value: log.heldSince.map { Double(max(0, now - $0)) / 1_000 } ?? 0),
        ]
    }

    private static func metrics(_ queue: QueueGauges, at now: WallTime) -> [Metric] {
        let states = JobState.allCases.filter(\.isOpen).enumerated().map { index, state in
            Metric(
                name: "worker_jobs", help: index == 0 ? "Unfinished jobs, by state." : nil, isCounter: false,
                value: Double(queue.jobs[state] ?? 0), label: "{state=\"\(state.rawValue)\"}")
        }
        func gauge(_ name: String, _ help: String, _ value: Double) -> Metric {
            Metric(name: "worker_\(name)", help: help, isCounter: false, value: value)
        }
        return states + [
            gauge(
                "queue_oldest_age_seconds",
                "How long the oldest job with waiting items has been in the queue; 0 without any.",
                queue.oldest.map { Double(max(0, now - $0)) / 1_000 } ?? 0),
            gauge("blacklist_entries", "URLs that are not fetched again for a while.", Double(queue.blacklisted)),
            gauge("hosts_parked", "Hosts that get no request at this moment.", Double(queue.parkedHosts)),
            gauge("leases", "Groups of items that workers hold.", Double(queue.leases)),
        ]
    }

    /// - Parameter cache: the cache's folder; without it there is no number.
    private static func disk(of cache: String) -> [Metric] {
        var info = statvfs()
        guard statvfs(cache, &info) == 0 else { return [] }
        return [
            Metric(
                name: "worker_cache_disk_free_bytes", help: "Free bytes on the disk of the cache.", isCounter: false,
                value: Double(info.f_bavail) * Double(info.f_frsize))
        ]
    }

    private static func metrics(_ schedules: [ScheduleRecord]) -> [Metric] {
        func each(_ name: String, _ help: String, _ value: (ScheduleRecord) -> Double?) -> [Metric] {
            schedules.compactMap { schedule in value(schedule).map { (schedule.name, $0) } }.enumerated().map {
                index, sample in
                Metric(
                    name: "worker_schedule_\(name)", help: index == 0 ? help : nil, isCounter: false, value: sample.1,
                    label: "{schedule=\"\(escaped(sample.0))\"}")
            }
        }
        return each("last_success_timestamp_seconds", "When a run of the schedule last ended in a job.") {
            $0.lastSuccess.map { Double($0.milliseconds) / 1_000 }
        }
            + each("last_run_failed", "Whether the last run of the schedule has failed.") {
                $0.last.map { $0.outcome == "failed" ? 1 : 0 }
            }
            + each("next_run_timestamp_seconds", "When the schedule is due next.") {
                $0.startsAt.map { Double($0.milliseconds) / 1_000 }
            }
    }

    /// A label's value, as the text format has it.
    private static func escaped(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
    }

    private static func lines(_ metric: Metric) -> String {
        let value = Int64(exactly: metric.value).map { "\($0)" } ?? "\(metric.value)"
        let line = "\(metric.name)\(metric.label) \(value)\n"
        guard let help = metric.help else { return line }
        return """
            # HELP \(metric.name) \(help)
            # TYPE \(metric.name) \(metric.isCounter ? "counter" : "gauge")
            \(line)
            """
    }

    private static func metrics(_ slices: [Upkeep: Int64]) -> [Metric] {
        slices.sorted { $0.key.rawValue < $1.key.rawValue }.enumerated().map { index, slice in
            Metric(
                name: "worker_write_lock_seconds_max",
                help: index == 0 ? "The longest that a slice of upkeep has ever held the write lock." : nil,
                isCounter: false, value: Double(slice.value) / 1_000_000, label: "{what=\"\(slice.key.rawValue)\"}")
        }
    }

    private static func origins(_ cache: CacheTotals) -> [Metric] {
        SourceOrigin.allCases.enumerated().map { index, origin in
            Metric(
                name: "worker_sources_total",
                help: index == 0 ? "Items that ended well, by where their source's bytes came from." : nil,
                isCounter: true, value: Double(cache.count(from: origin)), label: "{from=\"\(origin.rawValue)\"}")
        }
    }

    private static func metrics(_ cache: CacheTotals, _ backlog: Backlog, _ workers: Int) -> [Metric] {
        func gauge(_ name: String, _ help: String, _ value: Int64) -> Metric {
            Metric(name: "worker_\(name)", help: help, isCounter: false, value: Double(value))
        }
        func counter(_ name: String, _ help: String, _ value: Int64) -> Metric {
            Metric(name: "worker_\(name)_total", help: help, isCounter: true, value: Double(value))
        }
        return [
            gauge("workers", "Workers that are alive.", Int64(workers)),
            gauge("items_queued", "Items that wait.", Int64(backlog.queued)),
            gauge("items_active", "Items at work.", Int64(backlog.active)),
            gauge("items_delayed", "Items that wait for another try.", Int64(backlog.delayed)),
            gauge("cache_files", "Files in the cache.", cache.blobs),
            gauge("cache_bytes", "Bytes of the files in the cache.", cache.bytes),
            gauge("cache_reserved_bytes", "Bytes reserved for files that are being written.", cache.reservedBytes),
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
