import Core
import Jobs
import Testing

@Suite("The audit", .timeLimit(.minutes(15)), .onSQLite)
struct AuditTests {
    static let damages: [(sql: String, rule: String)] = [
        (
            "UPDATE jobs SET queued = queued + 1, total = total + 1 WHERE id = 1",
            "the counters of a job are the numbers of its items"
        ),
        (
            "UPDATE jobs SET done = done - 1, cached = cached + 1 WHERE id = 1",
            "the counters of a job are the numbers of its items"
        ),
        (
            "UPDATE items SET state = 'cancelled' WHERE state = 'queued'",
            "the counters of a job are the numbers of its items"
        ),
        ("DELETE FROM items WHERE state = 'done'", "the counters of a job are the numbers of its items"),
        ("DELETE FROM items", "the counters of a job are the numbers of its items"),
        ("DELETE FROM jobs", "every item belongs to a job"),
        ("DELETE FROM leases", "an active item has a lease"),
        ("UPDATE items SET lease = NULL WHERE state = 'active'", "an active item has a lease"),
        ("DELETE FROM blobs", "every entry's blob is in the index"),
        ("UPDATE cache_totals SET bytes = bytes + 1", "the cache's size is the sum of its blobs' sizes"),
        (
            "INSERT INTO variants VALUES ('i', 's', 'c', 'v', 'nowhere', 1, 'webp', 1, 1, 1)",
            "every variant's blob is in the index"
        ),
        ("UPDATE sources SET hash = 'nowhere'", "every kept source's blob is in the index"),
        ("UPDATE items SET message = NULL WHERE state = 'failed'", "a failed item carries its reason"),
        ("UPDATE jobs SET state = 'finished' WHERE id = 1", "a finished job has nothing left to do"),
        (
            "UPDATE items SET state = 'lost' WHERE state = 'queued'",
            "the counters of a job are the numbers of its items"
        ),
    ]

    @Test(arguments: damages)
    func `Every rule of the audit reports a row that breaks it`(_ damage: (sql: String, rule: String)) async throws {
        let found = try await withTemporaryQueue { queue in
            _ = try await queue.job(4)
            let items = try await queue.claim(3)
            try await queue.end(items[0], items[0].completion(clock: queue.clock))
            try await queue.end(items[1], .failed(.http(404)))
            #expect(try await queue.store.maintenance.inconsistencies() == [])
            try await queue.corrupt(damage.sql)
            return try await queue.store.maintenance.inconsistencies()
        }
        #expect(found.contains { $0.hasSuffix(": \(damage.rule).") }, "\(found)")
    }

    @Test func `The report of a broken rule has the number of rows and an example`() async throws {
        let found = try await withTemporaryQueue { queue in
            _ = try await queue.job(3)
            try await queue.corrupt("UPDATE items SET job = 77 WHERE id IN (1, 2)")
            return try await queue.store.maintenance.inconsistencies()
        }
        #expect(found.contains("2 rows, such as 1, break the rule: every item belongs to a job."))
    }

    @Test func `The index counts its blobs in a list, and forgets a blob with its source and renditions`()
        async throws
    {
        try await withQueue { queue in
            _ = try await queue.job(2)
            let items = try await queue.claim()
            for item in items { try await queue.end(item, item.completion(clock: queue.clock)) }
            let hashes = items.map { ClaimedItem.hash(of: $0.id) }
            #expect(try await queue.store.cache.known(blobs: hashes + ["nowhere"]) == 2)
            #expect(try await queue.store.cache.blobs(after: "", limit: 1).map(\.hash) == [hashes[0]])
            #expect(try await queue.store.cache.blobs(after: hashes[0], limit: 9).map(\.hash) == [hashes[1]])
            try await queue.store.cache.forget(blobs: [hashes[0]])
            #expect(try await queue.store.cache.known(blobs: hashes) == 1)
            #expect(try await queue.store.cache.source(key: items[0].key)?.isKept == false)
            #expect(try await queue.store.cache.source(key: items[1].key)?.isKept == true)
            #expect(try await queue.store.cache.renditions(ofURL: items[0].url, named: nil) == [])
            #expect(
                try await queue.store.cache.renditions(ofURL: items[1].url, named: "original").map(\.blob) == [
                    hashes[1]
                ])
        }
    }
}
