import Core
import Jobs
import Testing

/// Wrong SQL statements, and the sentence that answers each.
struct Mistake: CustomTestStringConvertible, Sendable {
    let sql: String
    let complaint: String

    init(_ sql: String, _ complaint: String) {
        self.sql = sql
        self.complaint = complaint
    }

    var testDescription: String { sql }

    private static let urls = "urls must be a JSON array of strings, as in json_array('https://example.com/a.jpg')"
    private static let priority = "priority must be a whole number from -100 to 100"
    private static let order = "execution_order must be 'fifo' or 'lifo' (or NULL for the worker's own)"
    private static let headers =
        "headers must be a JSON object of strings, as in '{\"Referer\":\"https://example.com/\"}'"
    private static let counters = "the counters of a job are kept by the database; leave them out of the INSERT"
    private static let state = "a new job is 'queued' or 'paused'"
    private static let job =
        "no open job has this id: insert the job first, and add items as in INSERT INTO items (job, url) SELECT (SELECT last_insert_rowid()), url FROM …"
    private static let itemState = "a new item is 'queued'; leave state out of the INSERT"
    private static let kept = "the id, job and url of an item stay as they are; insert a new item instead"

    static let jobs = [
        Mistake("INSERT INTO jobs (urls) VALUES ('https://a.example/a.jpg')", urls),
        Mistake("INSERT INTO jobs (urls) VALUES ('[\"https://a.example/a.jpg\"')", urls),
        Mistake("INSERT INTO jobs (urls) VALUES ('')", urls),
        Mistake("INSERT INTO jobs (urls) VALUES ('{\"a\":\"https://a.example/a.jpg\"}')", urls),
        Mistake("INSERT INTO jobs (urls) VALUES ('\"https://a.example/a.jpg\"')", urls),
        Mistake("INSERT INTO jobs (urls) VALUES (7)", urls),
        Mistake("INSERT INTO jobs (priority) VALUES (101)", priority),
        Mistake("INSERT INTO jobs (priority) VALUES (-101)", priority),
        Mistake("INSERT INTO jobs (priority) VALUES (1.5)", priority),
        Mistake("INSERT INTO jobs (priority) VALUES ('high')", priority),
        Mistake("INSERT INTO jobs (priority) VALUES (NULL)", priority),
        Mistake("UPDATE jobs SET priority = 1000 WHERE id = 1", priority),
        Mistake("UPDATE jobs SET priority = NULL WHERE id = 1", priority),
        Mistake("INSERT INTO jobs (execution_order) VALUES ('random')", order),
        Mistake("INSERT INTO jobs (execution_order) VALUES ('FIFO')", order),
        Mistake("UPDATE jobs SET execution_order = 'newest' WHERE id = 1", order),
        Mistake(
            "INSERT INTO jobs (variants) VALUES (x'00')", "variants must be text, as in 'thumb=320x240,cover,webp,q80'"),
        Mistake(
            "INSERT INTO jobs (options) VALUES (x'00')", "options must be text, as in 'retry-failed, discard-original'"),
        Mistake("INSERT INTO jobs (headers) VALUES ('Referer: https://a.example/')", headers),
        Mistake("INSERT INTO jobs (headers) VALUES ('[\"Referer\"]')", headers),
        Mistake("INSERT INTO jobs (headers) VALUES ('{\"Referer\":7}')", headers),
        Mistake("INSERT INTO jobs (headers) VALUES (7)", headers),
        Mistake("UPDATE jobs SET headers = '[]' WHERE id = 1", headers),
        Mistake("INSERT INTO jobs (total) VALUES (1)", counters),
        Mistake("INSERT INTO jobs (total, queued) VALUES (1, 1)", counters),
        Mistake("INSERT INTO jobs (bytes) VALUES (1)", counters),
        Mistake("INSERT INTO jobs (state) VALUES ('running')", state),
        Mistake("INSERT INTO jobs (state) VALUES ('finished')", state),
        Mistake("INSERT INTO jobs (state) VALUES ('done')", state),
        Mistake("INSERT INTO jobs (state) VALUES (NULL)", state),
        Mistake(
            "UPDATE jobs SET urls = json_array('https://a.example/b.jpg') WHERE id = 1",
            "urls is read when the job is inserted; add rows to items instead"),
        Mistake(
            "UPDATE jobs SET queued = 7 WHERE id = 1",
            "the counters of a job are kept by the database; change its items instead"),
        Mistake(
            "INSERT INTO jobs (dedupe_key) VALUES ('daily')", "UNIQUE constraint failed: jobs.dedupe_key"),
    ]

