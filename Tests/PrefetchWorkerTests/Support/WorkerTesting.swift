import ContentCache
import Download
import Glibc
import Jobs
import Logging
import PrefetchWorker
import SystemPackage
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// A database, a cache and a worker's configuration in a folder of their own.
struct Workplace: Sendable {
    let folder: FilePath
    let store: JobStore
    var configuration: WorkerConfiguration

    /// The `worker-helper` that was built beside these tests.
    static let executable: FilePath = {
        var buffer = [CChar](repeating: 0, count: 4_096)
        let length = readlink("/proc/self/exe", &buffer, buffer.count)
        let bytes = buffer.prefix(max(0, length)).map { UInt8(bitPattern: $0) }
        return FilePath(String(decoding: bytes, as: UTF8.self))
            .removingLastComponent().appending("worker-helper")
    }()
    static let isBuilt = access(executable.string, X_OK) == 0
    static let notBuilt: Comment = "there is no worker-helper beside the tests: build it with swift build"

    init(_ folder: FilePath) throws {
        self.folder = folder
        let database = folder.appending("worker.db").string
        store = try JobStore(path: database)
        // A name of its own, so that a test finds its helpers among those of others.
        let worker = folder.appending("worker").string
        guard symlink(Self.executable.string, worker) == 0 else { throw Errno(rawValue: errno) }
        configuration = WorkerConfiguration(database: database, cache: folder.appending("cache").string, transforms: 1)
        configuration.helpers = HelperConfiguration(count: 1, executable: worker, arguments: [])
        configuration.downloads.addresses = try AddressPolicy(allowing: ["loopback"])
        configuration.downloads.silenceTimeout = .seconds(10)
        configuration.retries = RetryPolicy(base: 1)
        configuration.minimumFree = 0
        configuration.drains = true
    }

    func with(_ change: (inout WorkerConfiguration) -> Void) -> Workplace {
        var place = self
        change(&place.configuration)
        return place
    }

    func enqueue(_ urls: [String], variants: String? = nil, options: String? = nil) async throws -> JobID {
        try #require(try await store.queue.enqueue(NewJob(urls: urls, variants: variants, options: options)))
    }

    /// Runs a worker until nothing is left.
    @discardableResult
    func drain() async throws -> Worker.Summary { try await run(StopSignal()) }

    func run(_ stop: StopSignal) async throws -> Worker.Summary {
        try await Worker(configuration, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }).run(stop: stop)
    }

    func progress(_ job: JobID) async throws -> JobProgress { try #require(try await store.reports.progress(job: job)) }

    func item(_ job: JobID) async throws -> ResultRow {
        try #require(try await store.reports.results(job: job, after: 0, limit: 1).first)
    }

    func history(_ url: String) async throws -> ItemRecord {
        try #require(try await store.reports.history(ofURL: url).first)
    }

    /// The helper processes that this workplace's worker has started.
    func helpers() -> [pid_t] {
        let name = Array(configuration.helpers.executable.utf8) + [0]
        return ProcessTable.all().filter { ProcessTable.commandLine(of: $0).starts(with: name) }
    }
}

/// Lends a workplace, then checks that every invariant holds and that no helper is left.
func withWorkplace<R>(
    configure: (inout WorkerConfiguration) -> Void = { _ in }, _ body: (Workplace) async throws -> R,
) async throws -> R {
    try await withTemporaryDirectory { folder in
        let place = try Workplace(folder).with(configure)
        let result = try await body(place)
        let audit = try await CacheAudit.run(
            store: place.store, cache: try ContentCache(directory: FilePath(place.configuration.cache)))
        #expect(audit.isSound, "\(audit)")
        let workers = try await place.store.workers.live()
        #expect(workers.isEmpty)
        #expect(place.helpers() == [])
        try await place.store.close()
        return result
    }
}

/// What /proc knows of processes.
enum ProcessTable {
    static func all() -> [pid_t] { numbers(in: "/proc") }

    /// What /proc says of the state of each of its threads.
    static func threads(of process: pid_t) throws -> [String] {
        try numbers(in: "/proc/\(process)/task").map { thread in
            let file = try FileDescriptor.open("/proc/\(process)/task/\(thread)/status", .readOnly)
            return try file.closeAfter {
                try String(unsafeUninitializedCapacity: 4_096) {
                    try file.read(into: UnsafeMutableRawBufferPointer($0))
                }
            }
        }
    }

    private static func numbers(in folder: String) -> [pid_t] {
        guard let directory = opendir(folder) else { return [] }
        defer { closedir(directory) }
        var all: [pid_t] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: entry.pointee.d_name) { tuple in
                tuple.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if let number = pid_t(name) { all.append(number) }
        }
        return all
    }

    /// Its words, each with a zero after it; nothing once it has ended.
    static func commandLine(of process: pid_t) -> [UInt8] {
        let path = FilePath("/proc/\(process)/cmdline")
        guard let file = try? FileDescriptor.open(path, .readOnly) else { return [] }
        defer { try? file.close() }
        return
            (try? [UInt8](unsafeUninitializedCapacity: 4_096) { buffer, count in
                count = try file.read(into: UnsafeMutableRawBufferPointer(buffer))
            }) ?? []
    }
}

/// Images to serve.
enum Pictures {
    static let jpeg = SampleImage.bytes(of: .jpeg)
    static let png = SampleImage.bytes(of: .png)
    static let webp = SampleImage.bytes(of: .webp)
}
