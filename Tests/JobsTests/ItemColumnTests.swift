import Core
import Jobs
import Testing

/// Columns that a person gives for single items.
@Suite("Items' own columns", .timeLimit(.minutes(15)), .enabled(if: Shell.isThere, Shell.missing))
struct ItemColumnTests {
    static let mistakes = [
        Mistake("meta", "'[1]'", "meta must be a JSON object of at most 16 KiB, as in json_object('sku', 7)"),
        Mistake("meta", "'{'", "meta must be a JSON object of at most 16 KiB, as in json_object('sku', 7)"),
        Mistake(
            "meta", "json_object('a', hex(zeroblob(9000)))",
            "meta must be a JSON object of at most 16 KiB, as in json_object('sku', 7)"),
        Mistake(
            "priority", "101", "the priority of an item must be a whole number from -100 to 100 (or NULL for its job's)"
        ),
        Mistake(
            "priority", "'high'",
            "the priority of an item must be a whole number from -100 to 100 (or NULL for its job's)"),
        Mistake("variants", "x'00'", "variants must be text, as in 'thumb=320x240,cover,webp,q80'"),
        Mistake(
            "headers", "'{\"A\":7}'",
            "headers must be a JSON object of strings, as in '{\"Referer\":\"https://example.com/\"}'"),
        Mistake("sha256", "'abc'", "sha256 must be 64 hexadecimal digits"),
        Mistake("sha256", "printf('%064d', 0) || 'g'", "sha256 must be 64 hexadecimal digits"),
        Mistake("size", "-1", "size must be a whole number of bytes, 0 or more"),
        Mistake("size", "'many'", "size must be a whole number of bytes, 0 or more"),
        Mistake(
            "fallbacks", "'https://a.example/'",
            "fallbacks must be a JSON array of at most 16 strings, as in json_array('https://example.com/b.jpg')"),
        Mistake(
            "fallbacks", "json_array(7)",
            "fallbacks must be a JSON array of at most 16 strings, as in json_array('https://example.com/b.jpg')"),
        Mistake(
            "fallbacks", "json_array(1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17)",
            "fallbacks must be a JSON array of at most 16 strings, as in json_array('https://example.com/b.jpg')"),
    ]

    @Test(.onSQLite, arguments: [mistakes])
    func `An INSERT or UPDATE with a wrong value is refused with a sentence`(_ mistakes: [Mistake]) async throws {
        try await withQueue { queue in
            let job = try await queue.job()
            for mistake in mistakes {
                let (column, value) = (mistake.column, mistake.sql)
                let statements = [
                    "INSERT INTO items (job, url, \(column)) VALUES (\(job), 'https://a.example/1', \(value));",
                    "UPDATE items SET \(column) = \(value) WHERE job = \(job);",
                ]
                for statement in statements {
                    #expect(try queue.shell.run(statement).complaint == mistake.complaint, "\(statement)")
                }
            }
        }
    }

    struct Mistake: Sendable {
        let column: String
        let sql: String
        let complaint: String

        init(_ column: String, _ sql: String, _ complaint: String) {
            self.column = column
            self.sql = sql
            self.complaint = complaint
        }
    }

    @Test(.onSQLite) func `A claimed item has the settings of its columns, and none if the columns are empty`()
        async throws
    {
        try await withQueue { queue in
            try queue.shell.expect(
                """
                INSERT INTO jobs (name, headers, variants) VALUES ('j', '{"A":"1","B":"2"}', 'v=8x');
                INSERT INTO items (job, url) VALUES (1, 'https://a.example/1');
                INSERT INTO items (job, url, meta, variants, headers, sha256, size, fallbacks)
                    VALUES (1, 'https://a.example/2', '{"n": 1.50,
                "t":"x"}', 'w=4x', '{"b":"3"}', '\(String(repeating: "AB", count: 32))', 5, json_array('https://b.example/'));
                """)
            let claim = try await queue.store.queue.claim(limit: 9, worker: queue.worker)
            #expect(claim.items.map { $0.own == nil } == [true, false])
            let own = try #require(claim.items[1].own)
            #expect(own.meta == #"{"n":1.50,"t":"x"}"#)
            #expect(own.sha256 == String(repeating: "ab", count: 32))
            #expect((own.size, own.fallbacks, own.hasNext) == (5, ["https://b.example/"], true))
            let job = try #require(claim.jobs[1]).changed(by: own)
            #expect(job.variants == "w=4x")
            #expect(job.headers == ["A": "1", "b": "3"])
        }
    }

