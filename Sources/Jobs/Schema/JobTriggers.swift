/// Triggers that check changes of `jobs`, for every program and any setting of `recursive_triggers` and `foreign_keys`.
///
/// SQLite runs triggers in the reverse order of their creation, so their order matters.
extension Schema {
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
        headersCheck, notifyCheck,
    ].joined(separator: "\n")

    /// The options between commas; all white space is replaced by commas.
    static let optionWords =
        "',' || " + [9, 10, 13, 32].reduce("options") { "replace(\($0), char(\($1)), ',')" } + " || ','"

    static let jobTriggers = """
        CREATE TRIGGER jobs_check_insert BEFORE INSERT ON jobs BEGIN
            \(checks)
            \(refuse(
                "urls must be a JSON array of strings, as in json_array('https://example.com/a.jpg')",
                when: isNoJSON("urls", type: "array"),
            ))
            \(refuse("a new job is 'queued' or 'paused'", when: "NEW.state IS NULL OR NEW.state NOT IN ('queued', 'paused')"))
            \(refuse(
                "the counters of a job are kept by the database; leave them out of the INSERT",
                when: """
                    NEW.total <> 0 OR NEW.queued <> 0 OR NEW.active <> 0 OR NEW.delayed <> 0 OR NEW.done <> 0
                    OR NEW.cached <> 0 OR NEW.failed <> 0 OR NEW.blacklisted <> 0 OR NEW.cancelled <> 0 OR NEW.bytes <> 0
                    OR NEW.not_new <> 0 OR NEW.revision <> 0
                    """,
            ))
        END;
        CREATE TRIGGER jobs_check_update BEFORE UPDATE OF priority, execution_order, variants, options, headers, notify ON jobs
        BEGIN
            \(checks)
        END;
        CREATE TRIGGER jobs_urls_once BEFORE UPDATE OF urls ON jobs
        WHEN NEW.urls IS NOT NULL AND (OLD.urls IS NULL OR NEW.urls <> '[]') BEGIN
            SELECT RAISE(ABORT, 'urls is read when the job is inserted; add rows to items instead');
        END;
        CREATE TRIGGER jobs_state_moves BEFORE UPDATE OF state ON jobs
        WHEN \(isIllegalMove(JobState.self) { $0.canMove(to: $1) }) BEGIN
            SELECT RAISE(ABORT, 'a job can''t move between these states; docs/reference/sql.md shows the moves it can make');
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
        CREATE TRIGGER jobs_end AFTER UPDATE OF finished_at ON jobs BEGIN
            DELETE FROM job_ends WHERE job = NEW.id;
            INSERT INTO job_ends SELECT NEW.id, \(steady("NEW.finished_at")) WHERE NEW.finished_at IS NOT NULL;
        END;
        CREATE TRIGGER jobs_forget_end AFTER DELETE ON jobs BEGIN
            DELETE FROM job_ends WHERE job = OLD.id;
            DELETE FROM recounts WHERE job = OLD.id;
        END;
        """
        + keepJobs + spreadURLs

    /// Items belong to a job, counters equal a recount, and a job without open items is finished.
    private static let keepJobs = """

        CREATE TRIGGER jobs_note_replaced BEFORE INSERT ON jobs BEGIN
            SELECT RAISE(ABORT, 'the id of a job is a positive number of at most 2^51; leave it out of the INSERT')
                WHERE NEW.id <> -1 AND (NEW.id < 1 OR NEW.id > \(largestJobID));
            DELETE FROM replacing;
            INSERT OR IGNORE INTO replacing SELECT id FROM jobs WHERE id = NEW.id;
            INSERT OR IGNORE INTO replacing SELECT id FROM jobs
                WHERE dedupe_key = NEW.dedupe_key AND \(isOpen());
        END;
        CREATE TRIGGER jobs_refuse_replacing AFTER INSERT ON jobs BEGIN
            SELECT RAISE(ABORT, 'a job can''t be replaced, since its items would be lost; leave OR REPLACE out, or delete the job first')
                WHERE EXISTS (SELECT 1 FROM replacing WHERE job = NEW.id OR job NOT IN (SELECT id FROM jobs));
            SELECT RAISE(ABORT, 'the id of a job is a positive number of at most 2^51; leave it out of the INSERT')
                WHERE NEW.id < 1;
            SELECT RAISE(ABORT, 'this id belongs to a job whose list is being added; leave the id out of the INSERT')
                WHERE EXISTS (SELECT 1 FROM job_additions WHERE job = NEW.id);
            DELETE FROM replacing;
        END;
        CREATE TRIGGER jobs_keep_id BEFORE UPDATE OF id, rowid, oid, _rowid_ ON jobs WHEN OLD.id <> NEW.id BEGIN
            SELECT RAISE(ABORT, 'the id of a job stays as it is');
        END;
        -- The same as the table's checks, which a shell can switch off. One row that breaks them would fail every
        -- transaction of a worker that changes it.
        CREATE TRIGGER jobs_keep_sums
        BEFORE UPDATE OF state, total, queued, active, delayed, done, cached, failed, blacklisted, cancelled ON jobs
        WHEN NOT (\(addsUp("NEW."))) OR (NEW.state = 'finished' AND NEW.queued + NEW.active + NEW.delayed <> 0) BEGIN
            SELECT RAISE(ABORT, 'a finished job has nothing left to do; cancel the job, or its items')
                WHERE NEW.state = 'finished' AND NEW.queued + NEW.active + NEW.delayed <> 0;
            SELECT RAISE(ABORT, 'total must be the sum of a job''s other counters; change its items instead');
        END;
        CREATE TRIGGER jobs_keep_counters
        BEFORE UPDATE OF total, queued, active, delayed, done, cached, failed, blacklisted, cancelled, bytes, not_new, revision
        ON jobs WHEN NEW.revision IS NOT OLD.revision + 1 AND (\(changesAny(of: counterColumns + ["revision"]))) BEGIN
            SELECT RAISE(ABORT, 'the counters of a job are kept by the database; change its items instead');
        END;
        CREATE TRIGGER jobs_keep_dedupe BEFORE UPDATE OF dedupe_key, state ON jobs
        WHEN NEW.dedupe_key IS NOT NULL AND \(isOpen("NEW."))
            AND (OLD.dedupe_key IS NOT NEW.dedupe_key OR NOT \(isOpen("OLD."))) BEGIN
            SELECT RAISE(ABORT, 'another unfinished job has this dedupe_key') WHERE EXISTS (SELECT 1 FROM jobs
                WHERE dedupe_key = NEW.dedupe_key AND \(isOpen()) AND id <> NEW.id);
        END;
        -- A person has opened a job that has nothing left to do.
        CREATE TRIGGER jobs_stay_finished AFTER UPDATE OF state ON jobs
        WHEN NEW.revision = OLD.revision AND \(isOpen("NEW.")) AND NEW.total > 0
            AND NEW.queued + NEW.active + NEW.delayed = 0 BEGIN
            UPDATE jobs SET state = 'finished', finished_at = coalesce(OLD.finished_at, \(now)) WHERE id = NEW.id;
        END;

        """

    private static let spreadURLs = """

        -- The items are counted once, at the end. As long as the job has a list, items_count_insert does not count them; an
        -- empty one, since every look at the row would read a long one.
        CREATE TRIGGER jobs_spread AFTER INSERT ON jobs WHEN NEW.urls IS NOT NULL BEGIN
            UPDATE jobs SET urls = '[]' WHERE id = NEW.id;
            DELETE FROM spreading;
            INSERT INTO spreading (job) VALUES (NEW.id);
            INSERT INTO items (job, url) SELECT NEW.id, value FROM json_each(NEW.urls);
            UPDATE jobs SET urls = NULL, total = n, queued = n - counted.failed, failed = counted.failed,
                revision = revision + 1
                FROM (SELECT (SELECT count(*) FROM items WHERE job = NEW.id) AS n, failed FROM spreading) AS counted
                WHERE id = NEW.id;
            DELETE FROM spreading;
            UPDATE jobs SET state = 'finished', finished_at = \(now) WHERE id = NEW.id AND queued = 0;
        END;
        -- A job that a shell cancels has an end, as one that `worker cancel` does, and so is pruned in its time.
        CREATE TRIGGER jobs_note_end AFTER UPDATE OF state ON jobs
        WHEN OLD.state <> NEW.state AND (NEW.state = 'finished' OR NEW.state = 'cancelled' OR NEW.state = 'failed')
            AND NEW.finished_at IS NULL BEGIN
            UPDATE jobs SET finished_at = \(now) WHERE id = NEW.id;
        END;
        """

    private static let counterColumns = ["total"] + ItemSchema.counters.map(\.column) + ["bytes", "not_new"]

    /// The condition that the counters of a job are whole numbers and add up.
    static func addsUp(_ row: String) -> String {
        let parts = ItemSchema.counters.map { "\(row)\($0.column)" }
        return "\(row)total = \(parts.joined(separator: " + ")) AND "
            + (["\(row)total"] + parts).map { "typeof(\($0)) = 'integer'" }.joined(separator: " AND ")
    }

    /// The condition that the urls of the job in `NEW.job` are being added as items, within one statement.
    static let isBeingSpread = "EXISTS (SELECT 1 FROM jobs WHERE id = NEW.job AND urls IS NOT NULL)"
}
