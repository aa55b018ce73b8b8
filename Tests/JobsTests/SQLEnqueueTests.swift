import Jobs
import Testing

@Suite("Enqueuing by SQL", .timeLimit(.minutes(15)), .enabled(if: Shell.isThere, Shell.missing))
struct SQLEnqueueTests {
    @Test(.onSQLite) func `A bare array of URLs is a job`() async throws {
        try await withQueue { queue in
            try queue.shell.expect(
                "INSERT INTO jobs (urls) VALUES (json_array('https://a.example/a.jpg', 'https://a.example/b.png'));")
            let items = try await queue.claim()
            #expect(items.map(\.url) == ["https://a.example/a.jpg", "https://a.example/b.png"])
            #expect(try queue.shell.expect("SELECT urls IS NULL FROM jobs;") == ["1"])
        }
    }

    @Test func `A claim has all the settings of its job`() async throws {
        try await withQueue { queue in
            try queue.shell.expect(
                """
                INSERT INTO jobs (name, urls, variants, options, headers, priority, execution_order)
                VALUES ('catalogue', json_array('https://a.example/a.jpg'), 'thumb=320x240,cover,webp,q80', 'retry-failed',
                    '{"Referer":"https://a.example/"}', 10, 'lifo');
                """)
            let claim = try await queue.store.queue.claim(limit: 1, worker: queue.worker)
            let expected = JobDefinition(
                id: 1, variants: "thumb=320x240,cover,webp,q80", options: "retry-failed",
                headers: ["Referer": "https://a.example/"], priority: 10, order: .lifo)
            #expect(claim.jobs == [1: expected])
        }
    }

    @Test func `All rows added with last_insert_rowid in a subquery are in one job`() async throws {
        try await withQueue { queue in
            try queue.shell.expect(
                """
                CREATE TABLE products (image_url TEXT);
                INSERT INTO products WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
                    SELECT 'https://a.example/' || i || '.jpg' FROM n;
                INSERT INTO jobs (name) VALUES ('another');
                INSERT INTO jobs (name, variants) VALUES ('feed', 'card=640x,webp');
                INSERT INTO items (job, url) SELECT (SELECT last_insert_rowid()), image_url FROM products;
                """)
            #expect(try queue.shell.expect("SELECT job, count(*) FROM items GROUP BY job;") == ["2|500"])
            #expect(try await queue.progress(2).queued == 500)
        }
    }

    @Test(.onSQLite) func `A shell enqueues in all three ways while a worker claims and finishes`() async throws {
        try await withQueue { queue in
            let shell = queue.shell
            async let inserted: Void = {
                for round in 0..<8 {
                    try shell.expect(
                        """
                        INSERT INTO jobs (urls) VALUES (json_array('https://a.example/\(round).jpg', 'https://b.example/\(round)'));
                        INSERT INTO jobs (name, urls, priority) VALUES ('n', json_array('https://c.example/\(round).jpg'), 10);
                        INSERT INTO jobs (name) VALUES ('feed');
                        INSERT INTO items (job, url) SELECT (SELECT last_insert_rowid()), 'https://d.example/' || value
                            FROM json_each('[1,2,3,4,5]');
                        """)
                }
            }()
            var ended = 0
            while ended < 8 * 8 {
                let items = try await queue.claim(3)
                try await queue.store.queue.finish(items.map { ($0, $0.completion(clock: queue.clock)) })
                ended += items.count
                if items.isEmpty { try await Task.sleep(for: .milliseconds(2)) }
            }
            try await inserted
            let states = try shell.expect(
                "SELECT DISTINCT state FROM jobs; SELECT DISTINCT state FROM items; SELECT count(*) FROM items;")
            #expect(states == ["finished", "done", "64"])
        }
    }

    @Test func `A job with an empty array is finished at once`() async throws {
        try await withQueue { queue in
            try queue.shell.expect("INSERT INTO jobs (urls) VALUES (json_array());")
            let progress = try await queue.progress(1)
            #expect(progress.state == .finished)
            #expect(progress.percent == 100)
            #expect(progress.finishedAt != nil)
        }
    }

    @Test func `Rows added to a finished job open it again`() async throws {
        try await withQueue { queue in
            let job = try await queue.job()
            let item = try #require(try await queue.claim().first)
            try await queue.end(item, item.completion(clock: queue.clock))
            #expect(try await queue.progress(job).state == .finished)
            try queue.shell.expect("INSERT INTO items (job, url) VALUES (\(job), 'https://a.example/more.jpg');")
            let progress = try await queue.progress(job)
            #expect(progress.state == .queued)
            #expect(progress.finishedAt == nil)
            #expect((progress.total, progress.done, progress.queued) == (2, 1, 1))
        }
    }

    /// As a column of another program's table may have them.
    private static let noURLs = "(NULL), (''), (' '), (char(9, 10)), (7), (7.5), (x'68')"

