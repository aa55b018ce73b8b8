import ArgumentParser
import ContentCache
import Core
import Jobs
import Logging
import PrefetchWorker
import SystemPackage

struct ImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Stores the files of a folder in the cache, as the sources of URLs.",
        discussion: """
            Jobs then find the pictures in the cache and make no request. The files stay as they are: the cache gets copies, \
            which share the disk's blocks where the file system can do that. Each file is checked like a download: its \
            signature, the limits, and in confined processes all of its pixels. A file that is refused is reported on standard \
            error and does not stop the others.

            --url-template makes each URL from the file's path in the folder: {path}, {folder}, {name}, {stem} and \
            {extension} stand for the path or a part of it, percent-encoded. --list names the files instead: each line has a path in \
            the folder and a URL, as CSV, with a tab between them, or as a JSON object with "path" and "url".

            Files that the cache has already, under the same URL and with the same bytes, are skipped; so an import that was \
            stopped goes on when it is run again. Symbolic links are not followed. Exit code 2 when some files were refused, \
            75 when the disk or the cache is full, 130 or 143 when SIGINT or SIGTERM has stopped it.

            EXAMPLES:
              worker import pictures --url-template 'https://shop.example/img/{path}'
              worker import pictures --url-template 'https://shop.example/get?file={stem}' --match '*.jpg' --dry-run
              worker import pictures --list files.csv
              make-list | worker import pictures --list - --limit 10000 --json
            """,
    )
    @OptionGroup var common: CommonOptions
    @Argument(help: "The folder of the files.") var folder: String
    @Option(help: ArgumentHelp("A URL with placeholders.", valueName: "url")) var urlTemplate: String?
    @Option(help: ArgumentHelp("Lines of paths and URLs; - for standard input.", valueName: "file")) var list: String?
    @Option(
        help: ArgumentHelp(
            "Only files whose path in the folder matches this pattern; * and ? stand for any characters; repeatable.",
            valueName: "pattern"))
    var match: [String] = []
    @Option(
        Setting.whole(
            "limit", nil, in: 1...1_000_000_000, "Store this many at most; skipped and refused files do not count."))
    var limit: Int?
    @Option(RunSettings.transforms) var transforms: Int?
    @Flag(help: "Check the files, list them with their URLs, and store nothing.") var dryRun = false
    @Flag(help: "Print the summary as JSON.") var json = false
    @Flag(name: .shortAndLong, help: "No progress.") var quiet = false
    @OptionGroup var writer: WriterOptions

    func validate() throws {
        guard (urlTemplate == nil) != (list == nil) else {
            throw ValidationError("Give either --url-template or --list.")
        }
        guard list == nil || match.isEmpty else { throw ValidationError("--match goes with --url-template.") }
    }

    func run() async throws {
        try await reportingErrors {
            if let list {
                let file = try open(list)
                try await store(try ListedFiles(folder, list: file))
                if list != "-" { try file.close() }
            } else {
                try await store(try FolderFiles(folder, template: URLTemplate(urlTemplate ?? ""), matching: match))
            }
        }
    }

    private func open(_ list: String) throws -> FileDescriptor {
        if list == "-" { return .standardInput }
        do {
            return try FileDescriptor.open(FilePath(list), .readOnly, options: .closeOnExec)
        } catch {
            throw SettingsError("The list \(list) can't be read: \(error)")
        }
    }

    private func store<Files: AsyncSequence>(_ files: Files) async throws where Files.Element == NewPicture {
        let line = Terminal.errorIsTerminal && !quiet ? LiveDisplay() : nil
        let logger = Logger(label: "worker") { _ in ConsoleLog(logLevel: .notice, format: .usual(), line: line) }
        let settings = try common.settings()
        let configuration = try writer.configuration(
            common, helpers: settings.optional(RunSettings.transforms, transforms))
        let redaction = try common.redaction()
        var drawn = ContinuousClock.now
        let (counts, interruption) = try await stoppable(patience: .seconds(10)) { stop in
            defer { line?.finish() }
            return try await common.withCache { store, cache in
                try await CacheWriter.run(configuration, store: store, cache: cache, isTrial: dryRun, logger: logger) {
                    try await $0.put(all: files, limit: limit ?? .max, isTrial: dryRun, stop: stop) {
                        file, result, counts in
                        tell(file, result, line, redaction)
                        guard let line, .now - drawn > .milliseconds(200) else { return }
                        line.draw(Self.text(counts, dryRun: dryRun))
                        drawn = .now
                    }
                }
            }
        }
        Terminal.print(json ? try Output.json(counts) : Self.text(counts, dryRun: dryRun))
        if let interruption {
            Terminal.error("worker: Stopped. Run the same command again to continue; it skips stored pictures.")
            throw interruption
        }
        if counts.failed > 0 { throw ExitCode.someFailed }
    }

    private func tell(
        _ file: NewPicture, _ result: Result<CachedPicture, Failure>, _ line: LiveDisplay?, _ redaction: Redaction,
    ) {
        let name = Terminal.safe(file.name)
        switch result {
        case .failure(let failure):
            let text = "\(name): \(failure.shown)"
            if let line { line.log(text) } else { Terminal.error(text) }
        case .success(let picture):
            guard dryRun, !json else { return }
            Terminal.print("\(picture.change.rawValue)  \(name)  \(Terminal.safe(redaction.shown(picture.url)))")
        }
    }

    private static func text(_ counts: CacheWriter.Counts, dryRun: Bool) -> String {
        "\(counts.stored) stored, \(counts.replaced) replaced, \(counts.cached) already cached, \(counts.failed) failed, "
            + Output.bytes(counts.bytes) + (dryRun ? " (nothing was changed)" : "")
    }
}
