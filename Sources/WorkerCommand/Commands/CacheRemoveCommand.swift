import ArgumentParser
import Jobs
import PrefetchWorker

struct CacheRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Removes cached pictures of some URLs at once, pinned ones too.",
        discussion: """
            The command removes the pictures from the index, removes their links, and deletes the files that no other URL \
            needs. Jobs and their results stay, without the files. \
            DELETE FROM entries WHERE url = … does the same; then a running worker deletes the bytes within seconds. Exit code 1 \
            when nothing was cached.

            EXAMPLES:
              worker cache remove https://example.com/a.jpg
              worker cache remove https://example.com/a.jpg --variant thumb
              worker cache remove --host old.example.com --dry-run
              worker cache remove --match 'https://example.com/2019/*'
            """,
    )
    @OptionGroup var common: CommonOptions
    @Argument(help: "URLs, as they were enqueued.") var urls: [String] = []
    @Option(help: ArgumentHelp("Only this variant, or original.", valueName: "name")) var variant: String?
    @Option(help: "Only URLs of this host.") var host: String?
    @Option(
        help: ArgumentHelp("Only URLs that match this pattern; * and ? stand for any characters.", valueName: "pattern")
    )
    var match: String?
    @Flag(help: "Only list them.") var dryRun = false
    @Flag(help: "Show URLs as they were enqueued, with user name, password and signatures.") var showCredentials = false

    func validate() throws {
        if urls.isEmpty, host == nil, match == nil {
            throw ValidationError("Name URLs, --host or --match. To empty the cache: worker cache clear")
        }
    }

    func run() async throws {
        try await reportingErrors {
            try LookedUpURL.check(urls)
            var selection = EntrySelection()
            selection.urls = urls
            selection.variant = variant
            selection.host = try host.map(HostNames.parse)
            selection.nameOfHost = HostNames.name(ofURL:)
            selection.pattern = match
            if dryRun { return try await list(selection) }
            let (count, report) = try await common.withCache { [selection] store, cache in
                try await Collector(store: store, cache: cache, policy: CachePolicy(), logger: CacheCommand.logger)
                    .remove(selection)
            }
            Terminal.print(
                "\(Output.count(count, "picture")) removed; \(Output.count(report.evictedBlobs, "file")) deleted (\(Output.bytes(report.evictedBytes)))"
            )
            if let trouble = report.trouble {
                throw WorkerError(
                    .inputOutput, "\(report.stuck) files can't be deleted and stay where they are. \(trouble)")
            }
            if count == 0 { throw ExitCode.notFound }
        }
    }

    private func list(_ selection: EntrySelection) async throws {
        let redaction = try common.redaction()
        try await common.readingStore { store in
            var count = 0
            var next: CacheEntry?
            repeat {
                let page: [CacheEntry]
                (page, next) = try await store.cache.entries(selection, after: next)
                for entry in page {
                    let url = showCredentials ? entry.key : redaction.shown(entry.key)
                    Terminal.print(Terminal.safe("\(entry.variant)  \(url)"))
                }
                count += page.count
            } while next != nil
            if count == 0 {
                Terminal.error("Nothing that is cached matches. See what is cached of a URL with: worker explain URL")
                throw ExitCode.notFound
            }
        }
    }
}
