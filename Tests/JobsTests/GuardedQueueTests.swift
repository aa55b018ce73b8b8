import Core
import Testing

@testable import Jobs

/// Whatever a `sqlite3` shell does, items belong to a job, counters equal a recount, and a queue can be worked to its end.
@Suite("Guarded queue", .timeLimit(.minutes(15)), .enabled(if: Shell.isThere, Shell.missing), .onSQLite)
struct GuardedQueueTests {
    /// The settings a shell may have, which decide what SQLite does beside a statement.
    static let settings =
        ["OFF", "ON"].flatMap { triggers in
            ["OFF", "ON"].map { "PRAGMA recursive_triggers = \(triggers); PRAGMA foreign_keys = \($0);" }
        }
        + ["PRAGMA ignore_check_constraints = ON;"]

    static let setUp = """
        INSERT INTO jobs (urls, dedupe_key) VALUES (json_array('https://a.example/1', 'https://a.example/2'), 'daily');
        INSERT INTO jobs (urls) VALUES (json_array('https://b.example/1', 'https://b.example/2', 'https://b.example/3'));
        INSERT INTO jobs (urls, dedupe_key, state) VALUES (json_array('https://c.example/1'), 'weekly', 'paused');
        """

    /// Refused statements, with their sentences.
    static let refused: [(sql: String, sentence: String)] = {
        let replaced =
            "a job can't be replaced, since its items would be lost; leave OR REPLACE out, or delete the job first"
        let counters = "the counters of a job are kept by the database; change its items instead"
        let sums = "total must be the sum of a job's other counters; change its items instead"
        let deaths = "deaths must be a whole number from 0 to 100: the workers that died while they held the item"
        let internals = "no such function: only_the_worker_writes_to_this_table"
        let item = "the id of an item is a positive number that no other item has; leave it out of the INSERT"
        let kept = "the id, job and url of an item stay as they are; insert a new item instead"
        return [
            (
                "INSERT OR REPLACE INTO jobs (urls, dedupe_key) VALUES (json_array('https://d.example/'), 'daily')",
                replaced
            ),
            ("REPLACE INTO jobs (dedupe_key) VALUES ('weekly')", replaced),
            ("INSERT OR REPLACE INTO jobs (id, urls) VALUES (2, json_array('https://d.example/'))", replaced),
            ("INSERT OR REPLACE INTO jobs (id) VALUES (2)", replaced),
            (
                "INSERT INTO jobs (id) VALUES (-7)",
                "the id of a job is a positive number of at most 2^51; leave it out of the INSERT"
            ),
            (
                "INSERT INTO jobs (id) VALUES (4503599627370496)",
                "the id of a job is a positive number of at most 2^51; leave it out of the INSERT"
            ),
            (
                "UPDATE event_log SET id = 4503599627370496 WHERE id = (SELECT max(id) FROM event_log)",
                "the id of an event stays as it is"
            ),
            (
                "INSERT INTO event_log (id, at, detail) VALUES (4503599627370496, 0, '[]')",
                "the id of an event is left to the database; leave it out of the INSERT"
            ),
            (
                "UPDATE OR REPLACE jobs SET dedupe_key = 'daily' WHERE id = 2",
                "another unfinished job has this dedupe_key"
            ),
            ("UPDATE jobs SET id = 77 WHERE id = 1", "the id of a job stays as it is"),
            ("UPDATE OR REPLACE jobs SET id = 2 WHERE id = 1", "the id of a job stays as it is"),
            ("UPDATE jobs SET rowid = 77 WHERE id = 1", "the id of a job stays as it is"),
            ("UPDATE jobs SET _rowid_ = 77 WHERE id = 1", "the id of a job stays as it is"),
            ("UPDATE jobs SET queued = queued - 1, done = done + 1 WHERE id = 2", counters),
            ("UPDATE jobs SET total = total + 1, queued = queued + 1", counters),
            ("UPDATE jobs SET bytes = 'many' WHERE id = 1", counters),
            (
                "UPDATE jobs SET queued = 0, cancelled = total, state = 'finished', finished_at = 1 WHERE id = 2",
                counters
            ),
            ("UPDATE jobs SET revision = revision + 2", counters),
            ("UPDATE jobs SET revision = 9223372036854775807", counters),
            ("UPDATE jobs SET not_new = 5", counters),
            ("UPDATE jobs SET total = total + 1, revision = revision + 1", sums),
            ("UPDATE jobs SET total = total + 0.5, queued = queued + 0.5, revision = revision + 1", sums),
            (
                "UPDATE jobs SET state = 'finished', finished_at = 1 WHERE id = 2",
                "a finished job has nothing left to do; cancel the job, or its items"
            ),
            (
                "INSERT INTO jobs (revision) VALUES (9223372036854775807)",
                "the counters of a job are kept by the database; leave them out of the INSERT"
            ),
            ("INSERT INTO moving (id, item, state) VALUES (1, -2, 'deleted')", internals),
            ("INSERT OR REPLACE INTO moving (id, item, state) VALUES (1, 1, 'cancelled')", internals),
            ("INSERT INTO job_additions VALUES (2)", internals),
            ("INSERT INTO leases (worker, claimed_at, expires_at) VALUES (99, 0, 9223372036854775807)", internals),
            (
                "INSERT INTO workers (id, host, pid, started_at, seen_at) VALUES (9223372036854775807, 'x', 1, 1, 1)",
                internals
            ),
            ("UPDATE workers SET id = 9223372036854775807", internals),
            ("INSERT INTO reservations VALUES (999, 9223372036854775807)", internals),
            ("UPDATE items SET deaths = 2.5", deaths), ("UPDATE items SET deaths = 'many'", deaths),
            ("UPDATE items SET deaths = -1", deaths), ("UPDATE items SET deaths = 1e300", deaths),
            (
                "INSERT INTO items (job, url, deaths) VALUES (2, 'https://d.example/', 3)",
                "a new item has no attempts and no deaths; leave them out of the INSERT"
            ),
            (
                "INSERT INTO jobs (id) VALUES (9223372036854775807)",
                "the id of a job is a positive number of at most 2^51; leave it out of the INSERT"
            ),
            ("INSERT INTO items (id, job, url) VALUES (9223372036854775807, 2, 'https://d.example/')", item),
            ("UPDATE OR FAIL items SET deaths = 'x' WHERE id = 1", deaths),
            ("INSERT INTO recounts SELECT id, revision FROM jobs", internals),
            (
                "UPDATE jobs SET urls = '[]' WHERE id = 2",
                "urls is read when the job is inserted; add rows to items instead"
            ),
            ("INSERT OR REPLACE INTO items (id, job, url) VALUES (1, 2, 'https://d.example/')", item),
            ("INSERT INTO items (id, job, url) VALUES (-7, 2, 'https://d.example/')", item),
            (
                "INSERT INTO items (id, job, url) VALUES (-1, 2, 'https://d.example/')",
                "the id of an item is a positive number; leave it out of the INSERT"
            ),
            ("UPDATE OR REPLACE items SET id = 2 WHERE id = 1", kept),
            ("UPDATE items SET rowid = 99 WHERE id = 1", kept),
            ("UPDATE items SET oid = 99 WHERE id = 1", kept),
            ("UPDATE items SET job = 3 WHERE job = 2", kept),
        ]
    }()

