import ArgumentParser
import Core
import Jobs

struct ResultsCommand: AsyncParsableCommand {
    enum Format: String, ExpressibleByArgument, CaseIterable { case table, jsonl, csv }

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
            """,
    )

    @OptionGroup var common: CommonOptions

    @Argument(help: "The job.")
    var job: Int64

    @Flag(help: "Show URLs as they were enqueued, with user name, password and signatures.")
    var showCredentials = false

    @Option(help: "table, jsonl or csv.")
    var format = Format.table

    func run() async throws {
        try await reportingErrors {
            try await common.readingStore { store in
                guard try await store.reports.progress(job: job) != nil else {
                    throw JobsError(.notFound, "There is no job \(job). List the jobs with: worker status")
                }
                let redaction = try common.redaction()
                if format == .csv { Terminal.print(Output.csv(ResultRow.columns.map(\.name))) }
                var last: Int64 = 0
                // Reads pages, so that a job of millions of items needs no more memory than one of ten.
                while true {
                    let rows = try await store.reports.results(job: job, after: last, limit: 500)
                    guard let end = rows.last?.item else { return }
                    try show(rows.map { shown($0, redaction) })
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

    private func show(_ rows: [ResultRow]) throws {
        switch format {
        case .jsonl:
            for row in rows { Terminal.print(JSONText.adding("meta", row.meta, to: try Output.json(row))) }
        case .csv:
            for row in rows { Terminal.print(Output.csv(ResultRow.columns.map { $0.text(row) })) }
        case .table:
            let cells = rows.map { row in
                let size = row.width.flatMap { width in row.height.map { "\(width)x\($0)" } } ?? ""
                let what = row.path ?? [row.failure, row.message].compactMap { $0 }.joined(separator: ": ")
                return [
                    row.cached ? "cached" : row.state.rawValue, row.variant ?? "", row.format ?? "", size,
                    row.size.map(Output.bytes) ?? "", Terminal.safe(row.url), Terminal.safe(what),
                ]
            }
            let header = ["state", "variant", "format", "pixels", "size", "url", "path or reason"]
            Output.table(header, cells, right: [3, 4]).forEach(Terminal.print)
        }
    }
}
