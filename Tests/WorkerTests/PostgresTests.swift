import Glibc
import SystemPackage
import TestSupport
import Testing

/// Workers on a PostgreSQL database that they share.
@Suite(
    "Workers on PostgreSQL", .enabled(if: PostgresServer.isAvailable, Comment(rawValue: PostgresServer.missing)),
    .timeLimit(.minutes(15)))
struct PostgresTests {
    @Test func `A job that psql inserts ends, and its results are read by SQL and by commands`() async throws {
        try await withPostgres { w in
            #expect(try await w.run("init").output.contains("database postgres://"))
            try await w.sql(
                """
                INSERT INTO jobs (urls, variants)
                    VALUES (json_array('\(w.url("/1.png"))', '\(w.url("/2.png"))'), 't=32x,webp');
                INSERT INTO jobs (name, variants) VALUES ('feed', 't=32x,webp');
                INSERT INTO items (job, url) SELECT last_insert_rowid(), '\(w.url("/"))' || n || '.png'
                    FROM generate_series(3, 20) AS n;
                INSERT INTO jobs (urls) VALUES (json_array('\(w.url("/none"))'));
                """)
            try await w.drain(expecting: 2)
            #expect(
                try await w.rows("SELECT job, state, total, done, failed FROM progress ORDER BY job") == [
                    "1|finished|2|2|0", "2|finished|18|18|0", "3|finished|1|0|1",
                ])
            #expect(try await w.rows("SELECT class, http_status FROM failures") == ["http-404|404"])
            #expect(try await w.value("SELECT count(*) FROM results WHERE variant = 't' AND path IS NOT NULL") == "20")
            let path = try await w.run("get", w.url("/7.png"), "--variant", "t").line
            #expect(try w.bytes(of: path).starts(with: Array("RIFF".utf8)))
            for command in [
                ["status"], ["results", "1"], ["explain", w.url("/1.png")], ["cache", "stats"], ["metrics"],
                ["blacklist", "list"], ["hosts"], ["limits"], ["doctor"], ["cache", "verify"],
            ] {
                try await w.run(command)
            }
            // All of it is known now.
            let asked = w.origin.requests.count
            try await w.enqueue((1...20).map { w.url("/\($0).png") } + ["--variant", "t=32x,webp"])
            try await w.drain()
            #expect(w.origin.requests.count == asked)
        }
    }

    @Test func `Mistakes are refused with the sentences of SQLite`() async throws {
        try await withPostgres { w in
            try await w.run("init")
            let job = try await w.enqueue(w.url("/1.png"))
            for (statement, sentence) in [
                ("INSERT INTO jobs (urls) VALUES ('a.jpg')", "urls must be a JSON array of strings"),
                ("INSERT INTO jobs (urls, priority) VALUES ('[]', 101)", "priority must be a whole number"),
                ("UPDATE jobs SET total = 7", "the counters of a job are kept by the database"),
                ("UPDATE items SET state = 'done', finished_at = 1", "an item can't move between these states"),
                ("UPDATE jobs SET state = 'Paused'", "the states of a job are queued, running, paused"),
                ("INSERT INTO items (job, url) VALUES (99, 'https://a.example/')", "no open job has this id"),
                ("INSERT INTO workers (host, pid, started_at, seen_at) VALUES ('', 1, 1, 1)", "only the worker writes"),
                ("INSERT INTO limits (host) VALUES ('https://a.example/')", "a host is a name without scheme"),
            ] {
                let answer = try await w.sql(statement, expecting: nil)
                #expect(answer.exit != .code(0) && answer.errors.contains(sentence), "\(statement): \(answer.errors)")
            }
            #expect(try await w.value("SELECT count(*) FROM jobs") == "1")
            try await w.sql("UPDATE jobs SET state = 'cancelled' WHERE id = \(job)")
            try await w.drain()
            #expect(try await w.counts(job) == "0|0|0|0|1")
        }
    }

    @Test func `Killed workers lose no item, and what was durable is not done twice`() async throws {
        try await withPostgres { w in
            try await w.run("init")
            let count = 400
            try await w.enqueue((0..<count).map { w.url("/\($0).png") } + ["--variant", "t=16x,webp"])
            var random = SeededGenerator(seed: 7)
            var ended: Set<String> = []
            // Few enough that the items which were held at a death are not tried one by one for minutes.
            for _ in 0..<8 {
                let workers = [try await w.startRegistered(), try await w.startRegistered()]
                try await Task.sleep(for: .milliseconds(Int.random(in: 150...700, using: &random)))
                for worker in workers {
                    worker.send(SIGKILL)
                    _ = try await worker.wait()
                }
                // Nothing that has ended begins again.
                let now = Set(try await w.rows("SELECT id, finished_at FROM items WHERE state = 'done'"))
                #expect(ended.isSubset(of: now))
                ended = now
            }
            try await w.drain(within: .seconds(120))
            #expect(try await w.value("SELECT done + cached FROM jobs") == "\(count)")
            #expect(try await w.value("SELECT count(*) FROM renditions") == "\(2 * count)")
            #expect(try await w.value("SELECT count(*) FROM leases") == "0")
            #expect(
                Set(try await w.rows("SELECT hash FROM blobs")).isSubset(
                    of: Set(w.blobs.map { $0.suffix(64) }.map(String.init))))
        }
    }

    @Test func `A worker whose database can't be reached pauses, says so once and goes on by itself`() async throws {
        let server = try await PostgresServer.running.value
        let relay = try Relay(to: server.port)
        defer { relay.stop() }
        try await withPostgres({ .delayed(milliseconds: 20, then: Pictures.reply($0)) }) { w in
            let direct = w.database
            try await w.run("init")
            try await w.enqueue((0..<300).map { w.url("/\($0).png") })
            w.set(["WORKER_DB": direct.replacing(":\(server.port)/", with: ":\(relay.port)/")])
            let worker = try w.start()
            w.set(["WORKER_DB": direct])
            try await w.eventually("some are done") {
                try await w.value("SELECT count(*) >= 20 FROM items WHERE state = 'done'") == "t"
            }
            for _ in 0..<3 {
                relay.cut()
                try await Task.sleep(for: .seconds(2))
                relay.mend()
                try await Task.sleep(for: .seconds(1))
            }
            try await w.eventually("all is done", within: .seconds(60)) {
                try await w.value("SELECT state FROM jobs") == "finished"
            }
            let told = try w.errors(of: worker)
            #expect(worker.exit == nil, "\(told)")
            #expect(try await w.value("SELECT done + cached FROM jobs") == "300")
            worker.send(SIGTERM)
            #expect(try await worker.wait() == .code(0))
        }
    }

    @Test func `Sessions that the server ends lose nothing`() async throws {
        try await withPostgres({ .delayed(milliseconds: 10, then: Pictures.reply($0)) }) { w in
            try await w.run("init")
            try await w.enqueue((0..<300).map { w.url("/\($0).png") } + ["--variant", "t=16x,webp"])
            let workers = [try await w.startRegistered(), try await w.startRegistered()]
            try await w.eventually("all is done", within: .seconds(90)) {
                let schema = w.database.split(separator: "D").last ?? ""
                try await w.sql(
                    """
                    SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                        WHERE application_name = 'worker' AND pid IN (SELECT pid FROM pg_locks
                            WHERE relation IN (SELECT oid FROM pg_class WHERE relnamespace = '\(schema)'::REGNAMESPACE)
                                OR locktype = 'advisory' AND classid = ('workers'::REGCLASS::OID::BIGINT & 2147483647)::OID)
                    """)
                try await Task.sleep(for: .milliseconds(300))
                return try await w.value("SELECT state FROM jobs") == "finished"
            }
            for worker in workers {
                let told = try w.errors(of: worker)
                #expect(worker.exit == nil, "\(told)")
                worker.send(SIGTERM)
                #expect(try await worker.wait() == .code(0))
            }
            #expect(try await w.value("SELECT done + cached FROM jobs") == "300")
        }
    }

    @Test func `A role with the grants of the guide enqueues and reads, and does nothing else`() async throws {
        try await withPostgres { w in
            try await w.run("init")
            let page = try w.text(of: Guide.root.appending("docs/guides/many-machines.md").string)
            let grants = try #require(page.split(separator: "```sh\n").first { $0.contains("GRANT INSERT") })
            let script = try w.file("grants.sh", String(grants.prefix { $0 != "`" }))
            try await w.run([script], program: "bash")
            let owner = w.database
            w.set(["WORKER_DB": owner.replacing("worker@", with: "shop@")])
            try await w.sql(
                """
                INSERT INTO jobs (urls, options, notify)
                    VALUES (json_array('\(w.url("/1.png"))'), 'only-new', 'http://127.0.0.1:1/');
                INSERT INTO jobs (name) VALUES ('feed');
                INSERT INTO items (job, url) VALUES (last_insert_rowid(), '\(w.url("/2.png"))'), (2, '\(w.url("/3.png"))');
                UPDATE items SET state = 'cancelled', finished_at = 1, class = 'cancelled' WHERE id = 3;
                """)
            for refused in [
                "DELETE FROM jobs", "DELETE FROM items", "UPDATE limits SET rate = 1", "DELETE FROM blobs",
                "INSERT INTO recipes (name, variants) VALUES ('a', 'b=1x,webp')", "DROP TABLE jobs",
            ] {
                let answer = try await w.sql(refused, expecting: nil)
                #expect(answer.errors.contains("permission denied") || answer.errors.contains("must be owner"))
            }
            w.set(["WORKER_DB": owner])
            try await w.drain()
            w.set(["WORKER_DB": owner.replacing("worker@", with: "shop@")])
            #expect(try await w.rows("SELECT job, done, cancelled FROM progress ORDER BY job") == ["1|1|0", "2|1|1"])
            #expect(try await w.value("SELECT count(*) FROM results WHERE path IS NOT NULL") == "2")
            try await w.sql("UPDATE jobs SET state = 'cancelled' WHERE state = 'queued'")
            w.set(["WORKER_DB": owner])
        }
    }

    @Test func `A SQLite database is moved with its queue, results and index`() async throws {
        let url = try await PostgresServer.running.value.newSchema()
        try await withWorker { w in
            try await w.enqueue((1...30).map { w.url("/\($0).png") } + ["--variant", "t=32x,webp"])
            try await w.enqueue(w.url("/none"))
            try await w.drain(expecting: 2)
            try await w.run("recipe", "add", "card", "c=16x,webp")
            let waiting = try await w.enqueue((20...40).map { w.url("/\($0).png") } + ["--variant", "t=32x,webp"])
            let results = try await w.run("results", "1", "--json").output
            let asked = w.origin.requests.count

            let moved = try await w.run("db", "move", url, "--yes").output
            #expect(moved.hasPrefix("3 jobs, 52 items and "), "\(moved)")
            #expect(try await w.value("SELECT count(*) FROM suspension") == "1")
            // A queue that is there is not overwritten.
            #expect(try await w.run("db", "move", url, "--yes", expecting: nil).errors.contains("a queue of its own"))

            w.set(["WORKER_DB": url])
            #expect(try await w.run("results", "1", "--json").output == results)
            #expect(try await w.run("recipe", "list").output.contains("card"))
            try await w.drain()
            #expect(try await w.counts(waiting) == "10|11|0|0|0")
            #expect(w.origin.requests.count == asked + 10)
            // New ids follow those that were moved.
            #expect(try await w.enqueue(w.url("/41.png")) == "4")
            try await w.drain()
        }
    }

    @Test func `A second folder and the cache of another database are refused`() async throws {
        try await withPostgres { w in
            // A folder that no file was stored in is given up for another one, and doesn't come back.
            let first = w.place("first")
            try await w.run("init", "--cache", first)
            try await w.enqueue(w.url("/1.png"))
            try await w.drain()
            let given = try await w.run("run", "--drain", "--cache", first, expecting: 73)
            #expect(given.errors.contains("belongs to another database"), "\(given.errors)")
            let second = try await w.run("run", "--drain", "--cache", w.place("second"), expecting: 73)
            #expect(second.errors.contains("perhaps on another machine"), "\(second.errors)")
            // A copy of the tables has the name of the cache, too.
            let copy = try await PostgresServer.running.value.newSchema()
            try await w.run("init", "--db", copy, "--cache", w.place("third"))
            let name = try await w.value("SELECT value FROM cache_properties WHERE name = 'cache-id'")
            let rename = """
                INSERT INTO cache_properties VALUES ('cache-id', '\(name)')
                ON CONFLICT (name) DO UPDATE SET value = excluded.value
                """
            try await w.run(copy, "-c", rename, program: "psql")
            let refused = try await w.run("run", "--drain", "--db", copy, expecting: 73)
            #expect(refused.errors.contains("is a copy of it"), "\(refused.errors)")
            try await w.drain()
        }
    }

    @Test func `A database that is not there is reported without its password`() async throws {
        try await withPostgres { w in
            let none = "postgres://worker:secret@127.0.0.1:1/none"
            let refused = try await w.run("status", "--db", none, expecting: nil)
            #expect(refused.exit != .code(0))
            #expect(refused.errors.contains("postgres://worker@127.0.0.1:1/none"), "\(refused.errors)")
            #expect(!refused.errors.contains("secret"))
            for (url, exit, sentence) in [
                // Passwords that are not encoded, and a host whose name has words of other errors.
                ("postgres://worker:secr%zzet@127.0.0.1/x", 73 as Int32, "invalid percent-encoded token"),
                ("postgres://worker:sec/ret@127.0.0.1:1/x", 73, "can't be opened"),
                ("postgres://worker:secret@password.invalid/x", 74, "can't be reached: could not translate host name"),
                (w.database.replacing("/worker?", with: "/none?"), 73, "database \"none\" does not exist"),
                (w.database.replacing("worker@", with: "nobody@"), 73, "role \"nobody\" does not exist"),
            ] {
                let told = try await w.run("status", "--db", url, expecting: exit)
                #expect(told.errors.contains(sentence), "\(told.errors)")
                #expect(!told.errors.contains("secr") && !told.errors.contains("sec/"), "\(told.errors)")
            }
            let empty = try await w.run("status", expecting: nil)
            #expect(empty.errors.contains("Make it with: worker init --db"), "\(empty.errors)")
            try await w.run("init")
        }
    }
}