    static let items = [
        Mistake("INSERT INTO items (url) VALUES ('https://a.example/a.jpg')", "an item needs the id of its job"),
        Mistake(
            "INSERT INTO items (job, url) VALUES (NULL, 'https://a.example/a.jpg')", "an item needs the id of its job"),
        Mistake("INSERT INTO items (job, url) VALUES (99, 'https://a.example/a.jpg')", job),
        Mistake("INSERT INTO items (job, url) VALUES ('catalogue', 'https://a.example/a.jpg')", job),
        Mistake("INSERT INTO items (job, url, state) VALUES (1, 'https://a.example/a.jpg', 'done')", itemState),
        Mistake("INSERT INTO items (job, url, state) VALUES (1, 'https://a.example/a.jpg', NULL)", itemState),
        Mistake("INSERT INTO items (job, url, state) VALUES (1, 'https://a.example/a.jpg', 'active')", itemState),
        Mistake("UPDATE items SET url = 'https://a.example/b.jpg' WHERE id = 1", kept),
        Mistake("UPDATE items SET url = NULL WHERE id = 1", kept),
        Mistake("UPDATE items SET job = 2 WHERE id = 1", kept),
        Mistake("UPDATE items SET id = 77 WHERE id = 1", kept),
        Mistake(
            "UPDATE items SET lease = 5 WHERE id = 1",
            "CHECK constraint failed: an item is leased exactly while it is active"),
    ]

    private static let meta = "meta must be a JSON object of at most 16 KiB, as in json_object('sku', 7)"
    private static let ownPriority =
        "the priority of an item must be a whole number from -100 to 100 (or NULL for its job's)"
    private static let fallbacks =
        "fallbacks must be a JSON array of at most 16 strings, as in json_array('https://example.com/b.jpg')"

    /// Columns that a user sets for a single item.
    static let ownColumns =
        [
            ("meta", "'[]'", meta), ("meta", "'sku 7'", meta), ("meta", "json_object('a', hex(zeroblob(9000)))", meta),
            ("priority", "101", ownPriority), ("priority", "'high'", ownPriority),
            ("variants", "x'00'", "variants must be text, as in 'thumb=320x240,cover,webp,q80'"),
            ("headers", "'Referer: https://a.example/'", headers), ("headers", "'{\"Referer\":7}'", headers),
            ("sha256", "'abc'", "sha256 must be 64 hexadecimal digits"),
            ("size", "-1", "size must be a whole number of bytes, 0 or more"),
            ("size", "'1 MB'", "size must be a whole number of bytes, 0 or more"),
            ("fallbacks", "'https://b.example/b.jpg'", fallbacks), ("fallbacks", "json_array(7)", fallbacks),
        ].flatMap { column, value, complaint in
            [
                Mistake(
                    "INSERT INTO items (job, url, \(column)) VALUES (1, 'https://a.example/a.jpg', \(value))", complaint
                ),
                Mistake("UPDATE items SET \(column) = \(value) WHERE id = 1", complaint),
            ]
        }

    private static let notify =
        "notify must be an http or https URL, or 'command' for the command of worker run --notify-command"
    private static let unknownRecipe =
        "variants names a recipe that does not exist; SELECT name FROM recipes lists those that do"
    private static let recipeName =
        "CHECK constraint failed: the name of a recipe has 1 to 100 letters, digits, dots, hyphens and underscores"
    private static let recipeVariants =
        "CHECK constraint failed: the variants of a recipe are written in short, as in 'thumb=320x240,webp card=640x,webp', and name no recipe"

    static let noticesAndRecipes = [
        Mistake("INSERT INTO jobs (notify) VALUES ('ops@a.example')", notify),
        Mistake("INSERT INTO jobs (notify) VALUES ('ftp://a.example/')", notify),
        Mistake("INSERT INTO jobs (notify) VALUES ('https://')", notify),
        Mistake("INSERT INTO jobs (notify) VALUES (7)", notify),
        Mistake("UPDATE jobs SET notify = 'commands' WHERE id = 1", notify),
        Mistake("INSERT INTO jobs (variants) VALUES ('recipe:catalogue')", unknownRecipe),
        Mistake("UPDATE jobs SET variants = 'a=10x,png;recipe:catalogue' WHERE id = 1", unknownRecipe),
        Mistake(
            "INSERT INTO items (job, url, variants) VALUES (1, 'https://a.example/a.jpg', 'recipe:catalogue')",
            unknownRecipe),
        Mistake("INSERT INTO recipes VALUES ('my shop', 'a=10x,png')", recipeName),
        Mistake("INSERT INTO recipes VALUES ('', 'a=10x,png')", recipeName),
        Mistake("INSERT INTO recipes VALUES ('shop', 'a=10x,png recipe:other')", recipeVariants),
        Mistake("INSERT INTO recipes VALUES ('shop', '[{\"name\":\"a\"}]')", recipeVariants),
    ]

