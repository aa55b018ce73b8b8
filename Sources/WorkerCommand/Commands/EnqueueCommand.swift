import ArgumentParser
import FoundationEssentials
import Imaging
import Jobs
import PrefetchWorker
import Variants

struct EnqueueCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "enqueue",
        abstract: "Adds a job.",
        discussion: """
            Prints the job's number. URLs come from the command line, from a file (one on a line; blank lines and lines \
            that begin with # are left out), from standard input, or from a manifest.

            A variant is NAME=WIDTHxHEIGHT[,fit][,position][,enlarge][,format][,qN][,option]…[,effect]…; either side of x \
            may be empty. docs/reference/variants.md explains the parts:
              fits       inside (default), outside, cover, contain, fill
              positions  \(VariantReference.positions.joined(separator: ", "))
              densities  @1+@2+@3 makes NAME, NAME@2x and NAME@3x, with two and three times the pixels
              formats    \(VariantReference.formats.joined(separator: ", "))
              options    \(VariantReference.options.joined(separator: ", "))
              effects    \(VariantReference.effects.joined(separator: "\n             "))

            EXAMPLES:
              worker enqueue https://example.com/a.jpg https://example.com/b.png
              worker enqueue -f urls.txt --variant thumb=320x240,cover,webp,q80 --variant card=640x,webp
              generate-urls | worker enqueue -f - --name nightly --option refresh-cached --priority -10
              worker enqueue -f feed.txt --option only-new
              worker enqueue -f urls.txt --variant 'card=640x400,cover,attention,auto,sharpen,round:12'
              worker enqueue -f urls.txt --variant thumb=320x240,cover,webp,@1+@2+@3
              worker enqueue --manifest catalogue.yaml
              worker enqueue https://cdn.example.com/a.jpg --fallback https://example.com/a.jpg --meta '{"sku":7}'
            """,
    )

    @OptionGroup var common: CommonOptions

    @Argument(help: "URLs to fetch.")
    var urls: [String] = []

    @Option(name: .shortAndLong, help: "A file with a URL on each line; - for standard input.")
    var file: String?

    @Option(help: "A YAML or JSON file with urls, variants, options, headers, priority, order, name, dedupe-key.")
    var manifest: String?

    @Option(help: ArgumentHelp("A rendition to make; repeatable.", valueName: "spec"))
    var variant: [String] = []

    @Option(help: ArgumentHelp("Such as retry-failed or discard-original; repeatable.", valueName: "name"))
    var option: [String] = []

    @Option(
        help: ArgumentHelp(
            "Sent with every request, to the URL's own host only; @FILE reads such lines from a file, so that they stay out of the list of processes; repeatable.",
            valueName: "name: value")
    )
    var header: [String] = []

    @Option(parsing: .unconditional, help: ArgumentHelp("-100 to 100, higher first (0).", valueName: "n"))
    var priority: Int?

    @Option(help: "fifo or lifo (the worker's own).")
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
            "Asked in place of a URL that has failed for good; repeatable, in order.", valueName: "url"))
    var fallback: [String] = []

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
        try await reportingErrors {
            let job = try newJob()
            try await common.withStore(missing: .create) { store in
                if let id = try await store.queue.enqueue(job) {
                    if let count = try await store.reports.progress(job: id)?.notNew, count > 0 {
                        Terminal.error("\(count) URLs were done by earlier jobs, and are left out.")
                    }
                    Terminal.print(json ? #"{"job":\#(id),"urls":\#(job.urls.count + job.items.count)}"# : "\(id)")
                } else {
                    let key = job.dedupeKey ?? ""
                    let running = try await store.queue.unfinishedJob(withDedupeKey: key)
                    Terminal.error(
                        "Job \(running.map(String.init) ?? "?") with the key '\(key)' is not finished; nothing was added."
                    )
                    Terminal.print(json ? #"{"job":\#(running ?? 0),"urls":0}"# : "\(running ?? 0)")
                }
            }
        }
    }

    private func giveColumns(to job: inout NewJob) {
        job.items = job.urls.map { url in
            var item = NewItem(url: url)
            item.meta = meta
            item.fallbacks = fallback
            return item
        }
        job.urls = []
    }

    private func newJob() throws -> NewJob {
        var job = try manifest.map { try Manifest.read($0) } ?? NewJob(urls: [])
        job.urls += urls
        if let file { job.urls += try URLList.read(file) }
        guard !job.urls.isEmpty else {
            throw SettingsError("No URLs: name some, or a file with -f, or standard input with -f -")
        }
        if !variant.isEmpty { job.variants = try VariantList(variant).text }
        if !option.isEmpty { job.options = option.joined(separator: " ") }
        for header in try HeaderLine.all(header) {
            job.headers[header.name] = header.value
        }
        job.priority = priority ?? job.priority
        job.name = name ?? job.name
        job.dedupeKey = dedupeKey ?? job.dedupeKey
        if let order { job.order = try Manifest.order(order) }
        if meta != nil || !fallback.isEmpty { giveColumns(to: &job) }
        try WorkerJobs.check(job)
        return job
    }
}