    @Test func `Items of a higher priority are claimed before other jobs, and of a lower priority after them`()
        async throws
    {
        try await withQueue { queue in
            try queue.shell.expect(
                """
                INSERT INTO jobs (name, priority) VALUES ('low', 0), ('middle', 10);
                INSERT INTO items (job, url, priority) VALUES (1, 'https://a.example/usual', NULL),
                    (1, 'https://a.example/first', 20), (1, 'https://a.example/last', -5), (1, 'https://a.example/second', 20),
                    (2, 'https://a.example/middle', NULL), (2, 'https://a.example/late', -3);
                """)
            #expect(
                try await queue.claim().map { $0.url.split(separator: "/").last } == [
                    "first", "second", "middle", "usual", "late", "last",
                ])
        }
    }

    @Test func `An urgent claim takes only an item of a higher priority than those in flight`() async throws {
        try await withQueue { queue in
            let job = try await queue.job(3)
            let lowest = Precedence(priority: 0, order: .fifo, job: job)
            func urgent() async throws -> [String] {
                try await queue.store.queue.claim(limit: 9, worker: queue.worker, above: lowest).items.map(\.url)
            }
            #expect(try await urgent() == [])
            try queue.shell.expect("UPDATE items SET priority = 7 WHERE url LIKE '%1.jpg';")
            #expect(try await urgent() == ["https://j.example/1.jpg"])
            #expect(try await urgent() == [])
        }
    }

    @Test func `Cancelling a job ends its items of every priority`() async throws {
        try await withQueue { queue in
            let job = try await queue.job(5)
            try queue.shell.expect("UPDATE items SET priority = id * 30 - 100 WHERE id > 2;")
            try await queue.store.control.cancel(job: job)
            #expect(try await queue.progress(job).cancelled == 5)
        }
    }

    @Test func `Items of paused jobs aren't claimed, whatever their priority`() async throws {
        try await withQueue { queue in
            let paused = try await queue.job(2, name: "paused")
            _ = try await queue.job(1, name: "open")
            try queue.shell.expect("UPDATE items SET priority = 90 WHERE job = \(paused);")
            try await queue.store.control.pause(job: paused)
            #expect(try await queue.claim().map(\.url) == ["https://open.example/0.jpg"])
        }
    }

    @Test func `An item tries its fallbacks in order, each with its own tries, until a fallback succeeds`() async throws
    {
        try await withQueue { queue in
            var item = NewItem(url: "https://a.example/1")
            item.fallbacks = ["https://b.example/1", "https://c.example/1"]
            var new = NewJob(urls: [])
            new.items = [item]
            let job = try #require(try await queue.store.queue.enqueue(new))
            let first = try #require(try await queue.claim().first)
            try await queue.end(first, .fallBack(Failure(.notAnImage, "No image.")))
            let second = try #require(try await queue.claim().first)
            #expect((second.url, second.attempts) == ("https://b.example/1", 0))
            try await queue.end(
                second, .retry(at: queue.clock.now, Failure(.timeout, "Slow."), blockingHost: false))
            queue.clock.advance(1_000)
            _ = try await queue.store.queue.promoteDue()
            let again = try #require(try await queue.claim().first)
            #expect((again.url, again.attempts) == ("https://b.example/1", 1))
            try await queue.end(again, .fallBack(Failure(.http(404), "Not there.")))
            let last = try #require(try await queue.claim().first)
            #expect((last.url, last.own?.hasNext) == ("https://c.example/1", false))
            try await queue.end(last, last.completion(clock: queue.clock))
            let row = try queue.shell.expect("SELECT url, state, served_url FROM results;")
            #expect(row == ["https://a.example/1|done|https://c.example/1"])
            #expect(
                try queue.shell.expect("SELECT url FROM blacklist_entries ORDER BY url;") == [
                    "https://a.example/1", "https://b.example/1",
                ])
            #expect(try await queue.progress(job).state == .finished)
            #expect(try await queue.store.cache.source(key: "https://c.example/1") != nil)
        }
    }

    @Test func `A retried item begins with its own URL again`() async throws {
        try await withQueue { queue in
            var item = NewItem(url: "https://a.example/1")
            item.fallbacks = ["https://b.example/1"]
            var new = NewJob(urls: [])
            new.items = [item]
            let job = try #require(try await queue.store.queue.enqueue(new))
            try await queue.end(try #require(try await queue.claim().first), .fallBack(Failure(.encode, "No.")))
            try await queue.end(try #require(try await queue.claim().first), .failed(.encode))
            #expect(try await queue.store.control.retry(job: job) == 1)
            #expect(try await queue.claim().map(\.url) == ["https://a.example/1"])
        }
    }
}
