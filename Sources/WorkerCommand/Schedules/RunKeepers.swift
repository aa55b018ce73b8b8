import Jobs
import Logging
import PrefetchWorker

/// The services that a command runs beside its worker: the database's schedules, and the notices of ended jobs.
struct RunKeepers {
    let schedules: ScheduleKeeper
    let notices: NoticeKeeper
    /// Whether the run ends when no work is left.
    private let drains: Bool

    /// How long a draining run waits at its end for notices to be sent. The next run sends the rest.
    private static let patience: Duration = .seconds(10)

    init(_ configuration: WorkerConfiguration, _ store: JobStore, _ access: ListAccess, _ logger: Logger) throws {
        schedules = ScheduleKeeper(store: store, access: access, logger: logger)
        notices = try NoticeKeeper(
            configuration.notices, downloads: configuration.downloads, store, logger: logger)
        drains = configuration.drains
    }

    /// Runs until the task is cancelled.
    func run() async {
        await withTaskGroup { group in
            group.addTask { await notices.run() }
            if !drains { group.addTask { await schedules.run() } }
        }
    }

    /// Sends the notices of the jobs that the run has ended.
    func finish() async {
        await withTaskGroup { group in
            group.addTask { await notices.sendAllDue() }
            // Cancelled as soon as all are sent.
            group.addTask { try? await Task.sleep(for: Self.patience) }
            await group.next()
            group.cancelAll()
        }
        await notices.close()
    }
}
