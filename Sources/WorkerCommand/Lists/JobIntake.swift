import Core
import FoundationEssentials
import Jobs
import Lists
import PrefetchWorker

/// A job whose URLs were taken from arguments and lists, and checked, and that is not added yet.
struct JobIntake: Sendable {
    /// Without its URLs, which are in ``spool``.
    let job: NewJob
    let spool: EntrySpool
    let lists: ListOptions.ReadLists

    /// How the URLs are read, and where messages go.
    struct Source {
        let common: CommonOptions
        let lists: ListOptions
        /// Members of the JSON object that each URL gets.
        var meta: [ListMember] = []
        /// The manifest of the job's own URLs, and their lines in it.
        var manifest: (path: String, lines: [Int?])?
        /// Whether only mistakes and warnings get lines.
        var isQuiet = false
        /// Gets a line for each list and for each mistake in it.
        var tell: (String) -> Void = { Terminal.error("worker: \($0)") }
    }

    /// - Parameters:
    ///   - files: lists, in files or at addresses.
    ///   - sources: lists that have options of their own.
    /// - Throws: `usage` if a URL is wrong and must not be skipped, or there is none.
    init(_ job: NewJob, files: [String] = [], sources: [ManifestSource] = [], from source: Source) async throws {
        let settings = try source.common.settings()
        let folder = Self.folder(of: try source.common.databasePath(settings))
        let spool = EntrySpool(folder: folder)
        let fetcher = try source.lists.fetcher(source.common, settings, folder: folder)
        let intake = try ListIntake(
            source, spool: spool, fetcher: fetcher, redaction: source.common.redaction())
        do {
            try intake.take(arguments: job.urls, of: source.manifest)
            for list in files { try await intake.take(list: list) }
            for own in sources { try await intake.take(own) }
            if let query = source.lists.query, let from = source.lists.from {
                try intake.take(query: query, from: from)
            }
        } catch {
            await fetcher.close()
            throw error
        }
        await fetcher.close()
        try intake.finish()
        self.spool = spool
        lists = intake.lists
        var job = job
        job.urls = []
        self.job = job
    }

    /// - Returns: nil if an unfinished job has the same key.
    func add(to store: JobStore, fallbacks: [String] = []) async throws -> JobID? {
        try await store.queue.enqueue(job, fallbacks: fallbacks, rows: rows)
    }

    var rows: ListRows { ListRows(rewind: spool.rewind, next: spool.next) }

    /// The database's folder; a PostgreSQL database has none, and its lists are kept with other temporary files.
    private static func folder(of path: String) -> String {
        if PostgresURL.isPostgres(path) { return ProcessInfo.processInfo.environment["TMPDIR"] ?? "/tmp" }
        return folder(ofFile: path)
    }

    private static func folder(ofFile path: String) -> String {
        path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    }
}

extension Manifest {
    /// The job. It gets the name and the key of a batch of this name, unless the manifest states its own.
    ///
    /// - Throws: `usage` if its variants, options or headers are wrong.
    func batch(named name: String) throws -> NewJob {
        var job = job
        job.name = job.name ?? name
        job.dedupeKey = job.dedupeKey ?? "warm:\(name)"
        try WorkerJobs.check(job)
        return job
    }
}
