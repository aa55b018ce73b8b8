import ArgumentParser
import PrefetchWorker

struct RunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Downloads and transforms the queued items.",
        discussion: """
            Without --drain the worker waits for more work until a signal stops it. SIGTERM or Ctrl-C stops it cleanly: it \
            claims nothing more, finishes what is in flight within --grace, and puts the rest back into the queue. A second \
            signal stops it immediately; another worker reclaims its items within two seconds. Several workers may share a \
            database. Every option can also be set in the environment (WORKER_PER_HOST=2) or in the file of --config \
            (per-host: 2); 'worker config show' lists the values in force.

            EXAMPLES:
              worker run --concurrency 6
              worker run --drain --order lifo
              worker run --drain --allow-addresses loopback --allow-addresses 10.0.0.0/8

            EXIT CODES: 0 all well, 2 some items failed, 64 usage, 69 nothing could be reached or no sandbox where one is \
            required, 70 internal error, 73 cannot create, 74 I/O error or damaged database, 75 try again later: the disk is \
            full, or --drain was stopped before all was done.
            """,
    )

    @OptionGroup(title: "MOST USED") var draining: DrainOption
    @OptionGroup var worker: WorkerOptions

    func run() async throws {
        try await reportingErrors {
            let summary = try await worker.supervised(drains: draining.drain).run()
            try RunSummary(summary, drained: draining.drain).report(json: worker.options.json)
        }
    }
}

struct DrainOption: ParsableArguments {
    @Flag(help: "End when no work is left, delayed retries included.") var drain = false
}
