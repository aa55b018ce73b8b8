import Core
import Glibc
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import Jobs

/// A clock that moves only when it is told to.
final class TestClock: Sendable {
    private let time = Atomic<Int64>(1_800_000_000_000)

    var now: WallTime { WallTime(milliseconds: milliseconds) }

    /// The same by the database's clock, which it is as long as no jump was made.
    var steady: SteadyTime { Moment(wall: now, jumps: 0).steady }

    var milliseconds: Int64 { time.load(ordering: .relaxed) }

    func advance(_ milliseconds: Int64) { time.wrappingAdd(milliseconds, ordering: .relaxed) }
}

/// A new database with everything a test of the queue needs.
struct Queue: Sendable {
    let store: JobStore
    let clock: TestClock
    let shell: Shell
    let worker: Int64
    let path: String

    /// Whether the tests run on PostgreSQL, as they do where JOBS_TEST_ENGINE=postgres is set.
    static let isOnPostgres = getenv("JOBS_TEST_ENGINE").map { String(cString: $0) } == "postgres"

    /// The path or URL of a database that does not exist yet.
    static func newDatabase(in folder: FilePath) async throws -> String {
        guard isOnPostgres else { return folder.appending("worker.db").string }
        PostgresClock.isIgnored.store(true, ordering: .relaxed)
        return try await PostgresServer.running.value.newSchema()
    }

    /// Adds a job of `count` URLs of its own.
    func job(_ count: Int = 1, name: String = "j", priority: Int = 0, order: ExecutionOrder? = nil) async throws
        -> JobID
    {
        let urls = (0..<count).map { "https://\(name).example/\($0).jpg" }
        return try #require(
            try await store.queue.enqueue(NewJob(name: name, urls: urls, priority: priority, order: order)))
    }

    func claim(_ limit: Int = 64) async throws -> [ClaimedItem] {
        try await store.queue.claim(limit: limit, worker: worker).items
    }

    func end(_ item: ClaimedItem, _ ending: ItemEnding) async throws {
        #expect(try await store.queue.finish([(item, ending)]) == [])
    }

    func progress(_ job: JobID) async throws -> JobProgress {
        try #require(try await store.reports.progress(job: job))
    }
}

/// Lends a new queue, then checks that its books are in order.
func withQueue<R>(_ body: (Queue) async throws -> R) async throws -> R {
    try await withTemporaryQueue { queue in
        let result = try await body(queue)
        #expect(try await queue.store.maintenance.inconsistencies() == [])
        #expect(try await queue.store.maintenance.integrity().complaints == [])
        return result
    }
}

/// Lends a new queue that may be damaged.
func withTemporaryQueue<R>(_ body: (Queue) async throws -> R) async throws -> R {
    try await withTemporaryDirectory { folder in
        let clock = TestClock()
        let path = try await Queue.newDatabase(in: folder)
        let store = try JobStore(path: path, now: { clock.now })
        let worker = try await store.workers.register(host: "test", pid: 1)
        let result = try await body(
            Queue(store: store, clock: clock, shell: Shell(database: path), worker: worker, path: path))
        try await store.close()
        return result
    }
}

extension ClaimedItem {
    /// A success that made one file.
    func completion(
        cached: Bool = false, hash: String? = nil, clock: TestClock, bytes: Int64 = 10,
    ) -> ItemEnding {
        let hash = hash ?? Self.hash(of: id)
        let source = SourceRecord(
            key: key, hash: hash, size: bytes, isKept: true, format: "jpeg", width: 4, height: 3, fetchedAt: clock.now)
        let rendition = RenditionRecord(name: "original", blob: hash, size: bytes, format: "jpeg", width: 4, height: 3)
        return .done(
            Completion(source: source, renditions: [rendition], newVariants: [], origin: cached ? .disk : .network))
    }

    /// Sixty-four digits that are as good as a hash.
    static func hash(of number: Int64) -> String {
        let text = String(number, radix: 16)
        return String(repeating: "0", count: 64 - text.count) + text
    }
}

extension ItemEnding {
    static func failed(_ failure: FailureClass) -> ItemEnding { .failed(Failure(failure, "It went wrong.")) }
}

extension Trait where Self == ConditionTrait {
    /// For tests of what only SQLite has: its file, its locks, its dialect, or triggers and damage written in it.
    static var onSQLite: Self {
        .enabled(if: !Queue.isOnPostgres, "It is about SQLite, and the tests run on PostgreSQL.")
    }

    /// For tests of what only PostgreSQL needs: scripts/test runs this suite on both.
    static var onPostgres: Self {
        .enabled(if: Queue.isOnPostgres, "It is about PostgreSQL, and the tests run on SQLite.")
    }
}
