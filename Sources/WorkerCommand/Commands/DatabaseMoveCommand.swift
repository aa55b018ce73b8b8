import ArgumentParser
import Jobs

struct DatabaseMoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "move",
        abstract: "Copies a SQLite database into a PostgreSQL database, which several machines can share.",
        discussion: """
            Stop all workers first. The command makes the tables in the PostgreSQL database and copies all jobs, items, results, \
            schedules, recipes, limits and the cache's index. It pauses all jobs in the old file first and changes nothing \
            else there; `worker resume --all` undoes the pause. If it is interrupted, start it again: it continues. Files in a cache folder are copied to a bucket \
            with `worker cache upload`.
            Exit code 0 when all rows were copied, 1 when PostgreSQL refused some (the output says how many).

            EXAMPLES:
              worker db move postgres://worker@db.example.com/worker
              worker db move --db /var/lib/worker/worker.db postgres:///worker --yes
            """,
    )
    @OptionGroup var common: CommonOptions
    @Argument(help: ArgumentHelp("The PostgreSQL database.", valueName: "url")) var target: String
    @OptionGroup var confirmation: Confirmation
    @Flag(help: "Print JSON.") var json = false

    func run() async throws {
        try await reportingErrors {
            let shown = PostgresURL.shown(target)
            guard PostgresURL.isPostgres(target) else {
                throw SettingsError("'\(target)' is no URL of PostgreSQL: it begins with postgres://")
            }
            let path = PostgresURL.shown(try common.databasePath(common.settings()))
            guard try confirmation.allows("All of \(path) is copied to \(shown), and the jobs in \(path) are paused.")
            else {
                return
            }
            let report = try await common.withStore { source in
                let target = try JobStore(path: target)
                let report = try await source.maintenance.move(to: target.database) { report in
                    if Terminal.errorIsTerminal { Terminal.errorRaw("\r\(report.rows) rows copied ") }
                }
                try await target.close()
                return report
            }
            if Terminal.errorIsTerminal { Terminal.errorRaw("\n") }
            if json {
                Terminal.print(try Output.json(report))
            } else {
                Terminal.print(
                    "\(Output.count(report.jobs, "job")), \(Output.count(report.items, "item")) and \(Output.count(report.rows - report.refused, "row")) in all are in \(shown)"
                )
            }
            guard report.refused > 0 else { return }
            Terminal.error("worker: \(report.refused) rows were refused; the first: \(report.reason ?? "")")
            throw ExitCode.failure
        }
    }
}
