import ArgumentParser
import Jobs

struct WaitCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "wait",
        abstract: "Waits until jobs have ended.",
        discussion: """
            It exits with 0 when every item of every job is done, with 2 when an item has failed or an item or a job was \
            cancelled, and with 75 when --timeout is over. A worker must run meanwhile; this command starts none.

            EXAMPLES:
              worker wait 7
              worker wait 7 8 --timeout 10m && deploy
              worker wait "$(worker enqueue -f urls.txt)"
            """,
    )

    @OptionGroup var common: CommonOptions

    @Argument(help: "The jobs.", transform: { try JobNumber.read($0) })
    var jobs: [Int64]

    @Option(Setting.time("timeout", nil, "How long to wait at most; for ever without it."))
    var timeout: Int64?

    func run() async throws {
        try await reportingErrors {
            try await common.readingStore { store in
                let start = ContinuousClock.now
                while true {
                    let progress = try await progress(store)
                    let open = progress.filter(\.state.isOpen)
                    if open.isEmpty { return try tell(progress) }
                    if let timeout, .now - start >= .milliseconds(timeout) {
                        open.forEach(Self.show)
                        Terminal.error("worker: \(open.count) of \(jobs.count) jobs have not ended within --timeout.")
                        throw ExitCode.temporary
                    }
                    try await Task.sleep(for: .milliseconds(min(200, timeout ?? 200)))
                }
            }
        }
    }

    /// - Throws: `notFound` if one of the jobs does not exist.
    private func progress(_ store: JobStore) async throws -> [JobProgress] {
        var found: [JobProgress] = []
        for job in jobs {
            guard let progress = try await store.reports.progress(job: job) else {
                throw JobsError(.notFound, "There is no job \(job). List the jobs with: worker status")
            }
            found.append(progress)
        }
        return found
    }

    private func tell(_ jobs: [JobProgress]) throws {
        jobs.forEach(Self.show)
        if jobs.contains(where: { $0.state != .finished || $0.failed + $0.blacklisted + $0.cancelled > 0 }) {
            throw ExitCode.someFailed
        }
    }

    private static func show(_ job: JobProgress) {
        Terminal.print(
            "job \(job.job): \(job.state.rawValue), \(job.ended) of \(job.total) ended, \(job.failed + job.blacklisted) failed"
        )
    }
}
