public import Core
internal import Glibc

/// An open database: its queue, cache index, hosts, schedules and maintenance.
///
/// Each part is an object of its own on the one gate; code that needs one part gets only that.
public final class JobStore: Sendable {
    public let database: DatabaseGate
    public let queue: JobQueue
    public let workers: WorkerBook
    public let control: JobControl
    public let reports: JobReports
    public let events: JobEvents
    public let hosts: HostBook
    public let blacklist: Blacklist
    public let cache: CacheIndex
    public let lostFiles: LostFiles
    public let eviction: CacheEviction
    public let maintenance: Maintenance
    public let schedules: ScheduleBook
    public let activity: ActivityBook
    public let recipes: RecipeBook
    public let notices: NoticeBook

    public init(_ database: DatabaseGate) {
        self.database = database
        queue = JobQueue(gate: database)
        workers = WorkerBook(gate: database)
        control = JobControl(gate: database)
        reports = JobReports(gate: database)
        events = JobEvents(gate: database)
        hosts = HostBook(gate: database)
        blacklist = Blacklist(gate: database)
        cache = CacheIndex(gate: database)
        lostFiles = LostFiles(gate: database)
        eviction = CacheEviction(gate: database)
        maintenance = Maintenance(gate: database)
        schedules = ScheduleBook(gate: database)
        activity = ActivityBook(gate: database)
        recipes = RecipeBook(gate: database)
        notices = NoticeBook(gate: database)
    }

    /// Opens the database, and creates or upgrades it if needed; see ``DatabaseGate``.
    public convenience init(
        path: String,
        missing: DatabaseGate.Missing = .create,
        now: @escaping @Sendable () -> WallTime = DatabaseGate.wallClock,
        uptime: @escaping @Sendable () -> Int64 = DatabaseGate.bootClock,
        leaseDuration: Int64 = DatabaseGate.leaseDuration,
        syncs: Bool = true,
        waiting: WriteWaiting = WriteWaiting(),
    ) throws(JobsError) {
        self.init(
            try DatabaseGate(
                path: path, missing: missing, now: now, uptime: uptime, leaseDuration: leaseDuration, syncs: syncs,
                waiting: waiting))
    }

    /// Opens the database of a read-only cache, such as one on a disk that is mounted read-only.
    public convenience init(readOnly path: String) throws(JobsError) {
        self.init(try DatabaseGate(readOnly: path))
    }

    public var path: String { database.path }

    /// Closes the file, and checkpoints it if no other program has it open. Later calls fail.
    public func close() async throws(JobsError) { try await database.close() }

    /// Opens the database, and tries a few times if it can't be read at this moment.
    public static func opening(
        path: String, missing: DatabaseGate.Missing = .create,
        now: @escaping @Sendable () -> WallTime = DatabaseGate.wallClock,
        leaseDuration: Int64 = DatabaseGate.leaseDuration, syncs: Bool = true,
        waiting: WriteWaiting = WriteWaiting(),
    ) async throws(JobsError) -> JobStore {
        try await retrying(tries: 3) { () throws(JobsError) in
            try JobStore(
                path: path, missing: missing, now: now, leaseDuration: leaseDuration, syncs: syncs, waiting: waiting)
        }
    }

    /// Opens the database for a command that only reads: it does not wait for writers, and read access is enough, also
    /// on a disk that is mounted read-only.
    public static func reading(path: String) throws(JobsError) -> JobStore {
        do {
            return try JobStore(path: path, missing: .refuse, waiting: .never)
        } catch  where error.code == .cannotOpen && access(path, R_OK) == 0 {
            // If this fails too, the first error is reported.
            do { return try JobStore(readOnly: path) } catch _ { throw error }
        }
    }

    /// Repeats a call every 250 ms, as long as it fails with a temporary error. It does not repeat a write that failed
    /// with `busy`: such a write has already waited for as long as it may.
    public static func retrying<R>(
        tries: Int = 20, _ body: () async throws(JobsError) -> R,
    ) async throws(JobsError) -> R {
        for _ in 1..<tries {
            do throws(JobsError) {
                return try await body()
            } catch  where error.isTransient && error.code != .busy {
                // A cancelled task, too, gives the disk time to recover.
                await Pause.uncancelled(.milliseconds(250))
            }
        }
        return try await body()
    }
}
