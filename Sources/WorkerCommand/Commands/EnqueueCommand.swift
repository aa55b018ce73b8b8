import ArgumentParser
import ImageFiles
import Jobs
import Lists
import PrefetchWorker
import Variants

struct EnqueueCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "enqueue",
        abstract: "Adds a job.",
        discussion: """
            Prints the job's number. URLs come from the command line, from a list (-f), from another SQLite file (--query), or \
            from a manifest. A list is text with a URL on each line, CSV, TSV, JSON Lines, an XML sitemap or an index of \
            them, an RSS or Atom feed, or an HTML page; plain, gzip or zstd. On standard error the command names the \
            kind of list that it recognised. Other columns of a row become the item's meta. If one line is wrong, the \
            command enqueues nothing; with --skip-invalid it leaves wrong lines out.

            A variant is NAME=WIDTHxHEIGHT[,fit][,position][,enlarge][,densities][,format][,qN][,option]…[,effect]…; the width or \
            the height may be empty. docs/reference/variants.md explains the parts:
              fits       inside (default), outside, cover, contain, fill
              positions  \(VariantReference.positions.joined(separator: ", "))
              densities  @1+@2+@3 makes NAME, NAME@2x and NAME@3x, with two and three times the width and height
              formats    \(VariantReference.formats.joined(separator: ", "))
              options    \(VariantReference.options.joined(separator: ", "))
              effects    \(VariantReference.effects.joined(separator: "\n             "))

            EXAMPLES:
              worker enqueue https://example.com/a.jpg https://example.com/b.png
              worker enqueue -f urls.txt --variant thumb=320x240,cover,webp,q80 --variant card=640x,webp
              generate-urls | worker enqueue -f - --name nightly --option refresh-cached --priority -10
              worker enqueue -f feed.txt --option only-new
              worker enqueue -f products.csv --column image_url --variant card=640x,webp
              worker enqueue -f https://example.com/sitemap.xml --host img.example.com --limit 1000
              worker enqueue --query 'SELECT image AS url, sku FROM products' --from shop.db
              worker enqueue -f urls.txt --variant 'card=640x400,cover,attention,auto,sharpen,round:12'
              worker enqueue -f urls.txt --variant thumb=320x240,cover,webp,@1+@2+@3
              worker enqueue --manifest catalogue.yaml
              worker enqueue https://cdn.example.com/a.jpg --fallback https://example.com/a.jpg --meta '{"sku":7}'
            """,
    )

    @OptionGroup var common: CommonOptions

    @Argument(help: "URLs to fetch.")
    var urls: [String] = []

    @Option(
        name: .shortAndLong,
        help: "A list of URLs: a file, an address, or - for standard input; repeatable.")
    var file: [String] = []

    @OptionGroup(title: "LISTS") var lists: ListOptions

    @Option(help: "A YAML or JSON file that describes the job; see docs/reference/manifests.md.")
    var manifest: String?

    @Option(help: ArgumentHelp("A rendition to make; repeatable.", valueName: "spec"))
    var variant: [String] = []

    @Option(
        help: ArgumentHelp("A job option, such as retry-failed or discard-original; repeatable.", valueName: "name"))
    var option: [String] = []

    @Option(
        help: ArgumentHelp(
            "Sent with every request, to the URL's own host only; @FILE reads such lines from a file, so that they stay out of the list of processes; repeatable.",
            valueName: "name: value")
    )
    var header: [String] = []

    @Option(Setting.whole("priority", nil, in: -100...100, "-100 to 100, higher first (0).")) var priority: Int?

    @Option(help: "fifo or lifo (the worker's --order).")
    var order: String?

    @Option(help: "The job's name in `worker status`.")
    var name: String?

    @Option(help: ArgumentHelp("Do nothing while a job with this key is unfinished.", valueName: "key"))
    var dedupeKey: String?

    @Option(
        help: ArgumentHelp(
            "A JSON object for all URLs of the call, which results, events and delegates show.", valueName: "json"))
    var meta: String?

    @Option(
        help: ArgumentHelp(
            "A URL to fetch if the item's own has failed for good; repeatable, in order.", valueName: "url"))
    var fallback: [String] = []

    @Option(
        help: ArgumentHelp(
            "The URL that gets a notice when the job has ended, or 'command' for the command of worker run --notify-command.",
            valueName: "url"))
    var notify: String?

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
        try await reportingErrors {
            let read = try manifest.map { try Manifest.read($0) }
            var source = JobIntake.Source(common: common, lists: lists, meta: try metaMembers())
            if urls.isEmpty, let manifest, let read { source.manifest = (manifest, read.urlLines) }
            let intake = try await JobIntake(newJob(read), files: file, sources: read?.sources ?? [], from: source)
            try lists.checkUse(intake.lists)
            if let useless = lists.uselessFetchOption(intake.lists) { Terminal.error("worker: warning: \(useless)") }
            try await common.withStore(missing: .create) { store in try await add(intake, to: store) }
        }
    }

    private func add(_ intake: JobIntake, to store: JobStore) async throws {
        guard let id = try await addedUnlessInterrupted(intake, to: store) else {
            let key = intake.job.dedupeKey ?? ""
            let running = try await store.queue.unfinishedJob(withDedupeKey: key)
            Terminal.error(
                "Job \(running.map(String.init) ?? "?") with the key '\(key)' is not finished; nothing was added.")
            return Terminal.print(json ? #"{"job":\#(running ?? 0),"urls":0}"# : "\(running ?? 0)")
        }
        if let count = try await store.reports.progress(job: id)?.notNew, count > 0 {
            Terminal.error("\(ListIntake.urls(count)) were done by earlier jobs, and are skipped.")
        }
        Terminal.print(json ? #"{"job":\#(id),"urls":\#(intake.spool.count)}"# : "\(id)")
    }

    /// Adding a long list takes seconds; if a signal interrupts it, none of the list is added.
    private func addedUnlessInterrupted(_ intake: JobIntake, to store: JobStore) async throws -> JobID? {
        let work = Task { [fallback] in try await intake.add(to: store, fallbacks: fallback) }
        let (added, interruption) = try await stoppable(patience: .seconds(1)) { stop in
            // Ends it between two slices. A wait for the write lock goes on, and is ended with the process.
            stop.whenRequested { work.cancel() }
            return await work.result
        }
        if case .failure = added, let interruption {
            Terminal.error("worker: Interrupted: nothing was enqueued.")
            throw interruption
        }
        return try added.get()
    }

    private func newJob(_ manifest: Manifest?) throws -> NewJob {
        var job = manifest?.job ?? NewJob(urls: [])
        job.urls += urls
        if !variant.isEmpty { job.variants = try VariantList(variant).text }
        if !option.isEmpty { job.options = option.joined(separator: " ") }
        for header in try HeaderLine.all(header) {
            job.headers[header.name] = header.value
        }
        job.priority = priority ?? job.priority
        job.name = name ?? job.name
        job.dedupeKey = dedupeKey ?? job.dedupeKey
        job.notify = notify ?? job.notify
        if let order { job.order = try Manifest.order(order) }
        for (what, text) in [("name", job.name), ("dedupe-key", job.dedupeKey)] where text == "" {
            throw SettingsError("The \(what) is empty; leave it out, or write one.")
        }
        guard fallback.count <= 16 else {
            throw SettingsError("--fallback can be given 16 times at most, not \(fallback.count) times.")
        }
        for url in fallback {
            guard case .bad(let message) = URLArgument.verdict(url) else { continue }
            throw SettingsError("--fallback: \(message)")
        }
        try WorkerJobs.check(job)
        return job
    }

    private func metaMembers() throws -> [ListMember] {
        guard let meta else { return [] }
        guard let members = ListMember.members(of: meta), meta.utf8.count <= 16_384 else {
            throw SettingsError(#"meta must be a JSON object of at most 16 KiB, such as {"sku":7}"#)
        }
        return members
    }
}
