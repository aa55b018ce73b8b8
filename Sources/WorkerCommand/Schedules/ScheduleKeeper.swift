import ArgumentParser
import Core
import Glibc
import Jobs
import Lists
import Logging
import PrefetchWorker
import SystemPackage

/// Starts the runs of schedules that are due, beside a worker: reads their lists and adds their jobs.
struct ScheduleKeeper {
    let store: JobStore
    let access: ListAccess
    let logger: Logger

    /// How often schedules are looked for that another program has added: a look costs one query.
    private static let interval: Duration = .seconds(2)

    func run() async {
        var isPlanned = false
        for look in 0... {
            guard !Task.isCancelled else { return }
            // At the start and every hour.
            if look.isMultiple(of: 1_800) { isPlanned = false }
            if !isPlanned { isPlanned = await planAnew() }
            await startAllDue()
            // Cancellation ends the sleep.
            try? await Task.sleep(for: Self.interval)
        }
    }

    /// - Returns: false if the database could not be written; then the planned times stay.
    private func planAnew() async -> Bool {
        do {
            try await store.schedules.planAnew()
            return true
        } catch {
            logger.warning("The schedules can't be planned again: \(error.message)")
            return false
        }
    }

    /// Starts runs until none is due.
    func startAllDue() async {
        do {
            while !Task.isCancelled, let run = try await store.schedules.take() { await start(run) }
        } catch {
            // The worker itself ends where the database stays unusable.
            logger.warning("The schedules can't be read: \(error.message)")
        }
    }

    private func start(_ run: ScheduleRun) async {
        let outcome = await withTaskGroup { group in
            group.addTask {
                // As long as its lists are read, which may take minutes.
                while (try? await Task.sleep(for: .milliseconds(ScheduleBook.claimDuration / 3))) != nil {
                    // Best effort: a run that is taken over in the meantime is added once all the same.
                    try? await store.schedules.renew(run)
                }
            }
            defer { group.cancelAll() }
            return await ScheduledJob(run, access: access).enqueue(in: store) {
                logger.notice("\($0)", metadata: ["schedule": "\(run.schedule)"])
            }
        }
        switch outcome {
        case .success(.enqueued(let job)):
            logger.info("A schedule was due.", metadata: ["schedule": "\(run.schedule)", "job": "\(job)"])
        case .success(.joined(let job)):
            logger.notice(
                "A schedule was due while the job of its last run is unfinished; nothing was added.",
                metadata: ["schedule": "\(run.schedule)", "job": "\(job)"])
        case .success(.lost): break
        case .failure(let error):
            logger.error("A schedule failed: \(error.message)", metadata: ["schedule": "\(run.schedule)"])
        }
    }
}

/// Which lists the runs of schedules may read.
struct ListAccess {
    let common: CommonOptions
    /// The folder whose files may be read; nil for none.
    let folder: String?
    /// Ranges of addresses that are not public and may be connected to, as of `--allow-addresses`.
    let addresses: [String]
}

/// The job of a schedule's run.
struct ScheduledJob {
    private let run: ScheduleRun
    private let access: ListAccess

    init(_ run: ScheduleRun, access: ListAccess) {
        self.run = run
        self.access = access
    }

    /// Reads the lists and adds the job.
    ///
    /// - Parameter tell: gets a line on each list and on each URL that is left out.
    func enqueue(in store: JobStore, tell: @escaping (String) -> Void) async -> Result<ScheduleOutcome, WorkerError> {
        do {
            let intake = try await intake(tell)
            return .success(try await intake.finish(run, in: store))
        } catch {
            if Task.isCancelled {
                // The worker stops, which is no fault of the lists. Best effort: otherwise the run is taken over when its
                // claim ends.
                try? await store.schedules.release(run)
                return .success(.lost)
            }
            let error = WorkerError(ofCommand: error)
            // The disk or another program is at fault, and not the lists: the run is taken over when its claim ends.
            if error.code == .tryLater || error.code == .inputOutput { return .failure(error) }
            // Best effort: the error is returned; a run that is not ended is taken over later.
            try? await store.schedules.fail(run, error.message)
            return .failure(error)
        }
    }

    private func intake(_ tell: @escaping (String) -> Void) async throws -> JobIntake {
        let manifest = try Manifest(
            parsing: run.manifest, run.origin ?? "the manifest of the schedule '\(run.schedule)'")
        for source in manifest.sources {
            if let file = source.file { try Self.check(file, isIn: access.folder) }
        }
        var options = try ListOptions.parse([])
        // A line without a usable URL is skipped, so that all other URLs are fetched.
        options.skipInvalid = true
        options.allowAddresses = access.addresses
        var source = JobIntake.Source(common: access.common, lists: options, tell: tell)
        source.manifest = (run.origin ?? run.schedule, manifest.urlLines)
        return try await JobIntake(
            manifest.batch(named: run.schedule), sources: manifest.sources, from: source)
    }

    /// SQL may write a schedule, which must not read any file of the worker's machine.
    ///
    /// - Throws: `usage` unless the file is in the folder, wherever links lead.
    private static func check(_ file: String, isIn folder: String?) throws(SettingsError) {
        guard let folder else {
            throw SettingsError(
                "The schedule reads the file \(file), and this worker was started without --lists. Name the folder of such "
                    + "files with --lists, or name the list by its address.")
        }
        guard let real = realPath(file), let root = realPath(folder) else {
            throw SettingsError("The list \(file) can't be read, or the folder of --lists, \(folder).")
        }
        guard real.starts(with: root), real != root else {
            throw SettingsError("The list \(file) is not in the folder of --lists, \(folder).")
        }
    }

    private static func realPath(_ path: String) -> FilePath? {
        guard let real = realpath(path, nil) else { return nil }
        defer { free(real) }
        return FilePath(String(cString: real))
    }
}

extension JobIntake {
    /// Adds the job of a schedule's run, and ends the run with it.
    func finish(_ run: ScheduleRun, in store: JobStore) async throws -> ScheduleOutcome {
        try await store.schedules.finish(run, with: job, rows: rows)
    }
}
