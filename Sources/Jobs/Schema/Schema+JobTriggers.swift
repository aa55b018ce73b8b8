extension Schema {
    /// A check that refuses the statement with a sentence for whoever typed it.
    private static func refuse(_ message: String, when condition: String) -> String {
        "SELECT RAISE(ABORT, '\(message.replacing("'", with: "''"))') WHERE \(condition);"
    }

    private static let checks = [
        refuse(
            "priority must be a whole number from -100 to 100",
            when: "typeof(NEW.priority) <> 'integer' OR NEW.priority NOT BETWEEN -100 AND 100",
        ),
        refuse(
            "execution_order must be 'fifo' or 'lifo' (or NULL for the worker's own)",
            when: "NEW.execution_order IS NOT NULL AND NEW.execution_order NOT IN ('fifo', 'lifo')",
        ),
        refuse(
            "variants must be text, as in 'thumb=320x240,cover,webp,q80'",
            when: "NEW.variants IS NOT NULL AND typeof(NEW.variants) <> 'text'",
        ),
        refuse(
            "options must be text, as in 'retry-failed, discard-original'",
            when: "NEW.options IS NOT NULL AND typeof(NEW.options) <> 'text'",
        ),
        refuse(
            "headers must be a JSON object of strings, as in '{\"Referer\":\"https://example.com/\"}'",
            when: """
                NEW.headers IS NOT NULL AND CASE WHEN json_valid(NEW.headers)
                THEN json_type(NEW.headers) <> 'object'
                    OR EXISTS (SELECT 1 FROM json_each(NEW.headers) WHERE type <> 'text')
                ELSE 1 END
                """,
        ),
    ].joined(separator: "\n")

    /// One `CASE`, so that JSON functions never see text that isn't JSON.
    private static let urlsAreWrong = """
        NEW.urls IS NOT NULL AND CASE WHEN json_valid(NEW.urls) THEN json_type(NEW.urls) <> 'array' ELSE 1 END
        """

    /// The options as words between commas, whatever white space is between them.
    private static let optionWords =
        "',' || " + [9, 10, 13, 32].reduce("options") { "replace(\($0), char(\($1)), ',')" } + " || ','"

    static let jobTriggers = """
        CREATE TRIGGER jobs_check_insert BEFORE INSERT ON jobs BEGIN
            \(checks)
            \(refuse(
                "urls must be a JSON array of strings, as in json_array('https://example.com/a.jpg')",
                when: urlsAreWrong,
            ))
            \(refuse("a new job is 'queued' or 'paused'", when: "NEW.state IS NULL OR NEW.state NOT IN ('queued', 'paused')"))
            \(refuse(
                "the counters of a job are kept by the database; leave them out of the INSERT",
                when: """
                    NEW.total <> 0 OR NEW.queued <> 0 OR NEW.active <> 0 OR NEW.delayed <> 0 OR NEW.done <> 0
                    OR NEW.cached <> 0 OR NEW.failed <> 0 OR NEW.blacklisted <> 0 OR NEW.cancelled <> 0 OR NEW.bytes <> 0
                    """,
            ))
        END;
        CREATE TRIGGER jobs_check_update BEFORE UPDATE OF priority, execution_order, variants, options, headers ON jobs
        BEGIN
            \(checks)
        END;
        CREATE TRIGGER jobs_urls_once BEFORE UPDATE OF urls ON jobs WHEN NEW.urls IS NOT NULL BEGIN
            SELECT RAISE(ABORT, 'urls is read when the job is inserted; add rows to items instead');
        END;
        CREATE TRIGGER jobs_state_moves BEFORE UPDATE OF state ON jobs
        WHEN \(illegalMove(JobState.self) { $0.canMove(to: $1) }) BEGIN
            SELECT RAISE(ABORT, 'a job can''t move between these states; docs/job-life.md shows the moves it can make');
        END;

        -- The text goes before the items come: counting rewrites this row. They are counted once, at the end.
        CREATE TRIGGER jobs_spread AFTER INSERT ON jobs WHEN NEW.urls IS NOT NULL BEGIN
            UPDATE jobs SET urls = NULL WHERE id = NEW.id;
            INSERT INTO spreading (job) VALUES (NEW.id);
            INSERT INTO items (job, url)
                SELECT NEW.id, CASE type WHEN 'text' THEN value ELSE
                    RAISE(ABORT, 'urls must be a JSON array of strings, and one of its elements is not a string') END
                FROM json_each(NEW.urls);
            DELETE FROM spreading;
            UPDATE jobs SET total = counted.n, queued = counted.n
                FROM (SELECT count(*) AS n FROM items WHERE job = NEW.id) AS counted WHERE id = NEW.id;
            UPDATE jobs SET state = 'finished', finished_at = \(now) WHERE id = NEW.id AND total = 0;
        END;
        CREATE TRIGGER jobs_priority_options AFTER INSERT ON jobs WHEN NEW.priority = 0 AND NEW.options IS NOT NULL BEGIN
            UPDATE jobs SET priority = CASE
                WHEN \(optionWords) LIKE '%,high-priority,%' THEN 50
                WHEN \(optionWords) LIKE '%,low-priority,%' THEN -50
                ELSE 0 END
            WHERE id = NEW.id;
        END;
        CREATE TRIGGER jobs_delete AFTER DELETE ON jobs BEGIN
            DELETE FROM items WHERE job = OLD.id;
        END;
        """
}
