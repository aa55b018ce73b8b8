import ArgumentParser
import ContentCache
import Core
import Jobs
import PrefetchWorker
import SystemPackage

struct GetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Prints the path of a cached image.",
        discussion: """
            The file's bytes are checked before its path is printed, once after each start of the machine and whenever the \
            file has changed. Exit code 1 when it is not cached.

            EXAMPLES:
              worker get https://example.com/a.jpg
              cp "$(worker get https://example.com/a.jpg --variant thumb)" thumb.webp
              worker get https://example.com/a.jpg --variant thumb --link
            """,
    )

    @OptionGroup var common: CommonOptions

    @Argument(help: "The URL, as it was enqueued.")
    var url: String

    @Option(help: "The name of the variant (original).")
    var variant = "original"

    @Flag(help: "Print the path of its link instead, which stays the same when the image changes.")
    var link = false

    @Option(UpkeepSettings.readOnlyCache) var readOnlyCache: [String] = []

    func run() async throws {
        try await reportingErrors {
            try LookedUpURL.check([url])
            let settings = try common.settings()
            let others = try settings.list(UpkeepSettings.readOnlyCache, readOnlyCache)
            let (found, cache, names) = try await common.readingCache { store, cache in
                let found = try await CacheReader(store: store, cache: cache, readOnly: others).find(
                    url, variant: variant)
                var cached = EntrySelection()
                cached.urls = [url]
                let names = found.entry == nil ? try await store.cache.entries(cached).page.map(\.variant) : []
                return (found, cache, names)
            }
            for damage in found.damage {
                Terminal.error("worker: \(damage) The next job that needs the file makes it again.")
            }
            guard let entry = found.entry, let path = found.path else {
                let shown = Terminal.safe(try common.redaction().shown(url))
                let others =
                    names.isEmpty
                    ? "" : NearestWord.question(variant, among: names) + " Cached: \(names.joined(separator: ", "))."
                Terminal.error(
                    Terminal.safe(
                        "worker: \(variant) of \(shown) is not cached.\(others) See: worker explain '\(shown)'"))
                throw ExitCode.notFound
            }
            guard link else { return Terminal.print(path) }
            guard
                let name = LinkName.path(key: entry.key, variant: entry.variant, format: entry.format),
                cache.blob(atLink: name)?.hex == entry.blob
            else {
                throw WorkerError(.usage, "There are no links. Make them with: worker run --links tree")
            }
            Terminal.print("\(cache.directory)/\(name)")
        }
    }
}
