import Core
import GRDB
import SystemPackage
import TestSupport
import Testing

@testable import Jobs

/// The databases of every released version open with all their rows; those of other versions are left alone.
@Suite("Migrations", .timeLimit(.minutes(15)), .onSQLite)
struct MigrationTests {
    /// A database as `.dump` wrote it, with which today's migrations have nothing to do.
    ///
    /// Never to be written anew: that these can be upgraded is what is promised.
    private func frozen(_ name: String) throws -> String {
        let folder = FilePath(#filePath).removingLastComponent().appending("Frozen")
        let bytes = try #require(ProcessTable.contents(of: folder.appending("\(name).sql").string))
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Every object of the schema, word for word but for spaces.
    private func schema(_ path: String) throws -> [String] {
        let database = try DatabaseQueue(path: path)
        defer { try? database.close() }
        return try database.read { db in
            try Row.fetchAll(db, sql: "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name").map {
                let sql: String = $0["sql"] ?? ""
                let words = sql.split(whereSeparator: \.isWhitespace).joined(separator: " ")
                return "\($0["type"] as String) \($0["name"] as String) \($0["tbl_name"] as String): \(words)"
            }
        }
    }

    @Test(arguments: ["1-schema"])
    func `A database of a released version gets the schema of a new one, and keeps its rows`(_ version: String)
        async throws
    {
        try await withTemporaryDirectory { folder in
            let path = folder.appending("old.db").string
            let old = try DatabaseQueue(path: path)
            let text = try frozen(version)
            try await old.writeWithoutTransaction { try $0.execute(sql: text) }
            let applied = try await old.read { try String.fetchAll($0, sql: "SELECT identifier FROM grdb_migrations") }
            #expect(applied.last == version)
            try old.close()
            let store = try JobStore(path: path)
            #expect(try await store.maintenance.inconsistencies() == [])
            #expect(try await store.maintenance.integrity().complaints == [])
            let totals = try await store.cache.totals()
            #expect((totals.blobs, totals.bytes) == (2, 15))
            #expect(try await store.cache.entry(ofURL: "https://a.example/1.jpg", variant: "thumb")?.blob == "bb")
            #expect(try await store.reports.backlog().queued == 1)
            // And can be worked with.
            let worker = try await store.workers.register(host: "test", pid: 1)
            let items = try await store.queue.claim(limit: 9, worker: worker).items
            #expect(items.map(\.url) == ["https://a.example/2.jpg"])
            _ = try await store.queue.finish([(item: items[0], ending: .failed(Failure(.notAnImage, "no image")))]
            )
            try await store.workers.unregister(worker: worker)
            #expect(try await store.maintenance.inconsistencies() == [])
            try await store.close()
            let new = folder.appending("new.db").string
            try await JobStore(path: new).close()
            #expect(try schema(path) == schema(new))
        }
    }

    /// Opens a database with other migrations in each way that there is, and expects that all are refused.
    private func expectRefusal(of migrations: [String], _ code: JobsError.Code, saying sentence: String) async throws {
        try await withTemporaryDirectory { folder in
            let path = folder.appending("worker.db").string
            try await JobStore(path: path).close()
            let database = try DatabaseQueue(path: path)
            try await database.write { db in
                try db.execute(sql: "DELETE FROM grdb_migrations")
                for name in migrations {
                    try db.execute(sql: "INSERT INTO grdb_migrations VALUES (?)", arguments: [name])
                }
            }
            try database.close()
            let before = ProcessTable.contents(of: path)
            let openers: [() throws -> Void] = [
                { _ = try JobStore(path: path) }, { _ = try JobStore(readOnly: path) },
                { _ = try Salvage.run(database: path, now: WallTime(milliseconds: 1)) { [] } },
            ]
            for open in openers {
                let error = #expect(throws: JobsError.self) { try open() }
                #expect(error?.code == code)
                #expect(error?.message.contains(sentence) == true)
            }
            let isUntouched = ProcessTable.contents(of: path) == before
            #expect(isUntouched)
        }
    }

    @Test func `A database of a newer version is refused, and not a byte of it is changed`() async throws {
        try await expectRefusal(of: ["1-schema", "2099-flying-images"], .tooNew, saying: "newer version of worker")
    }

    @Test func `A database of a development version is refused with the advice to make a new database`() async throws {
        try await expectRefusal(
            of: ["1-queue-and-cache-index", "2-source-facts"], .tooOld, saying: "make a new one with: worker init")
    }
}