/// Machines that share a database and a bucket, each with a folder of its own.
@Suite(
    "Several machines",
    .enabled(if: PostgresServer.isAvailable && S3Server.isAvailable, Comment(rawValue: PostgresServer.missing)),
    .timeLimit(.minutes(15)))
struct SeveralMachineTests {
    @Test func `Two machines share one queue and one bucket, and one of them is killed`() async throws {
        let url = try await PostgresServer.running.value.newSchema()
        try await withBucket({ .delayed(milliseconds: 200, then: Pictures.reply($0)) }) { w, bucket in
            w.set(["WORKER_DB": url])
            try await w.run("init")
            try await w.enqueue((0..<200).map { w.url("/\($0).png") } + ["--variant", "t=32x,webp"])
            let other = w.place("other")
            let survivor = try await w.startRegistered()
            let dying = try await w.startRegistered("--cache-folder", other)
            try await w.eventually("the second machine has made something") {
                !fileNames(in: "\(other)/blobs/sha256").isEmpty
            }
            try await Task.sleep(for: .milliseconds(500))
            dying.send(SIGKILL)
            _ = try await dying.wait()
            try await w.eventually("all is done", within: .seconds(60)) {
                try await w.value("SELECT state FROM jobs") == "finished"
            }
            survivor.send(SIGTERM)
            #expect(try await survivor.wait() == .code(0))
            #expect(try await w.value("SELECT done + cached FROM jobs") == "200")
            let entries = Set(try await w.rows("SELECT blob FROM entries"))
            #expect(try await bucket.blobs().isSuperset(of: entries))
            // A third machine reads what the others have made.
            let path = try await w.run(
                "get", w.url("/7.png"), "--variant", "t", "--cache-folder", w.place("third")
            ).line
            #expect(try w.bytes(of: path).starts(with: Array("RIFF".utf8)))
            let signed = try await w.run("get", w.url("/8.png"), "--variant", "t", "--url").line
            #expect(
                try await w.run("-sS", "-o", w.place("8"), "-w", "%{http_code}", signed, program: "curl").line == "200")
        }
    }
}
