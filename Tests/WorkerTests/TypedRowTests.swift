import TestSupport
import Testing

/// Rows of workers that a shell has changed stop no worker.
@Suite(.timeLimit(.minutes(15))) struct TypedRowTests {
    static let typed = [
        "UPDATE jobs SET queued = queued + 6000000000000000000, total = total + 6000000000000000000, revision = revision + 1",
        "UPDATE jobs SET total = total + 2000000, cancelled = cancelled + 2000000, revision = revision + 1",
        "UPDATE sqlite_sequence SET seq = 9223372036854775807",
        "UPDATE items SET attempts = -9223372036854775807", "UPDATE items SET attempts = 'many'",
        ".dbconfig enable_trigger off\nUPDATE items SET deaths = 2.5 WHERE id < 3",
        ".dbconfig enable_trigger off\nINSERT INTO workers (id, host, pid, started_at, seen_at) VALUES (9223372036854775807, 'x', 1, 1, 1)",
        ".dbconfig enable_trigger off\nINSERT INTO reservations VALUES (999, 9007199254740992)",
        "UPDATE cache_totals SET bytes = 9223372036854775807, blobs = 9223372036854775807",
        ".dbconfig enable_trigger off\nUPDATE jobs SET priority = -101; UPDATE items SET priority = 500 WHERE id = 1",
        """
        .dbconfig enable_trigger off
        PRAGMA ignore_check_constraints = ON; UPDATE jobs SET queued = -9223372036854775808
        """,
    ]

    @Test(arguments: typed) func `A drain after a shell's changes ends all items, and the counters agree`(_ sql: String)
        async throws
    {
        try await withWorker(script: ["/503.png": [.status(503)]]) { w in
            try await w.enqueue([w.url("/1.png"), w.url("/2.png"), w.url("/503.png")])
            try await w.enqueue(w.url("/3.png"))
            try await w.sql(sql)
            let work = try await w.run(
                ["run", "--drain", "--cache-max-size", "50MB", "--max-tries", "2"] + TestWorker.quick, expecting: nil,
                within: .seconds(90))
            #expect(work.exit == .code(2), "\(work.errors)")
            #expect(w.origin.requestCount("/503.png") <= 2)
            let counted = try await w.rows("SELECT total, done, failed, state FROM jobs ORDER BY id")
            #expect(counted == ["3|2|1|finished", "1|1|0|finished"])
            try await w.run("metrics")
            try await w.run("status", "--json")
            try await w.enqueue(w.url("/4.png"))
        }
    }

    @Test func `Items under a forged lease of a live worker go back to the queue`() async throws {
        try await withWorker({ .delayed(milliseconds: 2_000, then: Pictures.reply($0)) }) { w in
            try await w.enqueue([w.url("/1.png"), w.url("/2.png")])
            let child = try w.start("--drain")
            try await w.eventually("both are active") { try await w.value("SELECT sum(active) FROM jobs") == "2" }
            try await w.sql(
                """
                .dbconfig enable_trigger off
                INSERT INTO leases (worker, claimed_at, expires_at) SELECT max(id), 1, 9000000000000000 FROM workers;
                UPDATE items SET lease = (SELECT max(id) FROM leases) WHERE id = 1
                """)
            #expect(try await child.wait() == .code(0))
            #expect(try await w.rows("SELECT done FROM jobs") == ["2"])
        }
    }

    @Test(arguments: [
        // A table of the user's own with the pictures that are there, each once.
        """
        CREATE TABLE shown (name TEXT UNIQUE);
        CREATE TRIGGER show AFTER UPDATE OF state ON items WHEN NEW.state = 'done' BEGIN
            INSERT INTO shown VALUES (replace(NEW.url, '.b', '')); END
        """,
        """
        CREATE TRIGGER hold BEFORE UPDATE OF state ON items WHEN NEW.state = 'active' AND NEW.url LIKE '%.b' BEGIN
            SELECT RAISE(ROLLBACK, 'not this one'); END
        """,
        """
        CREATE TRIGGER hold BEFORE UPDATE OF state ON items WHEN NEW.state = 'done' AND NEW.url LIKE '%.b' BEGIN
            SELECT RAISE(IGNORE); END
        """,
    ]) func `An item that a user's trigger refuses fails with a sentence, and the drain ends`(_ trigger: String)
        async throws
    {
        try await withWorker({ Pictures.reply($0) }) { w in
            try await w.run("init")
            try await w.sql(trigger)
            try await w.enqueue((1...4).map { w.url("/\($0).png") } + [w.url("/3.png.b")])
            let work = try await w.run(
                ["run", "--drain"] + TestWorker.quick, expecting: 2, within: .seconds(60))
            #expect(work.errors.contains("failures of the job: 1 refused-by-database"), "\(work.errors)")
            #expect(try await w.rows("SELECT done, failed, state FROM jobs") == ["4|1|finished"])
            #expect(try await w.value("SELECT message FROM failures").hasPrefix("The database refuses that item"))
        }
    }
}
