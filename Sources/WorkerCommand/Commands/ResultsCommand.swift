import ArgumentParser
import Core
import Jobs

struct ResultsCommand: AsyncParsableCommand {
    enum Format: String, CaseIterable { case table, json, jsonl, csv }

    static let configuration = CommandConfiguration(
        commandName: "results",
        abstract: "Lists a job's results: a line for each file or failure.",
        discussion: """
            Paths are relative to the cache's folder. URLs are shown without user name and password, and on a terminal without \
            the signatures, tokens and keys in their queries.

            EXAMPLES:
              worker results 7
              worker results 7 --format csv > results.csv
              worker results 7 --format jsonl | jq -r 'select(.variant == "thumb") | .path'
              worker results 7 --failed --columns url,class,message
            """,
    )

    @OptionGroup var common: CommonOptions

    @Argument(help: "The job.", transform: { try JobNumber.read($0) })
    var job: Int64

    @Flag(help: "Show URLs as they were enqueued, with user name, password and signatures.")
    var showCredentials = false

    @Option(
        help: "table, json (an array), jsonl (an object on each line) or csv (table).",
        transform: { try Self.format($0) })
    var format: Format?

    @Flag(help: "The same as --format json.") var json = false
    @Flag(help: "Only failures.") var failed = false

    @Option(
        help: ArgumentHelp("Only these columns, in this order.", valueName: "a,b"),
        transform: { try ResultColumns.parse($0) })
    var columns: ResultColumns?

    func validate() throws {
        if json, let format, format != .json { throw ValidationError("Give either --json or --format.") }
    }

    private static func format(_ text: String) throws -> Format {
        let words = Format.allCases.map(\.rawValue)
        guard let format = Format(rawValue: text.lowercased()) else {
            throw SettingsError(
                "There is no format '\(text)'.\(NearestWord.question(text, among: words)) The formats are: "
                    + words.joined(separator: ", ") + ".")
        }
        return format
    }

    func run() async throws {
        let printer = ResultPrinter(json ? .json : format ?? .table, columns)
        try await reportingErrors {
            try await common.readingStore { store in
                guard try await store.reports.progress(job: job) != nil else {
                    throw JobsError(.notFound, "There is no job \(job). List the jobs with: worker status")
                }
                let redaction = try common.redaction()
                try printer.begin()
                var last: Int64 = 0
                // Reads pages, so that a job of millions of items needs no more memory than one of ten.
                while true {
                    let rows = try await store.reports.results(job: job, after: last, limit: 500)
                    guard let end = rows.last?.item else { return printer.end() }
                    let meant = failed ? rows.filter { $0.state == .failed } : rows
                    try printer.show(meant.map { shown($0, redaction) })
                    last = end
                }
            }
        }
    }

    /// Shows a program the URLs as they are, so that it can request them; hides secrets on a terminal, which others may
    /// see.
    private func shown(_ row: ResultRow, _ redaction: Redaction) -> ResultRow {
        if showCredentials { return row }
        return Terminal.outputIsTerminal ? row.hidden(by: redaction) : row.withoutCredentials
    }
}
