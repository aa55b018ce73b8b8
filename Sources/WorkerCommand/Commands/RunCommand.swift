import ArgumentParser
import Foundation
import Jobs
import Logging
import PrefetchWorker
import Synchronization

struct RunCommand: AsyncParsableCommand, WorkerOptions {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Downloads and transforms the queued items.",
        discussion: """
            Without --drain the worker waits for more work until a signal stops it. SIGTERM or Ctrl-C stops it cleanly: it \
            claims nothing more, finishes the items in flight within --grace, and puts the others back into the queue. A second \
            signal stops it immediately; another worker reclaims its items within two seconds. Several workers may share a \
            database. Every option except --drain, --json and --quiet can also be set in the environment (WORKER_PER_HOST=2) or in the file of --config \
            (per-host: 2); 'worker config show' lists the values in force.

            EXAMPLES:
              worker run --concurrency 6
              worker run --drain --order lifo
              worker run --drain --allow-addresses loopback --allow-addresses 10.0.0.0/8

            EXIT CODES: 0 all well, 2 some items failed, 64 usage, 69 no host could be reached, or \
            --require-sandbox was given and the sandbox is missing, 70 internal error, 73 cannot create, 74 I/O error or damaged database, 75 try again later: the disk is \
            full, or --drain was stopped before all was done.
            """,
    )

    @OptionGroup(title: "MOST USED") var draining: DrainOption
    @OptionGroup(title: "DATABASE AND CACHE") var common: CommonOptions
    @OptionGroup(title: "MOST USED") var options: RunOptions
    @OptionGroup(title: "MOST USED") var cacheSize: CacheSizeOptions
    @OptionGroup(title: "DASHBOARD AND METRICS") var dashboard: DashboardOptions
    @OptionGroup(title: "ADVANCED: HOSTS") var hosts: HostOptions
    @OptionGroup(title: "ADVANCED: DOWNLOADS") var downloads: DownloadOptions
    @OptionGroup(title: "ADVANCED: PICTURES") var pictures: PictureOptions
    @OptionGroup(title: "ADVANCED: CACHE") var cache: CacheOptions
    @OptionGroup(title: "ADVANCED: UPKEEP") var upkeep: UpkeepOptions
    @OptionGroup(title: "ADVANCED: PROGRAMS AND FOLDERS") var programs: ProgramOptions
    @OptionGroup(title: "ADVANCED: LOG") var log: LogOptions

    func run() async throws {
        try await reportingErrors {
            let report = try await supervised(drains: draining.drain).run(
                beside: try dashboard.service(common, access()))
            try RunSummary(report, drained: draining.drain).report(json: options.json, isQuiet: options.quiet)
        }
    }
}

/// A worker with the log, the progress display, the schedules, the signal handlers and the service manager of `worker
/// run`.
struct SupervisedRun {
    private let worker: Worker
    private let configuration: WorkerConfiguration
    private let line: LiveDisplay?
    private let isQuiet: Bool
    private let logger: Logger
    private let access: ListAccess
    private static let stopping: Logger.Message =
        "Stopping: items in flight are finished, the others stay in the queue. Signal again to stop immediately."

    /// - Parameter line: the progress display below the log; nil without a terminal.
    init(
        _ configuration: WorkerConfiguration, line: LiveDisplay?, isQuiet: Bool, log: ConsoleLog,
        access: ListAccess,
    ) {
        self.line = line
        self.isQuiet = isQuiet
        logger = Logger(label: "worker") { _ in log }
        self.configuration = configuration
        self.access = access
        worker = Worker(configuration, logger: logger)
    }

    /// - Parameters:
    ///   - isOver: asked a few times a second whether the run can stop although other work is left; nil for a run that goes
    ///     on until nothing is left or a signal stops it.
    ///   - service: runs beside the worker until its task is cancelled. The worker starts once the service listens; an
    ///     error of the service stops the run.
    func run(
        until isOver: (@Sendable (JobStore) async throws -> Bool)? = nil,
        beside service: DashboardOptions.Service? = nil,
    ) async throws -> RunReport {
        let begun = RunProgress.seconds()
        let stop = StopSignal()
        // After a stop, writes about schedules and notices may give up; the next run makes them.
        let waiting = configuration.waiting.silent.ending(at: stop) { _ in 1_000 }
        let store = try await JobStore.opening(path: configuration.database, waiting: waiting)
        let manager = ServiceManager(environment: ProcessInfo.processInfo.environment)
        if let manager { stop.whenRequested { manager.stopping() } }
        let keepers = try RunKeepers(configuration, store, access, logger)
        // Schedules that become due later, while the run drains, are left to the next run.
        if configuration.drains, isOver == nil { await keepers.schedules.startAllDue() }
        let result = await withTaskGroup { group in
            group.addTask { _ = await stop.requestAtSignals { logger.notice(Self.stopping) } }
            let fault = Mutex<WorkerError?>(nil)
            if let service {
                let (listening, listens) = AsyncStream.makeStream(of: Never.self)
                group.addTask {
                    do throws(WorkerError) { try await service(worker.statistics) { listens.finish() } } catch {
                        fault.withLock { $0 = error }
                        stop.request()
                    }
                    listens.finish()
                }
                stop.whenRequested { listens.finish() }
                // A short run would end before a port in use is noticed.
                for await _ in listening {}
            }
            group.addTask { await keepers.run() }
            if let manager { group.addTask { await manager.run(worker.statistics, store) } }
            if let isOver { group.addTask { await stop.request { try await isOver(store) } } }
            if !isQuiet {
                group.addTask { await RunProgress(statistics: worker.statistics, store: store, display: line).run() }
            }
            let result: Result<Worker.Summary, WorkerError>
            do throws(WorkerError) {
                result = .success(try await worker.run(stop: stop))
            } catch {
                result = .failure(error)
            }
            group.cancelAll()
            await group.waitForAll()
            return fault.withLock { $0 }.map(Result.failure) ?? result
        }
        if configuration.drains { await keepers.finish() }
        let report = try await RunReport.of(result, since: begun, in: store, countsFailures: !isQuiet)
        try await store.close()
        return report
    }
}
