import ArgumentParser
import Core
import Jobs
import PrefetchWorker

struct ExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Writes a job's files into a new folder.",
        discussion: """
            Without --tar the folder has the files under the names of --name, index.jsonl and index.csv with a line for each \
            file, and with --html a page of thumbnails. With --tar it has tar files in the layout of img2dataset, which the \
            Python package webdataset reads: for each picture its files, a .json with its result and its meta, and a .txt \
            with the member 'caption', 'text' or 'alt' of its meta.

            Every file is verified while it is read. The command writes to FOLDER.partial and renames it at the end; if \
            you stop it, it removes FOLDER.partial. By default each file is a hard link to the cache's file; it takes no space \
            and stays when the cache evicts its file.

            --name is made of \(placeholders) and {meta.NAME}. No value leads out of the folder; a name that is taken gets a \
            number.

            EXAMPLES:
              worker export 7 pictures
              worker export 7 site --variant thumb --name '{host}/{folder}/{stem}.{extension}' --by copy --html
              worker export 7 dataset --variant original --tar --per-shard 1000

            EXIT CODES: 0 all is exported, 2 some files are no longer in the cache, 73 the folder is not empty, 74 and 75 the \
            disk fails or is full, 130 and 143 stopped by a signal.
            """,
    )

    private static let placeholders = ExportNames.Placeholder.allCases.map { "{\($0.rawValue)}" }.joined(
        separator: ", ")

    @OptionGroup var common: CommonOptions
    @Argument(help: "The job.", transform: { try JobNumber.read($0) }) var job: Int64
    @Argument(help: "A new folder.") var folder: String
    @Option(help: ArgumentHelp("Only this variant, or original; repeatable.", valueName: "name"))
    var variant: [String] = []
    @Option(help: ArgumentHelp("The names of the files (\(ExportNames.usual)).", valueName: "template"))
    var name: String?
    @Option(
        Setting<ExportMethod>.choice(
            "by", .link, "How files are made: link, reflink, copy or symlink.", placeholder: "way"))
    var by: ExportMethod?
    @Flag(help: "Also write index.html with thumbnails.") var html = false
    @Flag(help: "Write tar files instead of a tree.") var tar = false
    @Option(Setting.whole("per-shard", nil, in: 1...10_000, "Pictures in one tar file (10000).")) var perShard: Int?
    @Flag(help: "Print the summary as JSON.") var json = false
    @Flag(name: .shortAndLong, help: "No progress.") var quiet = false

    func validate() throws {
        guard !tar || (name == nil && by == nil && !html) else {
            throw ValidationError("--name, --by and --html are for a tree; leave them out, or leave out --tar.")
        }
        guard tar || perShard == nil else { throw ValidationError("--per-shard goes with --tar.") }
    }

    func run() async throws {
        try await reportingErrors {
            let layout: JobExport.Layout =
                tar
                ? .shards(pictures: perShard ?? 10_000)
                : .tree(try ExportNames(name ?? ExportNames.usual), by ?? .link, hasPages: html)
            let line = Terminal.errorIsTerminal && !quiet ? LiveDisplay() : nil
            var drawn = ContinuousClock.now
            let (counts, interruption) = try await stoppable(patience: .seconds(10)) { stop in
                defer { line?.finish() }
                return try await common.readingCache { store, cache in
                    guard let progress = try await store.reports.progress(job: job) else {
                        throw JobsError(.notFound, "There is no job \(job). List the jobs with: worker status")
                    }
                    try await store.check(variants: variant, job: job)
                    return try await JobExport(store: store, cache: cache, layout: layout, variants: Set(variant))
                        .run(job: job, to: folder, stop: stop) { counts in
                            guard let line, .now - drawn > .milliseconds(200) else { return }
                            line.draw(
                                "\(counts.pictures)/\(progress.done + progress.cached)  \(Output.bytes(counts.bytes))")
                            drawn = .now
                        }
                }
            }
            if let interruption {
                Terminal.error("worker: Stopped; nothing was exported.")
                throw interruption
            }
            if let counts { try report(counts) }
        }
    }

    private func report(_ counts: JobExport.Counts) throws {
        if json {
            Terminal.print(try Output.json(counts))
        } else {
            let shards = tar ? " in \(Output.count(counts.shards, "tar file"))" : ""
            let files = "\(Output.count(counts.files, "file")) of \(Output.count(counts.pictures, "picture"))"
            Terminal.print("\(files)\(shards), \(Output.bytes(counts.bytes))")
        }
        if counts.missing > 0 {
            Terminal.error(
                "worker: \(Output.count(counts.missing, "file")) of the job can't be found in the cache any more. Enqueue the job's URLs again to restore them."
            )
            throw ExitCode.someFailed
        }
    }
}