    @Test(arguments: settings)
    func `A statement that would strand items or change counters is refused with a sentence`(_ setting: String)
        async throws
    {
        try await withQueue { queue in
            try queue.shell.expect(Self.setUp)
            let before = try queue.shell.dump()
            for (sql, sentence) in Self.refused {
                #expect(try queue.shell.run("\(setting) \(sql);").complaint == sentence, "\(sql)")
            }
            #expect(try queue.shell.dump() == before)
        }
    }

    /// Allowed statements, after which the counters must agree.
    static let allowed = [
        "INSERT OR IGNORE INTO jobs (urls, dedupe_key) VALUES (json_array('https://d.example/'), 'daily')",
        "INSERT INTO jobs (urls) VALUES (json_array('https://d.example/'))",
        "INSERT INTO jobs (dedupe_key) VALUES ('daily') ON CONFLICT DO UPDATE SET name = 'again'",
        "DELETE FROM jobs WHERE id = 2",
        "DELETE FROM items WHERE job = 1",
        "DELETE FROM jobs; INSERT INTO jobs (urls, dedupe_key) VALUES (json_array('https://d.example/'), 'daily')",
        "UPDATE items SET cached = 1, blacklisted = 1, bytes = 5",
        "UPDATE items SET state = 'cancelled', finished_at = 1 WHERE job = 1",
        "UPDATE jobs SET state = 'paused'; UPDATE jobs SET state = 'queued'",
        "UPDATE jobs SET state = 'cancelled'",
        "UPDATE jobs SET state = 'cancelled'; UPDATE jobs SET state = 'queued'",
        "UPDATE items SET attempts = 9223372036854775807", "UPDATE items SET attempts = -9223372036854775807",
        "UPDATE items SET attempts = 'many', started_at = 'now', message = x'ff'",
        "UPDATE items SET state = 'active', lease = 4711 WHERE id = 1",
        "UPDATE items SET state = 'active', lease = 'mine'",
        "UPDATE items SET state = 'active', lease = 1.5",
        "UPDATE items SET state = 'active', lease = 4711; DELETE FROM leases; DELETE FROM workers WHERE id > 1",
        "DELETE FROM leases; DELETE FROM hosts; DELETE FROM blacklist",
        "INSERT INTO spreading (job, failed) VALUES (2, 9); INSERT INTO items (job, url) VALUES (2, 'https://e.example/')",
        "INSERT INTO spreading (job) VALUES (1), (2), (3); INSERT INTO jobs (urls) VALUES (json_array('https://e.example/', 7))",
        "INSERT INTO replacing (job) VALUES (1), (2); INSERT INTO jobs (urls) VALUES (json_array('https://e.example/'))",
        "INSERT INTO done_urls VALUES ('https://b.example/1', 1); INSERT INTO done_urls VALUES ('x', -5)",
    ]

