import Core
import Foundation
import GRDB
import TestSupport
import Testing

@testable import Jobs

@Suite("Pages of tables with broken keys", .timeLimit(.minutes(5)), .onSQLite)
struct PageOrderTests {
    @Test(arguments: 1...20) func `The order of keys is SQLite's`(_ seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        let values: [SQLValue] = (0..<60).map { _ in
            switch Int.random(in: 0..<5, using: &random) {
            case 0: .null
            case 1: .integer(.random(in: -9...9, using: &random))
            case 2: .real(.random(in: -9...9, using: &random))
            case 3: .text(["", "a", "A", "é", "e\u{301}", "\u{FFFD}", "😀", "zz"].randomElement(using: &random)!)
            default: .bytes((0..<2).map { _ in UInt8.random(in: 0...255, using: &random) })
            }
        }
        try DatabaseQueue().write { sqlite in
            let db = Connection(sqlite)
            try db.run("CREATE TABLE v (a, b)")
            for value in values {
                try db.run("INSERT INTO v VALUES (?, ?)", [value, values.randomElement(using: &random)])
            }
            let rows = try db.rows("SELECT DISTINCT a, b FROM v ORDER BY a, b").map(\.values)
            for (first, second) in zip(rows, rows.dropFirst()) {
                #expect(PageOrder.isBeyond(first, second) && !PageOrder.isBeyond(second, first), "\(first) \(second)")
                #expect(!PageOrder.isBeyond(first, first))
            }
        }
    }

    /// More of them than any page has, so that a page without an end would be read for ever.
    @Test(
        .enabled(if: Shell.isThere, Shell.missing), arguments: ["CAST(x'ff' || n AS TEXT)", "CAST(n || x'ff' AS BLOB)"])
    func `Tables full of keys that are no text are read and pruned to their end`(_ key: String) async throws {
        try await withTemporaryQueue { queue in
            _ = try await queue.job(3)
            for item in try await queue.claim() { try await queue.end(item, item.completion(clock: queue.clock)) }
            try queue.shell.expect(
                """
                CREATE TEMP TABLE n AS WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 3000)
                    SELECT \(key) AS key FROM n;
                INSERT INTO blobs (hash, size, created_at, used_at, lifetime) SELECT key, 1, 1.5, 1.5, 1 FROM n;
                INSERT INTO blobs (hash, size, created_at, used_at, dying) SELECT key || 'd', 1, 1.5, 1.5, 1 FROM n;
                INSERT INTO cache_entries (key, variant, blob, format) SELECT key, key, 'x', 'png' FROM n;
                INSERT INTO removed_links (key, variant, format, removal) SELECT key, key, 'png', 1.5 FROM n;
                INSERT INTO sources (key, hash, size, kept, fetched_at) SELECT key, 'x', 1, 1, 1 FROM n;
                INSERT INTO lost_files (key, variant, blob, found_at) SELECT key, '', 'x', 1 FROM n;
                """)
            let store = queue.store
            // A page has at least a hundred rows.
            func pages(_ next: () async throws -> Bool) async throws {
                for _ in 0..<100 where try await !next() { return }
                Issue.record("There is no end")
            }
            var hash = ""
            try await pages {
                let page = try await store.cache.blobs(after: hash, limit: 200)
                hash = page.last?.hash ?? hash
                return !page.isEmpty
            }
            var entry: CacheEntry?
            try await pages {
                let page = try await store.cache.entries(after: entry, limit: 200)
                entry = page.last ?? entry
                return !page.isEmpty
            }
            entry = nil
            try await pages {
                entry = try await store.cache.entries(EntrySelection(), after: entry).next
                return entry != nil
            }
            for expiry in [CacheEviction.Expiry.used, .created] {
                var last: CacheEviction.Candidate?
                try await pages {
                    last = try await store.eviction.candidates(nil, by: expiry, after: last).next
                    return last != nil
                }
                try await pages {
                    last = try await store.eviction.expired(by: expiry, after: last).next
                    return last != nil
                }
            }
            try await pages {
                let removed = try await store.cache.links.removed(limit: 500)
                try await store.cache.links.forget(
                    removed, settledTo: try await store.cache.links.blobs(of: removed.map(\.link)))
                return !removed.isEmpty
            }
            _ = try await store.maintenance.repairLostFiles()
            _ = try await store.cache.remove(try await store.cache.entries(EntrySelection()).page)
            // No hash of a file: nothing refers to it but entries that no statement finds again.
            try await store.cache.forget(blobs: ["x"])
            _ = try await store.maintenance.prune(endedBefore: .max)
        }
    }
}
