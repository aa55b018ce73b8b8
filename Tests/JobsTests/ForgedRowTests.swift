import Core
import Testing

@testable import Jobs

/// Rows that a shell can write and no worker or trigger would: the next worker mends them.
@Suite("Forged rows", .timeLimit(.minutes(15)), .enabled(if: Shell.isThere, Shell.missing), .onSQLite)
struct ForgedRowTests {
    /// Columns and views that only triggers are meant to write. What a shell writes there can't be told from what a
    /// trigger writes, so a worker recounts it.
    static let forged = [
        "UPDATE jobs SET total = total + 4, done = done + 4, revision = revision + 1",
        "UPDATE jobs SET state = 'queued', finished_at = NULL, revision = revision + 1 WHERE state = 'finished'",
        "INSERT INTO uncounted_moves VALUES (1, 1, 'done', 0, 0, 'failed', 0, 0, 0, 'timeout')",
        """
        UPDATE jobs SET queued = queued + 6000000000000000000, total = total + 6000000000000000000,
            revision = revision + 1
        """,
        "UPDATE jobs SET total = total + 2000000, cancelled = cancelled + 2000000, revision = revision + 1",
        "UPDATE OR FAIL items SET state = 'queued', lease = 5 WHERE state = 'failed'",
        "UPDATE sqlite_sequence SET seq = 9223372036854775807", "UPDATE sqlite_sequence SET seq = 'many'",
        ".dbconfig enable_trigger off\nINSERT INTO workers (id, host, pid, started_at, seen_at) VALUES (9223372036854775807, 'x', 1, 1, 1)",
        ".dbconfig enable_trigger off\nINSERT INTO leases VALUES (9223372036854775807, 1, 1, 1, 0)",
        "PRAGMA ignore_check_constraints = ON; INSERT INTO event_log VALUES (9223372036854775807, 1, '[]')",
        ".dbconfig enable_trigger off\nUPDATE jobs SET priority = -101; UPDATE items SET priority = 1e308 WHERE id < 3",
        ".dbconfig enable_trigger off\nUPDATE items SET priority = 'x' WHERE id = 2; UPDATE items SET priority = 500 WHERE id = 3",
        ".dbconfig enable_trigger off\nUPDATE items SET deaths = 'many' WHERE id = 2; UPDATE items SET deaths = 2.5 WHERE id = 3",
        """
        .dbconfig enable_trigger off
        PRAGMA ignore_check_constraints = ON; UPDATE items SET state = 'bogus' WHERE id = 1 AND finished_at IS NULL;
        UPDATE jobs SET state = 'bogus' WHERE id = 2
        """,
        """
        .dbconfig enable_trigger off
        PRAGMA ignore_check_constraints = ON; UPDATE jobs SET queued = -9223372036854775808
        """,
        """
        UPDATE jobs SET total = total + 9223372036854770000, cancelled = cancelled + 9223372036854770000,
            revision = revision + 1
        """,
        "DELETE FROM recounts", "DELETE FROM spreading",
        ".dbconfig enable_trigger off\nUPDATE items SET job = 9e300 WHERE id % 2 = 0",
        ".dbconfig enable_trigger off\nUPDATE items SET job = job + 0.5 WHERE id % 2 = 0",
        ".dbconfig enable_trigger off\nUPDATE items SET job = 'x' WHERE id = 1; UPDATE items SET job = x'00ff' WHERE id > 2",
        ".dbconfig enable_trigger off\nUPDATE items SET state = x'00ff', url = x'ff', class = CAST(x'ff' AS TEXT)",
        ".dbconfig enable_trigger off\nDELETE FROM jobs WHERE id = 1",
        ".dbconfig enable_trigger off\nUPDATE jobs SET state = 'finished', queued = 0, total = total - queued",
        ".dbconfig enable_trigger off\nUPDATE items SET state = 'queued', finished_at = NULL",
        """
        .dbconfig enable_trigger off
        PRAGMA ignore_check_constraints = ON; UPDATE jobs SET state = 'finished', finished_at = 5;
        UPDATE items SET state = 'active', lease = 77, run_at = 5
        """,
        """
        .dbconfig enable_trigger off
        PRAGMA ignore_check_constraints = ON; UPDATE jobs SET total = 99, done = -7, queued = 'many';
        """,
        "PRAGMA ignore_check_constraints = ON; UPDATE items SET run_at = 5, lease = 7",
        "PRAGMA ignore_check_constraints = ON; UPDATE items SET class = NULL, finished_at = NULL, run_at = NULL",
        "PRAGMA ignore_check_constraints = ON; UPDATE items SET state = 'active' WHERE state = 'queued'",
        """
        PRAGMA ignore_check_constraints = ON; UPDATE items SET state = 'active', lease = 7 WHERE state = 'queued';
        UPDATE items SET state = 'delayed', lease = NULL WHERE state = 'active'
        """,
        "PRAGMA ignore_check_constraints = ON; INSERT INTO items (job, url, lease, run_at) VALUES (2, 'https://e.example/', 7, 9)",
    ]

