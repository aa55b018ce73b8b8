import GRDB
import Synchronization
import TestSupport
import Testing

@testable import Jobs

/// Jobs whose lists are so long that their rows are added in several transactions.
@Suite(.timeLimit(.minutes(15))) struct LongListTests {
    private static let count = 10_000

    private static func urls(_ count: Int = count) -> [ListRows.Row] {
        (0..<count).map { ("https://a.example/\($0).jpg", $0 % 3 == 0 ? #"{"n":\#($0)}"# : nil) }
    }

    private static func addition(
        _ queue: Queue, _ rows: ListRows, as job: NewJob = NewJob(urls: []), shortList: Int = 100,
    ) throws -> ListAddition {
        try ListAddition(
            job, fallbacks: ["https://b.example/"], rows: rows, gate: queue.store.database, shortList: shortList)
    }

    /// The row before which the second slice begins or goes on.
    private static let inTheMiddle = 6_000

    private static func items(_ queue: Queue) async throws -> Int64? {
        try await queue.store.database.read { try $0.integer("SELECT count(*) FROM items") }
    }

    private static func expectNothingLeft(_ queue: Queue, items: Int64 = 0) async throws {
        #expect(try await Self.items(queue) == items)
        #expect(try await queue.store.database.read { try $0.integer("SELECT count(*) FROM job_additions") } == 0)
        #expect(try await queue.store.database.read { try $0.integer("SELECT count(*) FROM spreading") } == 0)
    }

    @Test(.onSQLite) func `Between the slices of a list another program can write and does not see its job`()
        async throws
    {
        try await withQueue { queue in
            var configuration = Configuration()
            // It would fail at once if the list held the lock.
            configuration.busyMode = .immediateError
            let other = try DatabaseQueue(path: queue.path, configuration: configuration)
            let seen = Mutex<[String]>([])
            // Before the second transaction and in the middle of the list; the first two calls measure the list.
            let rows = ListRows(Self.urls()) { row in
                guard row == Self.inTheMiddle else { return }
                try other.write { db in
                    let jobs = try Int.fetchOne(db, sql: "SELECT count(*) FROM jobs WHERE name IS NULL") ?? -1
                    let items = try Int.fetchOne(db, sql: "SELECT count(*) FROM items WHERE job = 1") ?? -1
                    try db.execute(sql: "INSERT INTO jobs (name, urls) VALUES ('other', '[\"https://o.example/\"]')")
                    seen.withLock { $0.append("\(jobs)|\(items)") }
                }
            }
            let job = try #require(try await Self.addition(queue, rows).add { id, _ in id })
            #expect(seen.withLock { $0 } == ["0|4096"])
            let progress = try await queue.progress(job)
            #expect(progress.total == Self.count && progress.queued == Self.count && progress.state == .queued)
            try await Self.expectNothingLeft(queue, items: Int64(Self.count) + 1)
            let events = try await queue.store.database.read {
                try $0.integer("SELECT count(*) FROM events WHERE job = ?", [job])
            }
            #expect(events == 1)
            #expect(try await queue.claim(4).count == 4)
            try other.close()
        }
    }

    @Test(.onSQLite) func `A list that is added in slices has the same rows as a list that is added at once`()
        async throws
    {
        for options in [nil, "only-new"] {
            var found: [[String]] = []
            for shortList in [100, 100_000] {
                try await withQueue { queue in
                    _ = try await queue.job(5, name: "a")
                    for item in try await queue.claim() {
                        try await queue.end(item, item.completion(clock: queue.clock))
                    }
                    let rows = ListRows(Self.urls() + Self.urls(3))
                    let job = NewJob(urls: [], options: options)
                    let id = try #require(
                        try await Self.addition(queue, rows, as: job, shortList: shortList).add { id, _ in id })
                    let progress = try await queue.progress(id)
                    #expect(progress.notNew == (options == nil ? 0 : 8))
                    let columns = "id, job, url, state, meta, fallbacks, priority"
                    found.append(
                        try await queue.store.database.read { db in
                            try db.rows("SELECT \(columns) FROM items ORDER BY id").map(\.values.description)
                                + db.rows("SELECT total, queued, not_new, state, options FROM jobs")
                                .map(\.values.description)
                        })
                }
            }
            #expect(found.count == 2 && found.first == found.last)
        }
    }

    @Test func `A list of only known URLs is a finished job`() async throws {
        try await withQueue { queue in
            _ = try await queue.job(300, name: "a")
            for item in try await queue.claim(300) { try await queue.end(item, item.completion(clock: queue.clock)) }
            let job = NewJob(urls: [], options: "only-new")
            let id = try #require(try await Self.addition(queue, ListRows(Self.urls(300)), as: job).add { id, _ in id })
            let progress = try await queue.progress(id)
            #expect(progress.state == .finished && progress.total == 0 && progress.notNew == 300)
        }
    }

    private struct Broken: Error {}

    @Test func `An error among the rows adds nothing and leaves nothing`() async throws {
        try await withQueue { queue in
            let rows = ListRows(Self.urls()) { if $0 == Self.inTheMiddle { throw Broken() } }
            await #expect(throws: JobsError.self) { _ = try await Self.addition(queue, rows).add { id, _ in id } }
            try await Self.expectNothingLeft(queue)
            #expect(try await queue.store.reports.progress().isEmpty)
        }
    }

    @Test func `An error in the last transaction adds nothing and leaves nothing`() async throws {
        try await withQueue { queue in
            await #expect(throws: JobsError.self) {
                _ = try await Self.addition(queue, ListRows(Self.urls())).add { id, _ in
                    if id != nil { throw Broken() }
                }
            }
            try await Self.expectNothingLeft(queue)
        }
    }

    @Test(.onSQLite) func `A list joins the job that another program adds with the same dedupe key meanwhile`()
        async throws
    {
        try await withQueue { queue in
            let other = try DatabaseQueue(path: queue.path)
            let rows = ListRows(Self.urls()) { row in
                guard row == Self.inTheMiddle else { return }
                try other.write { try $0.execute(sql: "INSERT INTO jobs (dedupe_key) VALUES ('daily')") }
            }
            let job = NewJob(urls: [], dedupeKey: "daily")
            #expect(try await Self.addition(queue, rows, as: job).add { id, _ in id } == nil)
            try await Self.expectNothingLeft(queue)
            // From the first row on, too.
            #expect(try await Self.addition(queue, ListRows(Self.urls()), as: job).add { id, _ in id } == nil)
            try await Self.expectNothingLeft(queue)
            #expect(try await queue.store.database.read { try $0.integer("SELECT count(*) FROM jobs") } == 1)
            try other.close()
        }
    }

    @Test(.onSQLite) func `Items that a shell cancels before their job exists are counted as cancelled`() async throws {
        try await withQueue { queue in
            let other = try DatabaseQueue(path: queue.path)
            let rows = ListRows(Self.urls()) { row in
                guard row == Self.inTheMiddle else { return }
                try other.write {
                    try $0.execute(
                        sql: "UPDATE items SET state = 'cancelled', class = 'cancelled', finished_at = 1 WHERE id <= 7")
                }
            }
            let job = try #require(try await Self.addition(queue, rows).add { id, _ in id })
            let progress = try await queue.progress(job)
            #expect(progress.queued == Self.count - 7 && progress.cancelled == 7)
            try other.close()
        }
    }

    @Test(.onSQLite) func `A list whose row in job_additions is deleted fails and leaves nothing`() async throws {
        try await withQueue { queue in
            let other = try DatabaseQueue(path: queue.path)
            let rows = ListRows(Self.urls()) { row in
                if row == Self.inTheMiddle { try other.write { try $0.execute(sql: "DELETE FROM job_additions") } }
            }
            await #expect(throws: JobsError.self) { _ = try await Self.addition(queue, rows).add { id, _ in id } }
            try await Self.expectNothingLeft(queue)
            try other.close()
        }
    }

    @Test func `The unfinished list of a dead program is removed, and the list of a live program stays`() async throws {
        try await withTemporaryQueue { queue in
            let dying = try JobStore(path: queue.path)
            let addition = try ListAddition(
                NewJob(urls: []), rows: ListRows(Self.urls()), gate: dying.database, shortList: 100)
            let begun = try #require(try await addition.addInSlices())
            #expect(try await queue.store.queue.removeBrokenAdditions() == 0)
            #expect(try await dying.queue.removeBrokenAdditions() == 0)
            #expect(try await Self.items(queue) == Int64(Self.count))
            // Its rules hold meanwhile, and its id can't be taken.
            #expect(try await queue.store.maintenance.inconsistencies() == [])
            await #expect(throws: JobsError.self) {
                try await queue.store.database.write { db in
                    try db.run("INSERT INTO jobs (id, urls) VALUES (?, '[]')", [begun.id])
                }
            }
            #expect(try await queue.store.reports.history(ofURL: "https://a.example/7.jpg").isEmpty)
            // The end of a program releases its locks.
            try await dying.close()
            dying.database.liveness.letGo(addition: begun.id)
            #expect(try await queue.store.queue.removeBrokenAdditions() == Self.count)
            try await Self.expectNothingLeft(queue)
            #expect(try await queue.store.queue.removeBrokenAdditions() == 0)
        }
    }

    @Test(.onSQLite) func `A user's trigger sees the job of each row of a long list`() async throws {
        try await withTemporaryQueue { queue in
            try await queue.store.database.write { db in
                try db.script("CREATE TABLE seen (name TEXT)")
                try db.script(
                    """
                    CREATE TRIGGER mine AFTER INSERT ON items BEGIN
                        INSERT INTO seen SELECT name FROM jobs WHERE id = NEW.job;
                    END
                    """)
            }
            _ = try await Self.addition(queue, ListRows(Self.urls()), as: NewJob(name: "mine", urls: [])).add { id, _ in
                id
            }
            let seen = try await queue.store.database.read {
                try $0.integer("SELECT count(*) FROM seen WHERE name = 'mine'")
            }
            #expect(seen == Int64(Self.count))
            try await queue.store.database.write { db in try db.script("DROP TRIGGER mine; DROP TABLE seen") }
        }
    }

    @Test func `A deleted job takes its items along, and leaves no row in moving`() async throws {
        try await withQueue { queue in
            let job = try await queue.job(100)
            _ = try await queue.job(3, name: "other")
            _ = try await queue.claim(10)
            #expect(try await queue.delete("jobs", where: "id = \(job)") == 100)
            #expect(try await queue.store.database.read { try $0.integer("SELECT count(*) FROM moving") } == 0)
            #expect(try await queue.delete("items", where: "job = 2 AND id % 2 = 0") > 0)
        }
    }
}
