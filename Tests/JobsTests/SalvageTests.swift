import Core
import GRDB
import Glibc
import SystemPackage
import TestSupport
import Testing

@testable import Jobs

@Suite("Rebuilding a database", .timeLimit(.minutes(15)), .onSQLite)
struct SalvageTests {
    private static let now = WallTime(milliseconds: 1_700_000_000_000)

    private func make(_ folder: FilePath, jobs: Int = 31) async throws -> String {
        let path = folder.appending("worker.db").string
        let store = try JobStore(path: path)
        for number in 0..<jobs {
            _ = try await store.queue.enqueue(NewJob(name: "job \(number)", urls: ["https://a.example/\(number).jpg"]))
        }
        try await store.close()
        return path
    }

    private func rebuild(_ path: String) throws -> Salvage.Report {
        try Salvage.run(database: path, now: Self.now) { [] }
    }

    @Test func `A database of a newer version is left alone, with its last step in the log or not`() async throws {
        for isInLog in [false, true] {
            try await withTemporaryDirectory { folder in
                let path = try await make(folder)
                let shell = try DatabaseQueue(path: path)
                try await shell.writeWithoutTransaction { db in
                    try db.execute(sql: "PRAGMA wal_autocheckpoint = 0")
                    try db.execute(sql: "INSERT INTO grdb_migrations VALUES ('2099-flying-images')")
                    if !isInLog { _ = try db.checkpoint(.truncate) }
                }
                if !isInLog { try shell.close() }
                let before = ["", "-wal"].map { ProcessTable.contents(of: path + $0) }
                let error = #expect(throws: JobsError.self) { try rebuild(path) }
                #expect(error?.code == .tooNew)
                #expect(["", "-wal"].map { ProcessTable.contents(of: path + $0) } == before)
                let names = fileNames(in: folder.string).filter { $0.contains("broken") || $0.contains("rebuilding") }
                #expect(names == [])
                if isInLog { try shell.close() }
            }
        }
    }

