import GRDB
import SystemPackage
import TestSupport
import Testing

@testable import Jobs

/// Every version that was released opens, with what was in it; newer ones are left alone.
@Suite("Migrations", .timeLimit(.minutes(15)))
struct MigrationTests {
    /// A database as an older version left it: one job with a result, one that waits.
    private func make(_ path: String, version: String) throws {
        let database = try DatabaseQueue(path: path)
        try Schema.migrator.migrate(database, upTo: version)
        try database.write { db in
            try db.execute(
                sql: """
                    INSERT INTO jobs (name, urls, variants) VALUES
                        ('old', json_array('https://a.example/1.jpg#part', 'https://a.example/2.jpg'), 'thumb=8x6,webp');
                    INSERT INTO leases VALUES (1, 1, 1, 1);
                    UPDATE items SET state = 'active', lease = 1 WHERE id = 1;
                    UPDATE items SET state = 'done', lease = NULL, source = 'aa', finished_at = 5 WHERE id = 1;
                    INSERT INTO renditions VALUES (1, 'original', 'aa', 10, 'jpeg', 4, 3), (1, 'thumb', 'bb', 5, 'webp', 2, 1);
                    INSERT INTO blobs (hash, size, created_at, used_at) VALUES ('aa', 10, 1, 2), ('bb', 5, 1, 2);
                    INSERT INTO variants VALUES ('i', 'aa', 's', 'c', 'bb', 5, 'webp', 2, 1, 1);
                    INSERT INTO sources (key, hash, size, kept, fetched_at) VALUES ('https://a.example/1.jpg', 'aa', 10, 1, 1);
                    """)
        }
        try database.close()
    }

    static let released = ["1-queue-and-cache-index", "2-source-facts"]

    @Test(arguments: released)
    func `A database of an older version is upgraded with all that is in it`(_ version: String) async throws {
        try await withTemporaryDirectory { folder in
            let path = folder.appending("worker.db").string
            try make(path, version: version)
            let store = try JobStore(path: path)
            let totals = try await store.cacheTotals()
            #expect((totals.blobs, totals.bytes) == (2, 15))
            let entry = try await store.cacheEntry(ofURL: "https://a.example/1.jpg", variant: "thumb")
            #expect(entry?.blob == "bb")
            let sources = try await store.evictionCandidates(.sources, by: .modified).page
            #expect(sources.map(\.hash) == ["aa"])
            // Nobody knows when its URLs were used: they are not taken for forgotten.
            let folder = CacheFolder(exists: { _, _ in true }, remove: { _ in nil })
            let hourAgo = try await store.cacheTime() - 3_600_000
            #expect(try await store.forgetKeys(usedBefore: hourAgo, in: folder) == 0)
            let backlog = try await store.backlog()
            #expect(backlog.queued == 1)
            #expect(try await store.inconsistencies() == [])
            try await store.close()
        }
    }

    @Test func `Every migration before the latest is tried`() {
        #expect(Schema.migrator.migrations.prefix(2) == Self.released[...])
    }

    @Test func `A newer version is refused, and not a byte of it is changed`() async throws {
        try await withTemporaryDirectory { folder in
            let path = folder.appending("worker.db").string
            try await JobStore(path: path).close()
            let database = try DatabaseQueue(path: path)
            try await database.write {
                try $0.execute(sql: "INSERT INTO grdb_migrations VALUES ('2099-flying-images')")
            }
            try database.close()
            let before = ProcessTable.contents(of: path)
            let error = #expect(throws: JobsError.self) { _ = try JobStore(path: path) }
            #expect(error?.code == .tooNew)
            let isUntouched = ProcessTable.contents(of: path) == before
            #expect(isUntouched)
        }
    }
}