    @Test(arguments: [false, true], forged)
    func `Counters and rows that a shell has forged are mended by the next worker`(
        _ isEnded: Bool, _ sql: String,
    ) async throws {
        try await withTemporaryQueue { queue in
            try queue.shell.expect(GuardedQueueTests.setUp)
            try queue.shell.expect("UPDATE jobs SET state = 'queued' WHERE state = 'paused';")
            if isEnded {
                try await GuardedQueueTests.drain(queue)
                _ = try await queue.store.control.mendCounters()
            }
            _ = try queue.shell.run("\(sql);")
            // As a worker starts.
            let path = queue.store.path
            let other = try JobStore(path: path)
            try await other.workers.unregister(worker: other.workers.register(host: "test", pid: 1))
            try await other.close()
            try await queue.store.control.mendRows()
            _ = try await queue.store.reports.backlog()
            _ = try await queue.store.workers.takeBackDeadLeases(myself: queue.worker)
            _ = try await queue.store.control.mendCounters()
            _ = try await queue.store.queue.promoteDue()
            try await GuardedQueueTests.drain(queue)
            _ = try await queue.store.control.mendCounters()
            #expect(try await queue.store.reports.backlog().isEmpty)
            let open = "SELECT count(*) FROM jobs WHERE total > 0 AND state IN ('queued', 'running', 'paused')"
            #expect(try queue.shell.expect(open) == ["0"])
            let left = try await queue.store.maintenance.inconsistencies()
            #expect(left.filter { !$0.contains("a failed item carries its reason") } == [])
        }
    }

    @Test func `Counters that a shell has changed with the triggers off are mended and logged`() async throws {
        try await withTemporaryQueue { queue in
            let job = try await queue.job(3)
            let over = try await queue.job(1, name: "k")
            for item in try await queue.claim() where item.job == over {
                try await queue.end(item, item.completion(clock: queue.clock))
            }
            try queue.shell.expect(
                """
                DROP TRIGGER jobs_keep_counters; DROP TRIGGER jobs_stay_finished;
                UPDATE jobs SET total = total + 5, queued = queued + 5 WHERE id = \(job);
                UPDATE jobs SET state = 'queued' WHERE id = \(over);
                """)
            let mended = try await queue.store.control.mendCounters()
            #expect(mended.map(\.job) == [job, over])
            #expect(mended.first?.finding.contains("total was 8 and is 3") == true)
            #expect(try await queue.store.maintenance.inconsistencies() == [])
            #expect(try await queue.progress(over).state == .finished)
            #expect(try await queue.store.control.mendCounters().isEmpty)
        }
    }

    /// As when a worker ends the last item between the look for open jobs and the recount.
    @Test func `A job that ended before the recount is not reported`() async throws {
        try await withQueue { queue in
            let job = try await queue.job(1)
            for item in try await queue.claim() { try await queue.end(item, item.completion(clock: queue.clock)) }
            #expect(try await queue.progress(job).state == .finished)
            #expect(try await queue.store.database.write { db in try JobControl.mend(job, in: db) } == nil)
        }
    }
}
