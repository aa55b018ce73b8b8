import ArgumentParser
import ContentCache
import Jobs
import Logging
import PrefetchWorker

struct CacheCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cache", abstract: "Inspects, fills, verifies and empties the cache.",
        discussion: """
            EXAMPLES:
              worker cache stats
              worker cache verify --quick
              worker cache gc --cache-max-size 10GiB
              worker cache remove https://example.com/a.jpg --dry-run
            """,
        subcommands: [
            CacheStatsCommand.self, CacheVerifyCommand.self, CacheCollectCommand.self, CacheClearCommand.self,
            CachePutCommand.self, CacheRemoveCommand.self, CachePinCommand.self, CacheUnpinCommand.self,
            CacheUploadCommand.self,
        ])

    /// Logs events that are not part of a command's own output.
    static let logger = Logger(label: "worker") { _ in ConsoleLog(logLevel: .notice, format: .usual(), line: nil) }
}

struct CacheCollectCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "gc",
        abstract: "Evicts files beyond the age and size limits, and removes files that a crash left.",
        discussion: """
            The command never evicts pinned files or files of items in flight. Workers may run meanwhile: they evict
            every minute and at the end of a run, and look for files that a crash left when they start and then once an hour.
            Only this command lists a bucket and deletes objects that the index does not have.

            EXAMPLES:
              worker cache gc
              worker cache gc --cache-max-size 20GiB --cache-max-age 30d
              worker cache gc --cache-max-age 0 --orphan-grace 0
            """,
    )
    @OptionGroup var common: CommonOptions
    @OptionGroup var size: CacheSizeOptions
    @OptionGroup var limits: CacheOptions
    @Option(Setting.bytes("min-free", nil, "Disk space to keep free.", standardText: "0")) var minFree: Int64?
    @Flag(help: "Print JSON.") var json = false

    func run() async throws {
        try await reportingErrors {
            let settings = try common.settings()
            var policy = try limits.policy(size, settings)
            policy.minimumFree = try settings.optional(UpkeepSettings.minFree, minFree) ?? 0
            policy.folderBytes = try common.bucket(settings).folderBytes
            let report = try await common.withCache { store, cache in
                let collector = Collector(store: store, cache: cache, policy: policy, logger: CacheCommand.logger)
                var report = try await collector.collect()
                report.orphans += try await collector.removeUnknownObjects()
                return report
            }
            try show(report, json: json)
        }
    }
}

struct CacheClearCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clear",
        abstract: "Removes all cached files that are neither pinned nor in use.",
        discussion: """
            Jobs and their results stay, without their files. Files in quarantine stay too, unless you give --quarantine.

            EXAMPLES:
              worker cache clear
              worker cache clear --quarantine --yes
            """,
    )
    @OptionGroup var common: CommonOptions
    @Flag(help: "Also remove the files in quarantine.") var quarantine = false
    @OptionGroup var confirmation: Confirmation
    @Flag(help: "Print JSON.") var json = false

    func run() async throws {
        try await reportingErrors {
            let report = try await common.withCache { store, cache -> Collector.Report? in
                let totals = try await store.cache.totals()
                let also = quarantine ? ", and the files in quarantine" : ""
                let plan =
                    "Removes all cached files that are neither pinned nor in use\(also). The cache has \(totals.blobs) files "
                    + "(\(Output.bytes(totals.bytes)))."
                guard try confirmation.allows(plan) else { return nil }
                let collector = Collector(
                    store: store, cache: cache, policy: CachePolicy(), logger: CacheCommand.logger)
                var report = try await collector.clear()
                if quarantine {
                    let gone = try await collector.clearQuarantine()
                    report.quarantined = gone.quarantined
                    report.stuck += gone.stuck
                    report.trouble = gone.trouble ?? report.trouble
                }
                return report
            }
            if let report { try show(report, json: json) }
        }
    }
}

private func show(_ report: Collector.Report, json: Bool) throws {
    if json {
        Terminal.print(try Output.json(report))
    } else {
        Terminal.print(
            "\(Output.count(report.evictedBlobs, "file")) evicted (\(Output.bytes(report.evictedBytes))), \(Output.count(report.orphans, "orphan")) removed"
        )
        if report.quarantined > 0 {
            Terminal.print("\(Output.count(report.quarantined, "file")) removed from quarantine")
        }
    }
    if let trouble = report.trouble {
        throw WorkerError(.inputOutput, "\(report.stuck) files can't be deleted and stay where they are. \(trouble)")
    }
}

struct CachePinCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pin",
        abstract: "Pins URLs: their cached files, now and later, are not evicted.",
        discussion: """
            Without URLs it lists the pinned URLs.

            EXAMPLES:
              worker cache pin https://example.com/logo.png
            """,
    )
    @OptionGroup var common: CommonOptions
    @Argument(help: "URLs, as they were enqueued.") var urls: [String] = []
    @Flag(help: "Show URLs as they were pinned, with user name and password.") var showCredentials = false

    func validate() throws {
        if urls.contains(where: { $0.allSatisfy(\.isWhitespace) }) { throw ValidationError("A URL is empty.") }
    }

    func run() async throws {
        try await reportingErrors {
            try await common.withStore { store in
                if urls.isEmpty {
                    let redaction = try common.redaction()
                    let pinned = try await store.cache.pinned()
                    if pinned.isEmpty { Terminal.error("Nothing is pinned.") }
                    for url in pinned {
                        Terminal.print(Terminal.safe(showCredentials ? url : redaction.shown(url)))
                    }
                } else {
                    try LookedUpURL.check(urls)
                    try await store.cache.pin(urls)
                    Terminal.error("\(urls.count) pinned")
                }
            }
        }
    }
}

struct CacheUnpinCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unpin",
        abstract: "Unpins URLs: their cached files may be evicted again.",
        discussion: """
            Exit code 1 when none of them was pinned.

            EXAMPLES:
              worker cache unpin https://example.com/logo.png
            """,
    )
    @OptionGroup var common: CommonOptions
    @Argument(help: "URLs, as they were pinned.") var urls: [String]

    func run() async throws {
        try await reportingErrors {
            let count = try await common.withStore { store in try await store.cache.unpin(urls) }
            if count == 0 {
                Terminal.error("worker: none of these URLs is pinned. List them with: worker cache pin")
                throw ExitCode.notFound
            }
            Terminal.error("\(count) unpinned")
        }
    }
}
