import ArgumentParser
import Jobs

struct ReorderCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reorder",
        abstract: "Changes a job's priority, or the order of its items.",
        discussion: """
            Within a second this also applies to items that a worker has claimed and that wait for their download. Downloads \
            that have begun go on. Items with a priority of their own keep it.

            EXAMPLES:
              worker reorder 7 --priority 50
              worker reorder 7 --order lifo
            """,
    )
    @OptionGroup var common: CommonOptions
    @Argument(help: "The job.", transform: { try JobNumber.read($0) }) var job: Int64
    @Option(Setting.whole("priority", nil, in: -100...100, "-100 to 100, higher first.")) var priority: Int?
    @Option(help: "fifo or lifo, within a priority.") var order: String?

    func validate() throws {
        guard priority != nil || order != nil else { throw ValidationError("Give --priority, --order, or both.") }
    }

    func run() async throws {
        try await reportingErrors {
            let order = try order.map(Manifest.order)
            try await common.withStore { store in
                try await store.control.reorder(job: job, priority: priority, order: order)
                guard let progress = try await store.reports.progress(job: job) else { return }
                Terminal.print("job \(job): \(progress.state.rawValue), priority \(progress.priority)")
            }
        }
    }
}
