import GRDB
import Glibc
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import Jobs

/// Locks belong to the file, no write waits for a reader, and a store that waits for a writer holds no lock.
@Suite("Locking", .timeLimit(.minutes(15)), .onSQLite)
struct LockingTests {
    @Test func `A worker is alive for stores that opened the database by another name`() async throws {
        try await withTemporaryDirectory { folder in
            let (real, link) = (folder.appending("worker.db").string, folder.appending("link.db").string)
            let store = try JobStore(path: real)
            let worker = try await store.workers.register(host: "test", pid: 1)
            _ = try await store.queue.enqueue(NewJob(urls: ["https://a.example/1"]))
            _ = try await store.queue.claim(limit: 1, worker: worker)
            try #require(symlink("worker.db", link) == 0)
            let other = try JobStore(path: link)
            #expect(try await other.workers.live().map(\.id) == [worker])
            #expect(try await other.workers.takeBackDeadLeases(myself: nil) == 0)
            try await other.close()
            try await store.close()
            #expect(access(link + ".lock", F_OK) != 0)
        }
    }

    @Test func `A dangling link creates the database at its target`() async throws {
        try await withTemporaryDirectory { folder in
            let link = folder.appending("link.db").string
            try #require(symlink("real.db", link) == 0)
            try await JobStore(path: link).close()
            #expect(access(folder.appending("real.db").string, F_OK) == 0)
            #expect(access(folder.appending("real.db.lock").string, F_OK) == 0)
        }
    }

    @Test func `A database with two hard links is refused`() async throws {
        try await withTemporaryDirectory { folder in
            let path = folder.appending("worker.db").string
            try await JobStore(path: path).close()
            try #require(Glibc.link(path, path + "2") == 0)
            let error = #expect(throws: JobsError.self) { try JobStore(path: path) }
            #expect(error?.code == .cannotOpen)
            #expect(error?.message.contains("2 names (hard links)") == true)
        }
    }

    @Test func `A deleted or replaced database is noticed`() async throws {
        try await withTemporaryDirectory { folder in
            let path = folder.appending("worker.db").string
            let store = try JobStore(path: path)
            try await store.database.checkFile()
            try #require(rename(path, path + ".away") == 0)
            await #expect(throws: JobsError.self) { try await store.database.checkFile() }
            try await JobStore(path: path + ".other").close()
            try #require(rename(path + ".other", path) == 0)
            let error = await #expect(throws: JobsError.self) { try await store.database.checkFile() }
            #expect(error?.code == .replaced)
            try await store.close()
        }
    }

    /// A program that has a transaction of this kind open.
    private func held(_ path: String, _ begin: String) throws -> DatabaseQueue {
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        let other = try DatabaseQueue(path: path, configuration: configuration)
        try run(other, begin)
        try run(other, "SELECT count(*) FROM jobs")
        return other
    }

    /// Outside of tasks, in which GRDB's calls are asynchronous.
    private func run(_ database: DatabaseQueue, _ sql: String) throws {
        try database.writeWithoutTransaction { db in
            let statement = try db.makeStatement(sql: sql)
            if statement.columnCount > 0 { _ = try Row.fetchAll(statement) } else { try statement.execute() }
        }
    }

    @Test func `An open reader stops neither writes nor checkpoints, and is reported until it ends`() async throws {
        try await withQueue { queue in
            let reader = try held(queue.path, "BEGIN")
            try await queue.store.database.write { db in
                try db.script("CREATE TABLE ballast (b BLOB)")
            }
            for _ in 0..<9 {
                try await queue.store.database.write { db in
                    try db.script("INSERT INTO ballast VALUES (randomblob(4194304))")
                }
            }
            let clock = ContinuousClock()
            let took = try await clock.measure {
                try await queue.store.maintenance.checkpoint()
                queue.clock.advance(6_000)
                try await queue.store.maintenance.checkpoint()
                _ = try await queue.job(1)
            }
            #expect(took < .seconds(5))
            let log = try await queue.store.maintenance.logState()
            #expect(log.bytes > 32 << 20)
            #expect(log.heldSince != nil)
            try run(reader, "COMMIT")
            try reader.close()
            try await queue.store.maintenance.checkpoint()
            try await queue.store.maintenance.checkpoint()
            #expect(try await queue.store.maintenance.logState().heldSince == nil)
            #expect(try await queue.store.maintenance.logState().bytes < 1 << 20)
        }
    }

    @Test func `Beside an open writer a read works, and a write fails after its limit with a sentence`() async throws {
        try await withTemporaryQueue { queue in
            let writer = try held(queue.path, "BEGIN IMMEDIATE")
            // The transaction stays open all the while: what waited for it would never come back.
            let reading = try JobStore.reading(path: queue.path)
            #expect(try await reading.reports.progress().isEmpty)
            try await reading.close()
            let said = Mutex<[String]>([])
            let waiting = WriteWaiting(limit: 3_000) { line in said.withLock { $0.append(line) } }
            let store = try JobStore(path: queue.path, waiting: waiting)
            await #expect(throws: JobsError.self) {
                do {
                    _ = try await store.queue.enqueue(NewJob(urls: ["https://a.example/"]))
                } catch let error as JobsError {
                    #expect(error.code == .busy)
                    #expect(error.message.hasSuffix("and has been for 3 s."))
                    throw error
                }
            }
            #expect(said.withLock { $0.count } == 1)
            try await store.close()
            try run(writer, "COMMIT")
            try writer.close()
        }
    }

    @Test func `A write that waits for SQLite leaves the lock file free`() async throws {
        try await withTemporaryQueue { queue in
            let writer = try held(queue.path, "BEGIN IMMEDIATE")
            async let waiting = queue.store.queue.enqueue(NewJob(urls: ["https://a.example/"]))
            try await Task.sleep(for: .milliseconds(200))
            // Most of the time the lock is free, though the store waits for its turn.
            let lock = try LockFile(path: queue.path + ".lock")
            var free = 0
            for _ in 0..<100 {
                if try lock.withWriteLockIfFree({ true }) == true { free += 1 }
                usleep(1_000)
            }
            #expect(free > 50)
            try run(writer, "COMMIT")
            try writer.close()
            #expect(try await waiting == 1)
        }
    }
}
