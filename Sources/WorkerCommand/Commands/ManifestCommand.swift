import ArgumentParser
import Core
import Jobs
import Lists
import PrefetchWorker
import Variants

struct ManifestCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "manifest",
        abstract: "Checks manifests, the files that describe jobs.",
        discussion: """
            EXAMPLES:
              worker manifest check jobs/*.yaml
              worker manifest check --offline jobs/shop.yaml
            """,
        subcommands: [Check.self],
    )

    struct Check: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "check",
            abstract: "Reads manifests and their lists, and describes the job of each; it enqueues nothing.",
            discussion: """
                The command names the file, the line and the key of each mistake. It reads the lists, and fetches \
                those on the web. With --offline it reads and fetches no list. No database is needed.

                EXAMPLES:
                  worker manifest check catalogue.yaml
                  worker manifest check jobs/*.yaml --offline

                EXIT CODES: 0 all can be enqueued, 64 at least one cannot.
                """,
        )
        @OptionGroup var common: CommonOptions
        @Argument(help: "Manifests: YAML or JSON; see docs/reference/manifests.md.") var manifests: [String]
        @Flag(help: "Do not read the lists.") var offline = false
        @Option(RunSettings.allowAddresses) var allowAddresses: [String] = []
        @Flag(help: "Print JSON.") var json = false

        func run() async throws {
            try await reportingErrors {
                var reports: [Report] = []
                for path in manifests { reports.append(await check(path)) }
                if json {
                    Terminal.print(try Output.json(reports))
                } else {
                    reports.forEach { report in
                        guard let error = report.error else { return Terminal.print(report.line) }
                        Terminal.error("worker: \(Terminal.safe(error))")
                    }
                }
                if reports.contains(where: { $0.error != nil }) { throw ExitCode.usage }
            }
        }

        private func check(_ path: String) async -> Report {
            var report = Report(manifest: path)
            do {
                let manifest = try Manifest.read(path)
                let job = try manifest.batch(named: Manifest.name(ofFile: path))
                report.name = job.name
                let variants = Recipe.split(job.variants)
                report.variants =
                    try VariantSpec.parseList(variants.variants).map(\.name) + variants.recipes.map { "recipe:\($0)" }
                report.urls = job.urls.count
                report.sources = manifest.sources.count
                if let schedule = manifest.schedule, let cron = schedule.cron {
                    guard let due = cron.next(after: DatabaseGate.wallClock(), in: schedule.zone) else {
                        throw SettingsError("\(path): the schedule '\(cron)' is never due.")
                    }
                    report.nextDue = schedule.zone.text(ofMilliseconds: due.milliseconds)
                }
                guard !job.urls.isEmpty || !manifest.sources.isEmpty else {
                    throw SettingsError("\(path) has neither urls nor sources.")
                }
                if offline, job.urls.isEmpty { return report }
                var lists = try ListOptions.parse([])
                lists.allowAddresses = allowAddresses
                var source = JobIntake.Source(common: common, lists: lists)
                source.manifest = (path, manifest.urlLines)
                let intake = try await JobIntake(job, sources: offline ? [] : manifest.sources, from: source)
                if !offline { report.count(intake.spool.count) }
            } catch {
                report.error = WorkerError(ofCommand: error).message
                // The mistakes in its lists were printed before, so the path is added only if the message lacks it.
                if report.error?.contains(path) == false { report.error = "\(path): \(report.error ?? "")" }
            }
            return report
        }
    }

    private struct Report: Encodable {
        let manifest: String
        var name: String?
        var variants: [String] = []
        var sources = 0
        var urls = 0
        var nextDue: String?
        var error: String?
        private var listsWereRead = false

        enum CodingKeys: String, CodingKey { case manifest, name, variants, sources, urls, nextDue, error }

        init(manifest: String) { self.manifest = manifest }

        /// How many URLs the lists have, with those of the manifest.
        mutating func count(_ urls: Int) {
            self.urls = urls
            listsWereRead = true
        }

        var line: String {
            var parts = urls > 0 || listsWereRead ? [ListIntake.urls(urls)] : []
            if sources > 0 {
                parts.append(
                    "\(listsWereRead ? "from " : "")\(Output.count(sources, "list"))\(listsWereRead ? "" : " not read")"
                )
            }
            parts.append(variants.isEmpty ? "no variants" : "variants \(variants.joined(separator: ", "))")
            if let nextDue { parts.append("next due at \(nextDue)") }
            return "\(Terminal.safe(manifest)): " + parts.joined(separator: ", ")
        }
    }
}
