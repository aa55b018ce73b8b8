import ArgumentParser
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
        abstract: "Works on the queue.",
        discussion: """
            Without --drain it waits for work until it is told to stop. SIGTERM and Ctrl-C stop it cleanly: no new claims, \
            what is in flight gets its grace, the rest goes back to the queue. A second one stops it at once; what it held \
            goes back to the queue within two seconds of another worker's life. Several workers may share a database.

            EXAMPLES:
              worker run --concurrency 6
              worker run --drain --order lifo
              worker run --drain --allow-addresses loopback --allow-addresses 10.0.0.0/8

            EXIT CODES: 0 all well, 2 some items failed, 64 usage, 69 nothing could be reached or no sandbox where one is \
            required, 70 internal error, 73 cannot create, 74 I/O error or damaged database, 75 try again later: the disk is \
            full, or --drain was stopped before all was done.
            """,
    )

    @OptionGroup var common: CommonOptions
    @OptionGroup var limits: RunLimits
    @OptionGroup var images: RunImages
    @OptionGroup var hosts: RunHosts

    @Flag(help: "End when nothing is left that could still run, delayed retries included.")
    var drain = false

    @Option(help: "Downloads at once (6).")
    var concurrency: Int?

    @Option(help: "Images transformed at once, each in its own process (one for each core).")
    var transforms: Int?

    @Option(help: "Order of jobs that name none: fifo or lifo (fifo).")
    var order: String?

    @Option(help: ArgumentHelp("Folder of the pictures that effects name, such as watermarks.", valueName: "folder"))
    var assets: String?

    @Option(
        help: ArgumentHelp(
            "Folder for previews of pictures that are still arriving, of jobs with the option progressive.",
            valueName: "folder"))
    var previews: String?
    @OptionGroup var commands: RunCommands
    @OptionGroup var cacheLimits: CacheLimits
    @OptionGroup var upkeep: RunUpkeep

    @Flag(help: "Print the summary as JSON.")
    var json = false

    @Flag(name: .shortAndLong, help: "No progress, only warnings and the summary.")
    var quiet = false

    func run() async throws {
        try await reportingErrors {
            let line = Terminal.errorIsTerminal && !quiet ? ProgressLine() : nil
            let logger = Logger(label: "worker") { _ in ConsoleLog(logLevel: .notice, line: line) }
            let worker = Worker(try configuration(), logger: logger)
            let summary = try await supervise(worker, line: line, logger: logger)
            try RunSummary(summary, drained: drain).report(json: json)
        }
    }

    private func configuration() throws -> WorkerConfiguration {
        let settings = try common.settings()
        let cores = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
        let transforms = try settings.number("transforms", flag: transforms, default: cores, in: 1...256)
        var configuration = WorkerConfiguration(
            database: common.databasePath(settings), cache: common.cachePath(settings), transforms: transforms)
        configuration.drains = drain
        configuration.downloads.concurrency = try settings.number(
            "concurrency", flag: concurrency, default: 6, in: 1...1_000)
        configuration.downloads.maxUnconsumedBodies = configuration.downloads.concurrency + 8 * transforms
        let orderText = settings.text("order", flag: order) ?? "fifo"
        guard let order = ExecutionOrder(rawValue: orderText) else {
            throw SettingsError(message: "order must be fifo or lifo, not '\(orderText)'.")
        }
        configuration.order = order
        configuration.assets = try settings.text("assets", flag: assets).map(Self.assetsFolder)
        configuration.onPreview = try settings.text("previews", flag: previews).map(Self.previewWriter)
        try limits.apply(to: &configuration, settings)
        try images.apply(to: &configuration, settings)
        try hosts.apply(to: &configuration, settings)
        try commands.apply(to: &configuration, settings)
        configuration.cachePolicy = try cacheLimits.policy(settings)
        try upkeep.apply(to: &configuration, settings)
        return configuration
    }

    /// A folder that isn't there would fail each item that names a picture, one by one.
    private static func assetsFolder(_ path: String) throws -> String {
        do {
            try FileDescriptor.open(FilePath(path), .readOnly, options: [.directory, .closeOnExec]).close()
        } catch {
            throw SettingsError(message: "assets: the folder \(path) can't be opened: \(error)")
        }
        return path
    }

    private static func previewWriter(_ path: String) throws -> @Sendable (Preview) -> Void {
        let folder: PreviewFolder
        do {
            folder = try PreviewFolder(path)
        } catch {
            throw SettingsError(message: "previews: the folder \(path) can't be made: \(error)")
        }
        // A preview that can't be written is missed; the next one may be.
        return { preview in try? folder.show(preview) }
    }

    /// Runs the worker beside its progress and the signals that stop it.
    private func supervise(_ worker: Worker, line: ProgressLine?, logger: Logger) async throws -> Worker.Summary {
        let stop = StopSignal()
        let settings = try common.settings()
        let store = try await JobStore.opening(path: common.databasePath(settings))
        let showsProgress = !quiet
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

    /// The first signal asks for a clean stop, the second ends the process: the leases it leaves are taken back by
    /// whoever works next, so nothing is lost either way.
    private func watchSignals(_ stop: StopSignal, logger: Logger) async {
        var first: ContinuousClock.Instant?
        for await signal in await UnixSignalsSequence(trapping: .sigterm, .sigint) {
            if let first {
                // timeout(1) sends to the process and then to its group, which is one wish and two signals.
                if .now - first < .milliseconds(100) { continue }
                _exit(signal == .sigint ? 130 : 143)
            }
            first = .now
            logger.notice(
                "Stopping: what is in flight is finished, the rest stays in the queue. Once more stops at once.")
            stop.request()
        }
    }
}
