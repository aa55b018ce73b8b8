import ArgumentParser
import PrefetchWorker

struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Checks libraries, database, cache, helper processes and their sandbox.",
        discussion: """
            Exit code 0 when a worker can run (warnings included), 70 when something would stop it.

            EXAMPLES:
              worker doctor
              worker doctor --json
            """,
    )

    @OptionGroup var common: CommonOptions
    @Flag(help: "Print JSON.") var json = false

    func run() async throws {
        try await reportingErrors {
            let settings = try common.settings()
            let doctor = try Doctor(
                database: common.databasePath(settings), cache: common.cacheLocation(settings),
                helpers: .installed(count: 1))
            let findings = await doctor.examine()
            if json {
                Terminal.print(try Output.json(findings))
            } else {
                for finding in findings {
                    Terminal.print(Terminal.safe("\(finding.verdict.rawValue): \(finding.part): \(finding.detail)"))
                }
            }
            if findings.contains(where: { $0.verdict == .failure }) { throw ExitCode.software }
        }
    }
}