    @Test(arguments: settings, allowed)
    func `After any statement the counters agree and the queue drains`(_ setting: String, _ sql: String) async throws {
        try await withQueue { queue in
            try queue.shell.expect(Self.setUp)
            try queue.shell.expect("\(setting) \(sql);")
            #expect(
                try await queue.store.maintenance.inconsistencies().filter {
                    !$0.contains("an active item has a lease")
                } == [])
            try await Self.drain(queue)
            try queue.shell.expect("\(setting) UPDATE jobs SET state = 'queued' WHERE state = 'paused';")
            try await Self.drain(queue)
            #expect(try await queue.store.reports.backlog().isEmpty)
            let open = "SELECT count(*) FROM jobs WHERE total > 0 AND state IN ('queued', 'running', 'paused')"
            #expect(try queue.shell.expect(open) == ["0"])
        }
    }

    /// Works as a worker does, housekeeping included.
    static func drain(_ queue: Queue) async throws {
        for _ in 0..<20 {
            _ = try await queue.store.workers.takeBackDeadLeases(myself: queue.worker)
            try await queue.store.control.sweepCancelled()
            let items = try await queue.claim()
            if items.isEmpty { break }
            for item in items { try await queue.end(item, item.completion(clock: queue.clock)) }
        }
    }

    @Test(arguments: ["queued", "running", "paused"])
    func `A job whose items have all ended stays finished after an UPDATE of its state`(_ state: String) async throws {
        try await withQueue { queue in
            let job = try await queue.job(2)
            for item in try await queue.claim() { try await queue.end(item, item.completion(clock: queue.clock)) }
            #expect(try await queue.progress(job).state == .finished)
            if state == "queued" { try queue.shell.expect("UPDATE jobs SET state = '\(state)' WHERE id = \(job);") }
            if state != "queued" {
                try queue.shell.expect(
                    "UPDATE jobs SET state = 'queued' WHERE id = \(job); UPDATE OR IGNORE jobs SET name = 'x';")
            }
            #expect(try await queue.progress(job).state == .finished)
            // And its dedupe key is free.
            #expect(try await queue.store.reports.backlog().isEmpty)
        }
    }

    @Test func `A job that SQL pauses and queues while its items end is finished`() async throws {
        try await withQueue { queue in
            let job = try await queue.job(3)
            let items = try await queue.claim()
            try queue.shell.expect("UPDATE jobs SET state = 'paused' WHERE id = \(job);")
            for item in items { try await queue.end(item, item.completion(clock: queue.clock)) }
            _ = try queue.shell.run("UPDATE jobs SET state = 'queued' WHERE id = \(job);")
            #expect(try await queue.progress(job).state == .finished)
        }
    }

    @Test func `The result of an ended item can't be changed, and the item can be retried`() async throws {
        try await withQueue { queue in
            _ = try await queue.job(2)
            let items = try await queue.claim()
            try await queue.end(items[0], items[0].completion(clock: queue.clock))
            try await queue.end(items[1], .failed(.notAnImage))
            let sentence = "the result of an ended item cannot be changed; retry the item instead"
            #expect(try queue.shell.run("UPDATE items SET cached = 1;").complaint == sentence)
            #expect(try queue.shell.run("UPDATE items SET blacklisted = 1 WHERE id = 2;").complaint == sentence)
            try queue.shell.expect("UPDATE items SET state = 'queued', finished_at = NULL WHERE id = 2;")
            #expect(try await queue.claim().map(\.id) == [2])
        }
    }

    @Test func `Text and huge numbers in columns of numbers are read as the nearest number`() async throws {
        try await withQueue { queue in
            let job = try await queue.job(3)
            for item in try await queue.claim(2) { try await queue.end(item, item.completion(clock: queue.clock)) }
            try queue.shell.expect(
                """
                UPDATE items SET attempts = 'many', http_status = x'00ff', run_at = NULL, message = 5 WHERE id < 3;
                UPDATE items SET attempts = 1e300 WHERE id = 3;
                UPDATE jobs SET created_at = 'yesterday', started_at = 1e300, name = x'ff' WHERE id = \(job);
                UPDATE renditions SET width = 'wide', height = 9e99, size = 'large';
                INSERT INTO tries (item, at, received, http_status, message) VALUES (1, 'now', 1e300, 'x', 7);
                INSERT INTO hosts (host, not_before, circuit_opens, width) VALUES ('h.example', 'soon', 'p', 'w');
                INSERT INTO blacklist_entries (url, host, class, http_status, message, count, first_at, last_at, expires_at)
                    VALUES ('u', 'h', 'c', 'x', 7, 'n', 'f', 'l', 9e300);
                """)
            #expect(try await queue.store.reports.results(job: job, after: 0, limit: 10).count == 2)
            #expect(try await queue.store.reports.history(ofURL: "https://j.example/0.jpg").count == 1)
            #expect(try await queue.store.reports.tries(ofURL: "https://j.example/0.jpg").count == 1)
            #expect(try await queue.store.reports.progress().count == 1)
            _ = try await queue.store.blacklist.entries()
            _ = try await queue.store.hosts.statuses(limit: 9)
            for item in try await queue.claim() { try await queue.end(item, item.completion(clock: queue.clock)) }
            #expect(try await queue.progress(job).state == .finished)
        }
    }

    @Test func `Items whose lease was deleted go back to the queue`() async throws {
        try await withQueue { queue in
            let job = try await queue.job(5)
            let items = try await queue.claim()
            try queue.shell.expect("DELETE FROM leases;")
            #expect(try await queue.store.workers.takeBackDeadLeases(myself: queue.worker) == 5)
            // The worker that held them can't end them any more.
            let ending = items[0].completion(clock: queue.clock)
            #expect(try await queue.store.queue.finish([(items[0], ending)]) == [items[0].id])
            #expect(try await queue.progress(job).queued == 5)
        }
    }
}