    @Test(.onSQLite) func `A row without a URL ends at once, and the others of its statement are queued`() async throws
    {
        try await withQueue { queue in
            try queue.shell.expect(
                """
                CREATE TABLE feed (url);
                INSERT INTO feed VALUES ('https://a.example/1'), \(Self.noURLs), ('https://a.example/2');
                INSERT INTO jobs (name) VALUES ('feed');
                INSERT INTO items (job, url) SELECT (SELECT last_insert_rowid()), url FROM feed;
                """)
            let progress = try await queue.progress(1)
            #expect((progress.state, progress.total, progress.queued, progress.failed) == (.queued, 9, 2, 7))
            let failures = "SELECT DISTINCT class, message, attempts, blacklisted, failed_at IS NOT NULL FROM failures;"
            #expect(try queue.shell.expect(failures) == ["invalid-url|The item has no URL.|0|0|1"])
            #expect(try queue.shell.expect("SELECT count(*) FROM results WHERE class = 'invalid-url';") == ["7"])
            #expect(try await queue.claim().map(\.url) == ["https://a.example/1", "https://a.example/2"])
            #expect(try queue.shell.expect("SELECT count(*) FROM blacklist_entries;") == ["0"])
        }
    }

    @Test(.onSQLite) func `A job of rows without URLs is finished, and opens again for a URL`() async throws {
        try await withQueue { queue in
            try queue.shell.expect(
                """
                INSERT INTO jobs (urls) VALUES (json_array('', NULL, 7));
                INSERT INTO jobs (name) VALUES ('empty');
                INSERT INTO items (job, url) SELECT 2, column1 FROM (VALUES \(Self.noURLs));
                """)
            let progress = "SELECT job, state, total, failed, finished_at IS NOT NULL FROM progress;"
            #expect(try queue.shell.expect(progress) == ["1|finished|3|3|1", "2|finished|7|7|1"])
            try queue.shell.expect("INSERT INTO items (job, url) VALUES (1, 'https://a.example/1');")
            #expect(try await queue.progress(1).state == .queued)
            #expect(try await queue.store.control.retry(job: 2) == 7)
        }
    }

    @Test func `Enqueuing an empty URL through the library is refused`() async throws {
        try await withQueue { queue in
            for url in ["", "7", " "] {
                let error = await #expect(throws: JobsError.self) {
                    _ = try await queue.store.queue.enqueue(NewJob(urls: ["https://a.example/1", url]))
                }
                #expect(error?.code == .refused)
            }
            let jobs = try queue.shell.expect("SELECT count(*) FROM jobs;")
            #expect(jobs == ["0"])
        }
    }

    @Test(arguments: ["cancelled", "failed"])
    func `Rows can't be added to a cancelled or failed job`(_ state: String) async throws {
        try await withQueue { queue in
            let job = try await queue.job(0)
            try queue.shell.expect("INSERT INTO jobs (id) VALUES (7); UPDATE jobs SET state = '\(state)' WHERE id = 7;")
            let answer = try queue.shell.run("INSERT INTO items (job, url) VALUES (7, 'https://a.example/a.jpg');")
            #expect(answer.complaint.hasPrefix("no open job has this id"))
            #expect(try await queue.progress(job).total == 0)
        }
    }

    static let priorities: [(options: String, given: Int, expected: Int)] = [
        ("high-priority", 0, 50), ("low-priority", 0, -50), ("retry-failed", 0, 0), ("", 0, 0),
        ("retry-failed,high-priority", 0, 50), ("low-priority discard-original", 0, -50),
        ("retry-failed\nlow-priority", 0, -50), ("retry-failed\thigh-priority", 0, 50),
        ("high-priority", 7, 7), ("low-priority", -3, -3), ("very-high-priority", 0, 0),
    ]

    @Test(arguments: priorities)
    func `high-priority and low-priority mean 50 and -50, unless a priority is given`(
        _ row: (options: String, given: Int, expected: Int)
    ) async throws {
        try await withQueue { queue in
            try queue.shell.expect("INSERT INTO jobs (options, priority) VALUES ('\(row.options)', \(row.given));")
            #expect(try await queue.progress(1).priority == row.expected)
        }
    }

    @Test func `The counters of a job of a hundred thousand URLs are right in progress`() async throws {
        try await withQueue { queue in
            try queue.shell.expect(
                """
                INSERT INTO jobs (urls) SELECT json_group_array('https://a.example/' || i) FROM
                    (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) SELECT i FROM n) AS numbers;
                """)
            let items = try await queue.claim(500)
            try await queue.store.queue.finish(items.map { ($0, $0.completion(clock: queue.clock)) })
            let row = try queue.shell.expect("SELECT state, total, ended, percent, queued, active, done FROM progress;")
            #expect(row == ["running|100000|500|0.5|99500|0|500"])
        }
    }
}
