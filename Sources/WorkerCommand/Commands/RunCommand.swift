import ArgumentParser
import Core
import Download
import Glibc
import Jobs
import Logging
import PrefetchWorker
import SystemPackage
import UnixSignals

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

    @OptionGroup(title: "DATABASE AND CACHE") var common: CommonOptions
    @OptionGroup(title: "MOST USED") var options: RunOptions
    @OptionGroup(title: "MOST USED") var cacheSize: CacheSizeOptions
    @OptionGroup(title: "ADVANCED: HOSTS") var hosts: HostOptions
    @OptionGroup(title: "ADVANCED: DOWNLOADS") var downloads: DownloadOptions
    @OptionGroup(title: "ADVANCED: PICTURES") var pictures: PictureOptions
    @OptionGroup(title: "ADVANCED: CACHE") var cache: CacheOptions
    @OptionGroup(title: "ADVANCED: UPKEEP") var upkeep: UpkeepOptions
    @OptionGroup(title: "ADVANCED: PROGRAMS AND FOLDERS") var programs: ProgramOptions

    func run() async throws {
        try await reportingErrors {
            let line = Terminal.errorIsTerminal && !options.quiet ? ProgressLine() : nil
            let logger = Logger(label: "worker") { _ in ConsoleLog(logLevel: .notice, line: line) }
            let worker = Worker(try configuration(), logger: logger)
            let summary = try await supervise(worker, line: line, logger: logger)
            try RunSummary(summary, drained: options.drain).report(json: options.json)
        }
    }

    private func configuration() throws -> WorkerConfiguration {
        let settings = try common.settings()
        var configuration = try options.configuration(
            database: common.databasePath(settings), cache: common.cachePath(settings), settings)
        try hosts.apply(to: &configuration.downloads, settings)
        try downloads.apply(to: &configuration, settings)
        try pictures.apply(to: &configuration, settings)
        configuration.cachePolicy = try cache.policy(cacheSize, settings)
        try upkeep.apply(to: &configuration, settings)
        try programs.apply(to: &configuration, settings)
        do {
            try configuration.downloads.check()
        } catch {
            throw SettingsError(error.message)
        }
        return configuration
    }

    /// Runs the worker together with its progress display and the handler of the signals that stop it.
    private func supervise(_ worker: Worker, line: ProgressLine?, logger: Logger) async throws -> Worker.Summary {
        let stop = StopSignal()
        let settings = try common.settings()
        let store = try await JobStore.opening(path: common.databasePath(settings))
        let showsProgress = !options.quiet
        let result = await withTaskGroup { group in
            group.addTask { await watchSignals(stop, logger: logger) }
            if showsProgress {
                group.addTask { await RunProgress(statistics: worker.statistics, store: store, line: line).run() }
            }
            let result: Result<Worker.Summary, WorkerError>
            do throws(WorkerError) {
                result = .success(try await worker.run(stop: stop))
            } catch {
                result = .failure(error)
            }
            group.cancelAll()
            await group.waitForAll()
            return result
        }
        try await store.close()
        return try result.get()
    }

    /// The first signal requests a clean stop, the second ends the process. Nothing is lost either way: the next worker
    /// reclaims the leases.
    private func watchSignals(_ stop: StopSignal, logger: Logger) async {
        var first: ContinuousClock.Instant?
        for await signal in await UnixSignalsSequence(trapping: .sigterm, .sigint) {
            if let first {
                // timeout(1) sends its signal to the process and then to its group: two signals for one request.
                if .now - first < .milliseconds(100) { continue }
                _exit(signal == .sigint ? 130 : 143)
            }
            first = .now
            logger.notice(
                "Stopping: items in flight are finished, the others stay in the queue. Signal again to stop immediately."
            )
            stop.request()
        }
    }
}
