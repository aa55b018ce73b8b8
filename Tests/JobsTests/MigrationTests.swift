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
                    INSERT INTO leases (id, worker, claimed_at, expires_at) VALUES (1, 1, 1, 1);
                    UPDATE items SET state = 'active', lease = 1 WHERE id = 1;
                    UPDATE items SET state = 'done', lease = NULL, source = 'aa', finished_at = 5 WHERE id = 1;
                    INSERT INTO renditions (item, name, blob, size, format, width, height)
                        VALUES (1, 'original', 'aa', 10, 'jpeg', 4, 3), (1, 'thumb', 'bb', 5, 'webp', 2, 1);
                    INSERT INTO blobs (hash, size, created_at, used_at) VALUES ('aa', 10, 1, 2), ('bb', 5, 1, 2);
                    INSERT INTO variants (identity, source, spec, coder, blob, size, format, width, height, created_at)
                        VALUES ('i', 'aa', 's', 'c', 'bb', 5, 'webp', 2, 1, 1);
                    INSERT INTO sources (key, hash, size, kept, fetched_at) VALUES ('https://a.example/1.jpg', 'aa', 10, 1, 1);
                    """)
            // What later versions know besides, they write down with a result.
            if try db.tableExists("entries") {
                try db.execute(sql: "UPDATE blobs SET is_source = hash = 'aa'; \(Schema.entriesOfResults)")
            }
            if try db.columns(in: "sources").contains(where: { $0.name == "used_at" }) {
                try db.execute(sql: "UPDATE sources SET used_at = \(Schema.now)")
            }
        }
        try database.close()
    }

    /// All but the latest, which is what a new database has.
    static let older = Schema.migrator.migrations.dropLast()

    @Test(arguments: older)
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

    static let clocks = [
        (#"{"boot":"b","uptime":1,"wall":1,"shift":315360000000}"#, 0), ("what time is it?", 0),
        (#"{"boot":"b","uptime":1,"wall":1,"shift":0}"#, 1), (nil, 1),
    ]

    @Test(arguments: clocks.indices)
    func `Waits of hosts are kept where the clock was never set`(_ index: Int) async throws {
        let (clock, kept) = Self.clocks[index]
        try await withTemporaryDirectory { folder in
            let path = folder.appending("worker.db").string
            let database = try DatabaseQueue(path: path)
            try Schema.migrator.migrate(database, upTo: "8-steady-time")
            let now = JobStore.wallClock()
            try await database.write { db in
                try db.execute(
                    sql: "INSERT INTO hosts (host, not_before, set_at) VALUES ('a.example', ?, ?)",
                    arguments: [now + 3_600_000, now])
                if let clock {
                    try db.execute(sql: "INSERT INTO cache_properties VALUES ('clock', ?)", arguments: [clock])
                }
            }
            try database.close()
            let store = try JobStore(path: path)
            #expect(try await store.hostMemories().count == kept)
            try await store.close()
        }
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
