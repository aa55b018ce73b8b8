import ArgumentParser
import Core
import Dashboard
import Jobs
import Lists
import PrefetchWorker
import Synchronization

/// Answers the dashboard's calls to this program.
struct DashboardService: DashboardHost {
    let store: JobStore
    let cache: String
    let access: ListAccess
    /// Of the worker beside it; nil without one.
    let statistics: RunStatistics?

    func metrics() async throws -> String { try await WorkerMetrics(store: store, cache: cache).text() }

    func problem() async -> String? {
        if let statistics, !statistics.hasBegun { return "The worker is starting." }
        do throws(JobsError) {
            try await store.database.checkFile()
            _ = try await store.reports.backlog()
            return nil
        } catch {
            return error.message
        }
    }

    func enqueue(_ request: EnqueueRequest) async throws -> JobID {
        try await Self.explained { try await add(request) }
    }

    func runSchedule(named name: String) async throws -> String {
        try await Self.explained { try await run(named: name) }
    }

    /// The errors of this program and of its lists are sentences for the user.
    private static func explained<Value>(_ action: () async throws -> Value) async throws -> Value {
        do {
            return try await action()
        } catch let error as JobsError {
            throw error
        } catch {
            throw RequestMistake(WorkerError(ofCommand: error).message)
        }
    }

    private func add(_ request: EnqueueRequest) async throws -> JobID {
        var job = NewJob(
            urls: request.urls.split(whereSeparator: \.isNewline).map { $0.trimmed }.filter { !$0.isEmpty })
        job.name = request.name
        job.options = request.options
        job.priority = request.priority ?? 0
        guard (-100...100).contains(job.priority) else {
            throw SettingsError("priority must be a whole number from -100 to 100, not '\(job.priority)'.")
        }
        if let variants = request.variants {
            job.variants = try VariantList(variants.split(separator: " ").map(String.init)).text
        }
        try WorkerJobs.check(job)
        guard !job.urls.isEmpty else { throw SettingsError("There is no URL.") }
        let told = Mutex<[String]>([])
        let intake: JobIntake
        do {
            intake = try await JobIntake(
                job,
                from: JobIntake.Source(
                    common: access.common, lists: try ListOptions.parse([]),
                    tell: { line in told.withLock { $0.append(line) } }))
        } catch {
            // The lines say which URL is wrong, and what would be right.
            throw SettingsError(
                (told.withLock { $0.prefix(3) } + ["\(WorkerError(ofCommand: error).message)"]).joined(separator: " "))
        }
        guard let id = try await intake.add(to: store) else { throw SettingsError("The job was not added.") }
        return id
    }

    private func run(named name: String) async throws -> String {
        guard let run = try await store.schedules.takeNow(name) else {
            throw SettingsError("There is no schedule '\(name)', or it is being run.")
        }
        switch try await ScheduledJob(run, access: access).enqueue(in: store, tell: { _ in }).get() {
        case .enqueued(let job): return "Job \(job) was added."
        case .joined(let job): return "Job \(job) of an earlier run is unfinished; nothing was added."
        case .lost: return "The schedule was removed while its lists were read."
        }
    }
}

extension Substring {
    fileprivate var trimmed: String {
        var text = self
        while text.last?.isWhitespace == true { text.removeLast() }
        return String(text.drop(while: \.isWhitespace))
    }
}
