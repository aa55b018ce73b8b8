import Core
import Jobs
import Lists

/// The columns that `--columns` names.
struct ResultColumns: Sendable {
    let names: [String]

    static func parse(_ text: String) throws -> ResultColumns {
        let known = ResultRow.columns.map(\.name)
        let names = text.split(separator: ",").map { String($0.filter { $0 != " " }) }
        guard !names.isEmpty else { throw SettingsError("--columns needs names, such as url,path") }
        for name in names where !known.contains(name) {
            throw SettingsError(
                "There is no column '\(name)'.\(NearestWord.question(name, among: known)) The columns are: "
                    + known.joined(separator: ", ") + ".")
        }
        return ResultColumns(names: names)
    }
}

/// Prints the rows of results, page by page.
final class ResultPrinter {
    private let format: ResultsCommand.Format
    private let columns: [(name: String, text: @Sendable (ResultRow) -> String?)]
    private let isChosen: Bool
    private var isFirst = true

    init(_ format: ResultsCommand.Format, _ chosen: ResultColumns?) {
        self.format = format
        isChosen = chosen != nil
        columns =
            chosen.map { chosen in
                chosen.names.compactMap { name in ResultRow.columns.first { $0.name == name } }
            } ?? ResultRow.columns
    }

    func begin() throws {
        if format == .csv { Terminal.print(Output.csv(columns.map(\.name))) }
    }

    func end() {
        if format == .json { Terminal.print(isFirst ? "[]" : "]") }
    }

    func show(_ rows: [ResultRow]) throws {
        switch format {
        case .jsonl: for row in rows { Terminal.print(try json(row)) }
        case .json:
            for row in rows {
                // The comma belongs to the line before, and the last line has none.
                Terminal.print((isFirst ? "[" : ",") + (try json(row)))
                isFirst = false
            }
        case .csv: for row in rows { Terminal.print(Output.csv(columns.map { $0.text(row) })) }
        case .table where rows.isEmpty && !isFirst: break
        case .table where isChosen:
            let cells = rows.map { row in columns.map { Terminal.safe($0.text(row) ?? "") } }
            Output.table(columns.map(\.name), cells).forEach(Terminal.print)
            isFirst = false
        case .table:
            Output.table(Self.header, rows.map(Self.cells), right: [3, 4]).forEach(Terminal.print)
            isFirst = false
        }
    }

    private static let header = ["state", "variant", "format", "pixels", "size", "url", "path or reason"]

    private static func cells(_ row: ResultRow) -> [String] {
        let size = row.width.flatMap { width in row.height.map { "\(width)x\($0)" } } ?? ""
        let what = row.path ?? [row.failure, row.message].compactMap { $0 }.joined(separator: ": ")
        return [
            row.cached ? "cached" : row.state.rawValue, row.variant ?? "", row.format ?? "", size,
            row.size.map(Output.bytes) ?? "", Terminal.safe(row.url), Terminal.safe(what),
        ]
    }

    private func json(_ row: ResultRow) throws -> String {
        let whole = JSONText.adding("meta", row.meta, to: try Output.json(row))
        guard isChosen else { return whole }
        let members = ListMember.members(of: whole) ?? []
        return ListMember.object(columns.compactMap { column in members.first { $0.name == column.name } }) ?? "{}"
    }
}
