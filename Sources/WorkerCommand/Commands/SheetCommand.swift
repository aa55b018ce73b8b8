import ArgumentParser
import Core
import FoundationEssentials
import Glibc
import Jobs
import PrefetchWorker
import Variants

struct SheetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sheet",
        abstract: "Draws a job's pictures side by side into one file.",
        discussion: """
            The file's ending is its format: .jpg, .png, .webp, .avif, .jxl, .tiff or .gif. A tile shows the smallest \
            file of a picture that fills it, or the variant that --variant names. Pictures are decoded in confined processes, as a \
            worker's are.

            EXAMPLES:
              worker sheet 7 sheet.jpg
              worker sheet 7 sheet.png --variant thumb --across 8 --tile 200 --limit 64

            EXIT CODES: 0 all is drawn, 1 the job has no pictures, 2 some are no longer in the cache or can't be drawn.
            """,
    )

    @OptionGroup var common: CommonOptions
    @Argument(help: "The job.", transform: { try JobNumber.read($0) }) var job: Int64
    @Argument(help: "The file, which is replaced.") var file: String
    @Option(help: ArgumentHelp("Draw this variant, or original.", valueName: "name")) var variant: String?
    @Option(Setting.whole("across", 10, in: ContactSheet.Layout.acrossRange, "Pictures in a row.")) var across: Int?
    @Option(Setting.whole("tile", 160, in: ContactSheet.Layout.tileRange, "Width and height of each, in pixels."))
    var tile: Int?
    @Option(Setting.whole("limit", 100, in: 1...1_024, "Maximum number of pictures; a sheet has at most 32 rows."))
    var limit: Int?
    @Flag(help: "Print JSON.") var json = false
    @OptionGroup(title: "ADVANCED: PICTURES") var pictures: PictureOptions

    func run() async throws {
        try await reportingErrors {
            let format = try format()
            var layout = ContactSheet.Layout()
            layout.across = across ?? layout.across
            layout.tile = tile ?? layout.tile
            layout.limit = min(limit ?? layout.limit, layout.across * ContactSheet.Layout.maxRows)
            layout.variant = variant
            let settings = try common.settings()
            var configuration = try common.configuration(
                settings, transforms: max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))))
            configuration.helpers = .installed(count: configuration.helpers.count)
            try pictures.apply(to: &configuration, settings)
            let drawn = try await common.readingCache { [layout, configuration] store, cache in
                guard let progress = try await store.reports.progress(job: job) else {
                    throw JobsError(.notFound, "There is no job \(job). List the jobs with: worker status")
                }
                try await store.check(variants: variant.map { [$0] } ?? [], job: job)
                let sheet = ContactSheet(
                    store: store, cache: cache, layout: layout, helpers: configuration.helpers,
                    limits: configuration.images, logger: CacheCommand.logger)
                return try await sheet.draw(job: job, as: format).map { ($0.image, $0.counts, progress) }
            }
            guard let (image, counts, progress) = drawn else {
                Terminal.error("worker: Job \(job) has no pictures that can be drawn; nothing was written.")
                throw ExitCode.notFound
            }
            do {
                try OutputFile.replace(file, image)
            } catch {
                throw WorkerError(.cannotCreate, "The file \(file) can't be written: \(error)")
            }
            try report(counts, of: progress)
        }
    }

    private func report(_ counts: ContactSheet.Counts, of progress: JobProgress) throws {
        if json {
            Terminal.print(try Output.json(counts))
        } else {
            Terminal.print("\(counts.drawn) of \(Output.count(progress.done + progress.cached, "picture"))")
        }
        if counts.missing > 0 {
            Terminal.error(
                "worker: \(Output.count(counts.missing, "picture")) can't be found in the cache any more, or can't be drawn."
            )
            throw ExitCode.someFailed
        }
    }

    private func format() throws(SettingsError) -> String {
        let formats = VariantReference.formats
        let ending = (file.split(separator: ".").last.map(String.init) ?? "").lowercased()
        let format = ["jpg": "jpeg", "tif": "tiff"][ending] ?? ending
        guard file.contains("."), formats.contains(format), format != "auto" else {
            let known = formats.filter { $0 != "auto" }.joined(separator: ", ")
            throw SettingsError(
                "The file's ending must be a format's: jpg, \(known), not '\(file.suffix(40))'."
                    + NearestWord.question(ending, among: ["jpg", "tif"] + formats.filter { $0 != "auto" }))
        }
        return format
    }
}
