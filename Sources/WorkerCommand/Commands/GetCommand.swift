import ArgumentParser
import ContentCache
import Core
import Jobs
import PrefetchWorker
import SystemPackage

struct GetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Prints the path or the URL of a cached image.",
        discussion: """
            The file's bytes are checked before its path is printed, once after each start of the machine and whenever the \
            file has changed. Exit code 1 when it is not cached.

            With a cache in a bucket the file is fetched into the folder in front of it. With --url the command prints a \
            signed URL of the bucket instead. It works until --expires is over, or until the credentials that signed it \
            expire.

            EXAMPLES:
              worker get https://example.com/a.jpg
              cp "$(worker get https://example.com/a.jpg --variant thumb)" thumb.webp
              worker get https://example.com/a.jpg --variant thumb --link
              worker get https://example.com/a.jpg --variant thumb --url --expires 1h
            """,
    )

    @OptionGroup var common: CommonOptions

    @Argument(help: ArgumentHelp("The URL, as it was enqueued.", valueName: "url"))
    var image: String

    @Option(help: "The name of the variant (original).")
    var variant = "original"

    @Flag(help: "Print the path of its link instead, which stays the same when the image changes.")
    var link = false

    @Flag(help: "Print a signed URL of the image in the bucket instead.")
    var url = false

    @Option(Self.expiry) var expires: Int64?

    static let expiry = Setting.time(
        "expires", "1h", "How long the URL works; at most 7d.", in: 1_000...604_800_000)

    @Option(UpkeepSettings.readOnlyCache) var readOnlyCache: [String] = []

    func validate() throws {
        if url && link { throw ValidationError("--url and --link can't be used together.") }
        if expires != nil && !url { throw ValidationError("--expires needs --url.") }
    }

    func run() async throws {
        try await reportingErrors {
            try LookedUpURL.check([image])
            let settings = try common.settings()
            if url { return Terminal.print(try await presigned(settings)) }
            let others = try settings.list(UpkeepSettings.readOnlyCache, readOnlyCache)
            let (found, cache) = try await common.readingCache { store, cache in
                let found = try await CacheReader(store: store, cache: cache, readOnly: others).find(
                    image, variant: variant)
                if found.entry == nil { try await sayWhatIsCached(store) }
                return (found, cache)
            }
            for damage in found.damage {
                Terminal.error("worker: \(damage) The next job that needs the file makes it again.")
            }
            guard let entry = found.entry, let path = found.path else { throw ExitCode.notFound }
            guard link else { return Terminal.print(path) }
            guard
                let name = LinkName.path(key: entry.key, variant: entry.variant, format: entry.format),
                cache.links.blob(atLink: name)?.hex == entry.blob
            else {
                throw WorkerError(.usage, "There are no links. Make them with: worker run --links tree")
            }
            Terminal.print("\(cache.directory)/\(name)")
        }
    }

    private func presigned(_ settings: Settings) async throws -> String {
        let seconds = Int(clamping: (expires ?? 3_600_000) / 1_000)
        return try await common.readingCache { store, cache in
            guard let bucket = cache.backing else {
                throw WorkerError(
                    .usage, "The cache \(cache.name) is a folder, and only a bucket has URLs: see worker get --help")
            }
            guard let entry = try await store.cache.entry(ofURL: image, variant: variant),
                let hash = BlobHash(entry.blob)
            else {
                try await sayWhatIsCached(store)
                throw ExitCode.notFound
            }
            return try bucket.url(of: hash, seconds: seconds)
        }
    }

    private func sayWhatIsCached(_ store: JobStore) async throws {
        var cached = EntrySelection()
        cached.urls = [image]
        let names = try await store.cache.entries(cached).page.map(\.variant)
        let shown = Terminal.safe(try common.redaction().shown(image))
        let others =
            names.isEmpty
            ? "" : NearestWord.question(variant, among: names) + " Cached: \(names.joined(separator: ", "))."
        Terminal.error(
            Terminal.safe("worker: \(variant) of \(shown) is not cached.\(others) See: worker explain '\(shown)'"))
    }
}