    @Test func `A rebuild keeps limits, tries, totals, pins and lost files`() async throws {
        try await withTemporaryDirectory { folder in
            let path = try await make(folder, jobs: 2)
            let store = try JobStore(path: path)
            try await store.hosts.setLimits(LimitsRecord(host: "a.example", perHost: 3, rate: 2.5))
            try await store.hosts.setLimits(LimitsRecord(host: "*", concurrency: 9))
            let worker = try await store.workers.register(host: "test", pid: 1)
            let items = try await store.queue.claim(limit: 9, worker: worker).items
            for item in items {
                var record = TryRecord(at: Self.now)
                record.received = item.id
                try await store.database.write { [record] in
                    try TryRecord.save([(item.id, record)], in: RowStatements($0))
                }
                let clock = TestClock()
                #expect(try await store.queue.finish([(item, item.completion(clock: clock))]) == [])
            }
            let lost = LostFile(key: "https://a.example/old.jpg", variant: "", blob: "00")
            try await store.database.write {
                try LostFiles.note([lost], now: Moment(wall: Self.now, jumps: 0).steady, in: $0)
            }
            try await store.cache.pin([items[0].url])
            try await store.workers.unregister(worker: worker)
            let limits = try await store.hosts.limits()
            var totals = try await store.cache.totals()
            #expect(totals.misses == 2 && limits.count == 2)
            try await store.close()
            // One of the files is there no more.
            let kept = ClaimedItem.hash(of: items[0].id)
            let report = try Salvage.run(database: path, now: Self.now) { [(hash: kept, size: Int64(10))] }
            #expect(report.isComplete && report.lostFiles == 1)
            let again = try JobStore(path: path)
            #expect(try await again.hosts.limits() == limits)
            for item in items { #expect(try await again.reports.tries(ofURL: item.url).map(\.received) == [item.id]) }
            (totals.blobs, totals.bytes) = (1, 10)
            #expect(try await again.cache.totals() == totals)
            let names = try await again.lostFiles.list(limit: 9).map { "\($0.key) \($0.variant)" }
            #expect(names == ["\(items[1].url) ", "\(items[1].url) original", "\(lost.key) "].sorted())
            #expect(try await again.cache.pinned() == [items[0].url])
            #expect(try await again.maintenance.inconsistencies() == [])
            try await again.close()
        }
    }

    /// The states of all items, in a consistent database.
    private func expect(_ states: [String], at path: String) async throws {
        let store = try JobStore(path: path)
        let found = try await store.database.read { db in
            try db.texts("SELECT state FROM items ORDER BY id")
        }
        #expect(found == states)
        #expect(try await store.maintenance.inconsistencies() == [])
        try await store.close()
    }

    /// SQLite does not notice damage within a value.
    @Test(arguments: ["'771bc87c7ad1e4b8\u{FFFD}5I'", "x'00FF'", "''", "7", "hex(zeroblob(31)) || 'ZZ'"])
    func `A result with an invalid file name is queued again and reported`(_ value: String) async throws {
        try await withTemporaryDirectory { folder in
            let path = try await make(folder, jobs: 0)
            let store = try JobStore(path: path)
            _ = try await store.queue.enqueue(NewJob(urls: (0..<3).map { "https://a.example/\($0).jpg" }))
            let worker = try await store.workers.register(host: "test", pid: 1)
            let items = try await store.queue.claim(limit: 3, worker: worker).items
            let clock = TestClock()
            _ = try await store.queue.finish(items.map { ($0, $0.completion(clock: clock)) })
            try await store.workers.unregister(worker: worker)
            try await store.database.write { db in
                try db.script("UPDATE renditions SET blob = \(value) WHERE item = \(items[1].id)")
            }
            try await store.close()
            let report = try Salvage.run(database: path, now: Self.now) {
                items.map { (hash: ClaimedItem.hash(of: $0.id), size: Int64(10)) }
            }
            #expect(report.unreadable == ["1 row of the table renditions was invalid."])
            #expect(report.requeued == 1)
            try await expect(["done", "queued", "done"], at: path)
        }
    }

    @Test func `An item with variants of its own is queued again, and makes no other item lack them`() async throws {
        try await withTemporaryDirectory { folder in
            let path = try await make(folder, jobs: 0)
            let store = try JobStore(path: path)
            _ = try await store.queue.enqueue(NewJob(urls: (0..<3).map { "https://a.example/\($0).jpg" }))
            try await store.database.write { db in
                try db.script("UPDATE items SET variants = 'hero=640x,webp' WHERE url LIKE '%/1.jpg'")
            }
            let worker = try await store.workers.register(host: "test", pid: 1)
            let items = try await store.queue.claim(limit: 3, worker: worker).items
            let clock = TestClock()
            _ = try await store.queue.finish(items.map { ($0, $0.completion(clock: clock)) })
            try await store.workers.unregister(worker: worker)
            try await store.database.write { db in
                try db.script("UPDATE renditions SET name = 'hero' WHERE item = \(items[1].id)")
                // A lost row, without which nothing is compared.
                try db.script("UPDATE renditions SET blob = '' WHERE item = \(items[2].id)")
            }
            try await store.close()
            let report = try Salvage.run(database: path, now: Self.now) {
                items.map { (hash: ClaimedItem.hash(of: $0.id), size: Int64(10)) }
            }
            #expect(report.requeued == 2)
            try await expect(["done", "queued", "queued"], at: path)
        }
    }

    @Test func `An item that lost a part of its results is queued again`() async throws {
        try await withTemporaryDirectory { folder in
            let path = try await make(folder, jobs: 0)
            let store = try JobStore(path: path)
            let urls = (0..<400).map { "https://a.example/\($0).jpg" }
            _ = try await store.queue.enqueue(NewJob(urls: urls))
            let worker = try await store.workers.register(host: "test", pid: 1)
            let items = try await store.queue.claim(limit: 400, worker: worker).items
            let clock = TestClock()
            _ = try await store.queue.finish(items.map { ($0, $0.completion(clock: clock)) })
            try await store.workers.unregister(worker: worker)
            try await store.database.write { db in
                try db.script(
                    """
                    INSERT INTO renditions SELECT item, 'thumb', blob, size, format, width, height FROM renditions
                    """)
            }
            try await store.close()
            // A page in the middle of the results can't be read any more.
            let database = try DatabaseQueue(path: path)
            let page = try await database.writeWithoutTransaction { db in
                _ = try db.checkpoint(.truncate)
                let pages = try Int.fetchAll(
                    db,
                    sql: "SELECT pageno FROM dbstat WHERE name = 'renditions' AND pagetype = 'leaf' ORDER BY path")
                return pages.isEmpty ? nil : pages[pages.count / 2]
            }
            try database.close()
            var bytes = try #require(ProcessTable.contents(of: path))
            let start = (try #require(page) - 1) * 4_096
            for index in start..<start + 4_096 { bytes[index] = 0xFF }
            let file = try FileDescriptor.open(FilePath(path), .writeOnly, options: .truncate)
            _ = try file.closeAfter { try file.writeAll(bytes) }
            let files = items.map { (hash: ClaimedItem.hash(of: $0.id), size: Int64(10)) }
            let report = try Salvage.run(database: path, now: Self.now) { files }
            #expect(!report.isComplete && (1..<400).contains(report.requeued))
            let again = try JobStore(path: path)
            let halves = try await again.database.read { db in
                try db.int(
                    """
                    SELECT count(*) FROM items WHERE state = 'done'
                        AND (SELECT count(*) FROM renditions WHERE item = items.id) <> 2
                    """)
            }
            #expect(halves == 0)
            #expect(try await again.reports.backlog().queued == report.requeued)
            #expect(try await again.maintenance.inconsistencies() == [])
            try await again.close()
        }
    }

    @Test func `A truncated database is rebuilt with all rows that are left`() async throws {
        try await withTemporaryDirectory { folder in
            let path = try await make(folder)
            var info = stat()
            #expect(stat(path, &info) == 0)
            let whole = try #require(ProcessTable.contents(of: path))
            // The last page; a part of one; half of it, with what the newest tables are.
            for missing in [4_096, 100, Int(info.st_size) / 2] {
                let file = try FileDescriptor.open(FilePath(path), .writeOnly, options: .truncate)
                _ = try file.closeAfter { try file.writeAll(whole.dropLast(missing)) }
                let report = try rebuild(path)
                #expect(report.jobs == 31 && report.items == 31 && !report.isComplete, "\(report)")
                let reason = report.unreadable.first
                #expect(reason?.contains("is \(missing) bytes too short") == true, "\(report.unreadable)")
                let kept = ProcessTable.contents(of: report.kept)?.count
                #expect(kept == whole.count - missing)
            }
            #expect(fileNames(in: folder.string).filter { $0.contains("rebuilding") } == [])
            let store = try JobStore(path: path)
            #expect(try await store.maintenance.inconsistencies() == [])
            try await store.close()
        }
    }

    @Test func `A whole database is rebuilt with all rows`() async throws {
        try await withTemporaryDirectory { folder in
            let path = try await make(folder)
            let report = try rebuild(path)
            #expect(report.jobs == 31 && report.items == 31 && report.isComplete)
        }
    }

    @Test func `A write to the old database is refused before and after the rebuild replaces it`() async throws {
        try await withTemporaryDirectory { folder in
            let path = try await make(folder)
            let shell = try DatabaseQueue(path: path)
            let insert = """
                INSERT INTO jobs (urls) VALUES (json_array('https://a.example/new.jpg'));
                """
            let report = try Salvage.run(database: path, now: Self.now) {
                // Every job was read by now.
                let error = #expect(throws: DatabaseError.self) { try shell.write { try $0.execute(sql: insert) } }
                #expect(error?.resultCode == .SQLITE_BUSY)
                return []
            }
            #expect(report.isComplete)
            for statement in [insert, "INSERT INTO items (job, url) VALUES (1, 'https://a.example/new.jpg')"] {
                let error = #expect(throws: DatabaseError.self) { try shell.write { try $0.execute(sql: statement) } }
                #expect(error?.message == "this database was replaced; open it again")
            }
            try shell.close()
            let again = try DatabaseQueue(path: path)
            try await again.write { try $0.execute(sql: insert) }
            #expect(try await again.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM jobs") } == 32)
            try again.close()
        }
    }

    @Test func `The rebuild of a database with an open write transaction is refused`() async throws {
        try await withTemporaryDirectory { folder in
            let path = try await make(folder, jobs: 1)
            var configuration = Configuration()
            configuration.allowsUnsafeTransactions = true
            let shell = try DatabaseQueue(path: path, configuration: configuration)
            try await shell.writeWithoutTransaction { try $0.execute(sql: "BEGIN IMMEDIATE") }
            let error = #expect(throws: JobsError.self) { try rebuild(path) }
            #expect(error?.code == .busy)
            try await shell.writeWithoutTransaction { try $0.execute(sql: "ROLLBACK") }
            #expect(try rebuild(path).isComplete)
            try shell.close()
        }
    }

    @Test func `A failed rebuild leaves the database as it was`() async throws {
        struct NoCache: Error {}
        try await withTemporaryDirectory { folder in
            let path = try await make(folder, jobs: 3)
            let before = fileNames(in: folder.string).sorted()
            #expect(throws: JobsError.self) { try Salvage.run(database: path, now: Self.now) { throw NoCache() } }
            #expect(fileNames(in: folder.string).sorted() == before)
            let store = try JobStore(path: path)
            _ = try await store.queue.enqueue(NewJob(urls: ["https://a.example/4.jpg"]))
            #expect(try await store.reports.backlog().queued == 4)
            try await store.close()
        }
    }
}
