import ArgumentParser
import Core
import Jobs
import PrefetchWorker

struct PruneCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "prune",
        abstract: "Removes jobs that ended long ago, with their results.",
        discussion: """
            What is cached stays, and `worker get` finds it as before. A few hundred rows at a time, beside running workers. \
            `worker run --keep-jobs 30d` does it by itself.

            EXAMPLES:
              worker prune --older-than 30d
            """,
    )
    private static let olderThan = Setting.time("older-than", nil, "How long ago a job must have ended.")

    @OptionGroup var common: CommonOptions
    @Option(
        name: .customLong(Self.olderThan.name), help: ArgumentHelp(Self.olderThan.help, valueName: "time"),
        transform: { try Self.olderThan.read($0) })
    var age: Int64
    @Flag(help: "Print JSON.") var json = false

    func run() async throws {
        try await reportingErrors {
            let pruned = try await common.withStore { store in
                let pruned = try await store.maintenance.prune(endedBefore: store.database.cacheTime() - age)
                try await store.maintenance.checkpoint(threshold: 0)
                return pruned
            }
            if json { return Terminal.print(try Output.json(pruned)) }
            Terminal.print(
                "\(pruned.jobs) jobs with \(pruned.items) items removed, \(pruned.sources) sources forgotten")
        }
    }
}
