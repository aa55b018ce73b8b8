import ArgumentParser
import ContentCache
import Jobs
import PrefetchWorker

struct CacheStatsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats",
        abstract: "Shows the size, contents and hit rate of the cache.",
        discussion: """
            The totals are counted as things happen; the tables by format, variant, host and age read the index.

            EXAMPLES:
              worker cache stats
              worker cache stats --json
            """,
    )
    @OptionGroup var common: CommonOptions
    @Flag(help: "Print JSON.") var json = false

    private struct Stats: Encodable {
        let totals: CacheTotals
        let formats, variants, hosts, ages: [CacheIndex.CacheShare]
        let pinned: Int
        let quarantinedFiles: Int
        let quarantinedBytes: Int64
    }

    func run() async throws {
        try await reportingErrors {
            let cache = try common.openCache()
            let quarantined = try cache.quarantined()
            let stats = try await common.readingStore { store in
                Stats(
                    totals: try await store.cache.totals(), formats: try await store.cache.shares(by: .format),
                    variants: try await store.cache.shares(by: .variant),
                    hosts: try await store.cache.shares(by: .host),
                    ages: try await store.cache.shares(by: .age),
                    pinned: try await store.cache.pinned(limit: .max).count,
                    quarantinedFiles: quarantined.files, quarantinedBytes: quarantined.bytes)
            }
            if json { Terminal.print(try Output.json(stats)) } else { lines(stats).forEach(Terminal.print) }
        }
    }

    private func lines(_ stats: Stats) -> [String] {
        let totals = stats.totals
        var lines = [
            "\(Output.count(totals.blobs, "file")), \(Output.bytes(totals.bytes)); \(Output.count(stats.pinned, "URL")) pinned",
            "\(totals.hits) hits (\(totals.fromMemory) from memory), \(totals.misses) misses",
            "\(Output.bytes(totals.revalidatedBytes)) saved by 304, \(Output.bytes(totals.dedupedBytes)) by deduplication",
            "\(Output.count(totals.evictedBlobs, "file")) evicted so far (\(Output.bytes(totals.evictedBytes)))",
        ]
        if stats.quarantinedFiles > 0 {
            lines.append(
                "\(Output.count(stats.quarantinedFiles, "file")) in quarantine (\(Output.bytes(stats.quarantinedBytes)))"
            )
        }
        if totals.failedSyncs > 0 { lines.append("\(totals.failedSyncs) files were given up because a sync failed") }
        for (title, shares) in [
            ("format", stats.formats), ("variant", stats.variants), ("host", stats.hosts), ("last used", stats.ages),
        ] where !shares.isEmpty {
            let rows = shares.prefix(20).map { [Terminal.safe($0.name), "\($0.files)", Output.bytes($0.bytes)] }
            lines += [""] + Output.table([title, "files", "bytes"], rows, right: [1, 2])
        }
        return lines
    }
}
