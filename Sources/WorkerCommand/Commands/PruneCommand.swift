import ArgumentParser
import Core
import Jobs
import PrefetchWorker

struct PruneCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "prune",
        abstract: "Removes jobs that ended long ago, with their results.",
        discussion: """
            It also removes entries of the blacklist that expired before that time. Cached files stay, and `worker get` finds \
            them as before. The command removes a few hundred rows at a time, so workers may run meanwhile. \
            `worker run --keep-jobs 30d` does the same while it runs.

            EXAMPLES:
              worker prune --older-than 30d
              worker prune --older-than 30d --dry-run
              worker prune --older-than 30d --yes
            """,
    )
    private static let olderThan = Setting.time("older-than", nil, "How long ago a job must have ended.")

    @OptionGroup var common: CommonOptions
    @Option(
        name: .customLong(Self.olderThan.name), help: ArgumentHelp(Self.olderThan.help, valueName: "time"),
        transform: { try Self.olderThan.read($0) })
    var age: Int64
    @OptionGroup var confirmation: Confirmation
    @Flag(help: "Print JSON.") var json = false

    func run() async throws {
        try await reportingErrors {
            let pruned = try await common.withStore { store -> Maintenance.Pruned? in
                let time = try await store.database.cacheTime() - age
                let plan = try await store.maintenance.prunable(endedBefore: time)
                let jobs =
                    Output.count(plan.jobs, "job") + " with " + Output.count(plan.items, "item")
                    + (plan.jobs == 1 ? " is" : " are")
                // Without a job to remove there is nothing to confirm.
                if plan.jobs > 0 || confirmation.dryRun,
                    try !confirmation.allows("\(jobs) removed, with their results.")
                {
                    return nil
                }
                let pruned = try await store.maintenance.prune(endedBefore: time)
                try await store.maintenance.checkpoint(threshold: 0)
                return pruned
            }
            guard let pruned else { return }
            if json { return Terminal.print(try Output.json(pruned)) }
            Terminal.print(
                "\(Output.count(pruned.jobs, "job")) with \(Output.count(pruned.items, "item")) removed, "
                    + "\(Output.count(pruned.sources, "source")) forgotten")
        }
    }
}