    private static let host = "a host is a name without scheme, port and path, as in images.example.com; or * for all"

    static let hostsAndSchedules = [
        Mistake("INSERT INTO limits (host, per_host) VALUES ('https://a.example/', 2)", host),
        Mistake("INSERT INTO limits (host, per_host) VALUES ('a.example:8080', 2)", host),
        Mistake(
            "INSERT INTO blacklist (url) VALUES ('https://a.example/a.jpg')",
            "a URL is listed when it fails for good; to list one by hand, insert it into blacklist_entries, as docs/reference/sql.md shows"
        ),
        Mistake(
            "UPDATE items SET state = 'Done' WHERE id = 1",
            "the states of an item are \(ItemState.allCases.map(\.rawValue).joined(separator: ", ")), in lower case"),
        Mistake(
            "UPDATE jobs SET state = 'Paused' WHERE id = 1",
            "the states of a job are \(JobState.allCases.map(\.rawValue).joined(separator: ", ")), in lower case"),
        Mistake(
            "INSERT OR REPLACE INTO jobs (id, urls) VALUES (1, json_array('https://a.example/b.jpg'))",
            "a job can't be replaced, since its items would be lost; leave OR REPLACE out, or delete the job first"),
        Mistake("UPDATE jobs SET id = 9 WHERE id = 1", "the id of a job stays as it is"),
        Mistake(
            "INSERT INTO schedules (name, manifest, cron) VALUES ('', 'sources: []', '0 * * * *')",
            "CHECK constraint failed: the name of a schedule has 1 to 100 characters"),
        Mistake(
            "INSERT INTO schedules (name, manifest, cron, jitter) VALUES ('shop', 'sources: []', '0 * * * *', '5m')",
            "CHECK constraint failed: jitter is a whole number of milliseconds, from 0 to a day"),
        Mistake(
            "INSERT INTO schedules (name, manifest, cron, missed) VALUES ('shop', 'sources: []', '0 * * * *', 'all')",
            "CHECK constraint failed: missed is 'once' or 'skip'"),
    ]
}

@Suite("Mistakes in SQL", .timeLimit(.minutes(15)), .enabled(if: Shell.isThere, Shell.missing), .onSQLite)
struct SQLMistakeTests {
    @Test(arguments: [
        Mistake.jobs, Mistake.items, Mistake.ownColumns, Mistake.noticesAndRecipes, Mistake.hostsAndSchedules,
    ])
    func `Every mistake is refused by its statement with a sentence, and changes nothing`(
        _ mistakes: [Mistake]
    ) async throws {
        try await withQueue { queue in
            try queue.shell.expect(
                """
                INSERT INTO jobs (urls, dedupe_key) VALUES (json_array('https://a.example/1.jpg'), 'daily');
                INSERT INTO jobs (urls) VALUES (json_array('https://a.example/2.jpg'));
                """)
            let before = try queue.shell.dump()
            for mistake in mistakes {
                let answer = try queue.shell.run(mistake.sql + ";")
                #expect(answer.complaint == mistake.complaint, "\(mistake.sql)")
            }
            #expect(try queue.shell.dump() == before)
        }
    }

    @Test func `An element that is no URL fails alone, and the others of a long array are queued`() async throws {
        try await withQueue { queue in
            try queue.shell.expect(
                """
                INSERT INTO jobs (urls) SELECT json_group_array(CASE value WHEN 700 THEN 700 ELSE 'https://a.example/' || value END)
                FROM (WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 1000) SELECT value FROM n);
                """)
            #expect(
                try queue.shell.expect(
                    "SELECT state, total, queued, failed FROM progress; SELECT url, class FROM failures;")
                    == ["queued|1000|999|1", "700|invalid-url"])
        }
    }

    @Test func `INSERT OR IGNORE adds no job while an unfinished job has its dedupe_key`()
        async throws
    {
        try await withQueue { queue in
            let insert =
                "INSERT OR IGNORE INTO jobs (urls, dedupe_key) VALUES (json_array('https://a.example/1.jpg'), 'daily');"
            try queue.shell.expect(insert + insert)
            #expect(try queue.shell.expect("SELECT count(*) FROM jobs; SELECT count(*) FROM items;") == ["1", "1"])
            let item = try #require(try await queue.claim().first)
            try await queue.end(item, .failed(.denied))
            try queue.shell.expect(insert)
            #expect(try queue.shell.expect("SELECT count(*) FROM jobs; SELECT count(*) FROM items;") == ["2", "2"])
        }
    }
}
