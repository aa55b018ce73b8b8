import ArgumentParser
import Core
import Jobs
import PrefetchWorker

struct WarmCommand: AsyncParsableCommand, WorkerOptions {
    static let configuration = CommandConfiguration(
        commandName: "warm",
        abstract: "Enqueues batches and works until they have ended, from cron or a timer.",
        discussion: """
            Enqueues each batch unless its job of an earlier run is unfinished, works until these jobs have ended, and prints \
            one line for each. A batch is a manifest (.yaml, .yml or .json) or a list of URLs as 'worker enqueue -f' reads it; \
            lines without a usable URL are listed and left out. The command also works on other jobs of the database, by their \
            priorities, but does not wait for them.

            The database must exist: make it once with 'worker init'. If another 'worker warm' works on the same \
            batch, the command says so, adds nothing and ends with 75.

            EXAMPLES:
              worker warm jobs/catalogue.yaml
              worker warm front-page.yaml avatars.yaml --concurrency 12
              17 3 * * *  cd /srv/images && worker warm catalogue.yaml

            EXIT CODES: those of 'worker run --drain': 0 all well, 2 some items failed, 64 usage, 75 try again later.
            """,
    )

    @Argument(help: ArgumentHelp("Manifests, or lists of URLs.", valueName: "batch"))
    var batches: [String]

    @OptionGroup(title: "DATABASE AND CACHE") var common: CommonOptions
    @OptionGroup(title: "MOST USED") var options: RunOptions
    @OptionGroup(title: "MOST USED") var cacheSize: CacheSizeOptions
    @OptionGroup(title: "ADVANCED: HOSTS") var hosts: HostOptions
    @OptionGroup(title: "ADVANCED: DOWNLOADS") var downloads: DownloadOptions
    @OptionGroup(title: "ADVANCED: PICTURES") var pictures: PictureOptions
    @OptionGroup(title: "ADVANCED: CACHE") var cache: CacheOptions
    @OptionGroup(title: "ADVANCED: UPKEEP") var upkeep: UpkeepOptions
    @OptionGroup(title: "ADVANCED: PROGRAMS AND FOLDERS") var programs: ProgramOptions
    @OptionGroup(title: "ADVANCED: LOG") var log: LogOptions

    func run() async throws {
        try await reportingErrors {
            var lists = try ListOptions.parse([])
            lists.allowAddresses = options.allowAddresses
            // A line without a usable URL is skipped, so that all other URLs are fetched.
            lists.skipInvalid = true
            var batches: [WarmBatch] = []
            for path in self.batches {
                batches.append(
                    try await WarmBatch(
                        path, from: JobIntake.Source(common: common, lists: lists, isQuiet: options.quiet)))
            }
            let run = try supervised(drains: true)
            try await common.withStore { store in
                for batch in batches where !store.queue.hold(batch: batch.key) {
                    Terminal.error("worker: \(batch.name) is being warmed by another program; nothing was added.")
                    throw ExitCode.temporary
                }
                var jobs: [(batch: WarmBatch, job: JobID)] = []
                for batch in batches { jobs.append((batch, try await batch.enqueue(in: store))) }
                let numbers = Set(jobs.map(\.job))
                let summary = try await run.run { store in
                    try await store.reports.summary(jobs: numbers).allSatisfy { !$0.state.isOpen }
                }.summary
                try await report(jobs, in: store, summary)
            }
        }
    }

    private func report(
        _ jobs: [(batch: WarmBatch, job: JobID)], in store: JobStore, _ summary: Worker.Summary,
    ) async throws {
        var code = ExitCode.success
        var reports: [WarmReport] = []
        for (batch, job) in jobs {
            guard let progress = try await store.reports.progress(job: job) else { continue }
            let report = WarmReport(
                batch.name, progress, try await FailureCounts(of: [job], in: store))
            reports.append(report)
            if progress.state.isOpen { code = .temporary }
            if code == .success, report.hasFailures { code = .someFailed }
        }
        if case .disk(let reason) = summary.end {
            Terminal.error("worker: \(Terminal.safe("\(reason)"))")
            code = .temporary
        }
        if options.json {
            Terminal.print(try Output.json(reports))
        } else {
            reports.forEach { Terminal.print($0.line) }
        }
        guard code == .success else { throw code }
    }
}

/// A file that describes a batch, and the key that its job has in the queue.
struct WarmBatch {
    /// The file's name without folder and ending.
    let name: String
    private let intake: JobIntake

    /// - Parameter path: a manifest, or a list of URLs of any kind that `worker enqueue -f` reads.
    init(_ path: String, from source: JobIntake.Source) async throws {
        name = Manifest.name(ofFile: path)
        intake =
            try await Self.isManifest(path)
            ? Self.intake(ofManifest: path, named: name, from: source)
            : Self.intake(ofList: path, named: name, from: source)
    }

    private static func isManifest(_ path: String) -> Bool {
        [".yaml", ".yml", ".json"].contains(where: path.lowercased().hasSuffix)
    }

    private static func intake(
        ofManifest path: String, named name: String, from source: JobIntake.Source,
    ) async throws -> JobIntake {
        let manifest = try Manifest.read(path)
        var source = source
        source.manifest = (path, manifest.urlLines)
        return try await JobIntake(
            try manifest.batch(named: name), files: [], sources: manifest.sources, from: source)
    }

    private static func intake(
        ofList path: String, named name: String, from source: JobIntake.Source,
    ) async throws -> JobIntake {
        let job = try Manifest(parsing: "{}", path).batch(named: name)
        return try await JobIntake(job, files: [path], sources: [], from: source)
    }

    var key: String { intake.job.dedupeKey ?? name }

    /// - Returns: the new job, or the unfinished one of an earlier run.
    func enqueue(in store: JobStore) async throws -> JobID {
        if let id = try await intake.add(to: store) { return id }
        if let id = try await store.queue.unfinishedJob(withDedupeKey: key) { return id }
        // The unfinished job has ended between the two calls.
        guard let id = try await intake.add(to: store) else {
            throw WorkerError(.tryLater, "Another program keeps adding jobs with the key '\(key)'.")
        }
        return id
    }
}

/// The result of a batch, printed as one line, as for cron's mail.
struct WarmReport: Encodable {
    let batch: String
    let job: JobProgress
    let failures: [FailureCounts.Count]
    private let failureText: String

    enum CodingKeys: String, CodingKey { case batch, job, failures }

    init(_ batch: String, _ job: JobProgress, _ failures: FailureCounts) {
        self.batch = batch
        self.job = job
        self.failures = failures.counts
        failureText = failures.text
    }

    var hasFailures: Bool { job.failed + job.blacklisted + job.cancelled > 0 || job.state == .failed }

    var line: String {
        var parts = ["job \(job.job): \(job.done) done", "\(job.cached) cached", "\(job.failed) failed"]
        if job.blacklisted > 0 { parts.append("\(job.blacklisted) blacklisted") }
        if job.cancelled > 0 { parts.append("\(job.cancelled) cancelled") }
        parts.append("\(Output.bytes(job.bytes)) downloaded")
        var line = "warm \(Terminal.safe(batch)): " + parts.joined(separator: ", ")
        if job.state.isOpen {
            line += "; \(job.total - job.ended) left, it is \(job.state.rawValue): run it again to go on"
        }
        if let error = job.error { line += "; \(Terminal.safe(error))" }
        if job.hasFailures { line += "; \(failureText); see: worker results \(job.job)" }
        return line
    }
}
