import Core
import Glibc
import Jobs

/// All metrics of a database and its cache. They are read from the database, so they cover all of its workers.
struct WorkerMetrics: Sendable {
    let store: JobStore
    /// The cache's folder; the free space of its disk is a metric.
    let cache: String

    func all() async throws(JobsError) -> [Metric] {
        let now = store.database.currentTime
        let totals = try await store.cache.totals()
        return [.gauge("workers", "Workers that are alive.", Double(try await store.workers.live().count))]
            + Self.queue(try await store.reports.backlog(), try await store.reports.gauges(), at: now)
            + Metric.counted(try await store.activity.counts()) + Self.cache(totals) + disk
            + Self.database(try await store.database.longestSlices(), try await store.maintenance.logState(), at: now)
            + Self.schedules(try await store.schedules.all())
    }

    func text() async throws(JobsError) -> String { try await all().map(\.lines).joined() }

    private static func queue(_ backlog: Backlog, _ queue: QueueGauges, at now: WallTime) -> [Metric] {
        [
            .gauge("items_queued", "Items that wait.", Double(backlog.queued)),
            .gauge("items_active", "Items that workers have claimed.", Double(backlog.active)),
            .gauge("items_delayed", "Items that wait for another try, or for their host.", Double(backlog.delayed)),
            .each(
                .gauge, "jobs", "Unfinished jobs, by state.", by: "state",
                JobState.allCases.filter(\.isOpen).map { ($0.rawValue, Double(queue.jobs[$0] ?? 0)) }),
            .gauge(
                "queue_oldest_age_seconds",
                "How long the oldest job with waiting items has been in the queue; 0 without any.",
                queue.oldest.map { Double(max(0, now - $0)) / 1_000 } ?? 0),
            .gauge("blacklist_entries", "URLs that are not fetched again for a while.", Double(queue.blacklisted)),
            .gauge(
                "hosts_blocked", "Hosts that are blocked: by Retry-After, or because their circuit is open.",
                Double(queue.blockedHosts)),
            .gauge(
                "jobs_suspended", "1 while all jobs are paused ('worker pause --all'), otherwise 0.",
                queue.areJobsSuspended ? 1 : 0),
            .gauge("leases", "Leases: groups of items that workers have claimed.", Double(queue.leases)),
        ]
    }

    private static func cache(_ cache: CacheTotals) -> [Metric] {
        [
            .gauge("cache_files", "Files in the cache.", Double(cache.blobs)),
            .gauge("cache_bytes", "Bytes of the files in the cache.", Double(cache.bytes)),
            .gauge(
                "cache_reserved_bytes", "Bytes reserved for files that are being written.", Double(cache.reservedBytes)),
            .counter(
                "cache_hits", "Items whose source's bytes came from the cache, including those confirmed by a 304.",
                cache.hits),
            .counter(
                "cache_misses", "Items whose source was downloaded, read from a file or delivered by a loader.",
                cache.misses),
            .counter("cache_revalidated_bytes", "Bytes saved by 304.", cache.revalidatedBytes),
            .counter("cache_deduped_bytes", "Bytes saved by deduplication.", cache.dedupedBytes),
            .counter("cache_evicted_files", "Files evicted.", cache.evictedBlobs),
            .counter("cache_evicted_bytes", "Bytes evicted.", cache.evictedBytes),
            .counter(
                "failed_syncs", "Files discarded because they could not be synced to the disk.", cache.failedSyncs),
            .each(
                .counter, "sources_total", "Items that ended well, by where their source's bytes came from.",
                by: "from",
                SourceOrigin.allCases.map { ($0.rawValue, Double(cache.count(from: $0))) }),
        ]
    }

    /// Without a folder there is no number.
    private var disk: [Metric] {
        var info = statvfs()
        guard statvfs(cache, &info) == 0 else { return [] }
        return [
            .gauge(
                "cache_disk_free_bytes", "Free bytes on the disk of the cache.",
                Double(info.f_bavail) * Double(info.f_frsize))
        ]
    }

    private static func database(_ slices: [Upkeep: Int64], _ log: LogState, at now: WallTime) -> [Metric] {
        [
            .gauge("database_log_bytes", "Size of the database's write-ahead log.", Double(log.bytes)),
            .gauge(
                "database_reader_age_seconds",
                "How long the oldest reader has kept the log from being truncated; 0 if none does.",
                log.heldSince.map { Double(max(0, now - $0)) / 1_000 } ?? 0),
        ]
            + (slices.isEmpty
                ? []
                : [
                    .each(
                        .gauge, "write_lock_seconds_max",
                        "The longest time that a step of maintenance has held the write lock.", by: "what",
                        slices.sorted { $0.key.rawValue < $1.key.rawValue }
                            .map { ($0.key.rawValue, Double($0.value) / 1_000_000) })
                ])
    }

    private static func schedules(_ schedules: [ScheduleRecord]) -> [Metric] {
        func each(_ name: String, _ help: String, _ value: (ScheduleRecord) -> Double?) -> [Metric] {
            let values = schedules.compactMap { schedule in value(schedule).map { (schedule.name, $0) } }
            return values.isEmpty ? [] : [.each(.gauge, "schedule_" + name, help, by: "schedule", values)]
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
}
