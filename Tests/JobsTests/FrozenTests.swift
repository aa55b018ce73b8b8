import GRDB
import SystemPackage
import TestSupport
import Testing

@testable import Jobs

/// Databases as older versions really left them, as text that today's migrations have no hand in.
@Suite("Frozen databases", .timeLimit(.minutes(15)))
struct FrozenTests {
    /// As `.dump` wrote it. Never to be written anew: that these can be upgraded is what is promised.
    private func text(_ version: Int) throws -> String {
        let folder = FilePath(#filePath).removingLastComponent().appending("Frozen")
        let bytes = try #require(ProcessTable.contents(of: folder.appending("version-\(version).sql").string))
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Whatever stands in the schema, word for word but for spaces.
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

    @Test(arguments: [1, 9])
    func `It gets the schema of a new one, and keeps what is in it`(_ version: Int) async throws {
        try await withTemporaryDirectory { folder in
            let path = folder.appending("old.db").string
            let old = try DatabaseQueue(path: path)
            let text = try text(version)
            try await old.writeWithoutTransaction { try $0.execute(sql: text) }
            #expect(try await old.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM grdb_migrations") } == version)
            try old.close()
            let store = try JobStore(path: path)
            #expect(try await store.inconsistencies() == [])
            #expect(try await store.integrity().complaints == [])
            let totals = try await store.cacheTotals()
            #expect((totals.blobs, totals.bytes) == (2, 15))
            #expect(try await store.cacheEntry(ofURL: "https://a.example/1.jpg", variant: "thumb")?.blob == "bb")
            #expect(try await store.backlog().queued == 1)
            // And can be worked with.
            let worker = try await store.register(host: "test", pid: 1)
            let items = try await store.claim(limit: 9, worker: worker).items
            #expect(items.map(\.url) == ["https://a.example/2.jpg"])
            _ = try await store.finish([(item: items[0], ending: .failed(FailureRecord(.notAnImage, "no image")))])
            try await store.unregister(worker: worker)
            #expect(try await store.inconsistencies() == [])
            try await store.close()
            let new = folder.appending("new.db").string
            try await JobStore(path: new).close()
            #expect(try schema(path) == schema(new))
        }
    }
}
