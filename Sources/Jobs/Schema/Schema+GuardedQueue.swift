/// Migration 14: items belong to a job, counters equal a recount and a job whose items have ended is finished, whatever a
/// `sqlite3` shell does, with any setting of `recursive_triggers` and `foreign_keys`.
///
/// - `jobs.revision` changes with every change of a job's counters that the database itself makes. An UPDATE that changes
///   counters and not the revision was typed by a person, and is refused.
/// - `replacing` holds, within one INSERT, the jobs that an `OR REPLACE` would delete: SQLite runs no DELETE trigger for them
///   unless `recursive_triggers` is on, so their items would be stranded.
/// - `items.deaths` counts the workers that died while they held the item, and `leases.is_alone` says that a lease's item was
///   the only one its worker held.
/// - A row of `moving` with a negative number stands for all items of that job.
extension Schema {
    static let guardedQueue = """
        ALTER TABLE jobs ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE items ADD COLUMN deaths INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE leases ADD COLUMN is_alone INTEGER NOT NULL DEFAULT 0;
        CREATE INDEX items_suspect ON items (deaths, id) WHERE state = 'queued' AND deaths > 1;
        CREATE INDEX items_delayed_by_job ON items (job) WHERE state = 'delayed';
        CREATE INDEX jobs_closed ON jobs (id) WHERE state IN ('cancelled', 'failed') AND queued + active + delayed > 0;
        CREATE TABLE replacing (job INTEGER PRIMARY KEY);
        \(guardedJobs)
        \(guardedItems)
        \(countedItems)
        \(judgedMoves)
        """

    private static let guardedJobs = """
        CREATE TRIGGER jobs_note_replaced BEFORE INSERT ON jobs BEGIN
            DELETE FROM replacing;
            INSERT OR IGNORE INTO replacing SELECT id FROM jobs WHERE id = NEW.id;
            INSERT OR IGNORE INTO replacing SELECT id FROM jobs
                WHERE dedupe_key = NEW.dedupe_key AND (state = 'queued' OR state = 'running' OR state = 'paused');
        END;
        CREATE TRIGGER jobs_refuse_replacing AFTER INSERT ON jobs BEGIN
            SELECT RAISE(ABORT, 'a job can''t be replaced, since its items would be lost; leave OR REPLACE out, or delete the job first')
                WHERE EXISTS (SELECT 1 FROM replacing WHERE job = NEW.id OR job NOT IN (SELECT id FROM jobs));
            SELECT RAISE(ABORT, 'the id of a job is a positive number; leave it out of the INSERT') WHERE NEW.id < 1;
            DELETE FROM replacing;
        END;
        CREATE TRIGGER jobs_keep_id BEFORE UPDATE OF id, rowid, oid, _rowid_ ON jobs WHEN OLD.id <> NEW.id BEGIN
            SELECT RAISE(ABORT, 'the id of a job stays as it is');
        END;
        CREATE TRIGGER jobs_keep_counters
        BEFORE UPDATE OF total, queued, active, delayed, done, cached, failed, blacklisted, cancelled, bytes ON jobs
        WHEN NEW.revision = OLD.revision AND (\(anyOf(counterColumns, { "NEW.\($0) IS NOT OLD.\($0)" }))) BEGIN
            SELECT RAISE(ABORT, 'the counters of a job are kept by the database; change its items instead');
        END;
        CREATE TRIGGER jobs_keep_dedupe BEFORE UPDATE OF dedupe_key, state ON jobs
        WHEN NEW.dedupe_key IS NOT NULL AND (NEW.state = 'queued' OR NEW.state = 'running' OR NEW.state = 'paused')
            AND (OLD.dedupe_key IS NOT NEW.dedupe_key OR NOT (OLD.state = 'queued' OR OLD.state = 'running' OR OLD.state = 'paused')) BEGIN
            SELECT RAISE(ABORT, 'another unfinished job has this dedupe_key') WHERE EXISTS (SELECT 1 FROM jobs
                WHERE dedupe_key = NEW.dedupe_key AND (state = 'queued' OR state = 'running' OR state = 'paused') AND id <> NEW.id);
        END;
        -- A person has opened a job that has nothing left to do.
        CREATE TRIGGER jobs_stay_finished AFTER UPDATE OF state ON jobs
        WHEN NEW.revision = OLD.revision AND (NEW.state = 'queued' OR NEW.state = 'running' OR NEW.state = 'paused') AND NEW.total > 0
            AND NEW.queued + NEW.active + NEW.delayed = 0 BEGIN
            UPDATE jobs SET state = 'finished', finished_at = ifnull(OLD.finished_at, \(now)) WHERE id = NEW.id;
        END;
        """

    private static let guardedItems = """
        CREATE TRIGGER items_refuse_replacing BEFORE INSERT ON items
        WHEN NEW.id <> -1 AND (NEW.id < 1 OR EXISTS (SELECT 1 FROM items WHERE id = NEW.id)) BEGIN
            SELECT RAISE(ABORT, 'the id of an item is a positive number that no other item has; leave it out of the INSERT');
        END;
        DROP TRIGGER items_keep_job;
        CREATE TRIGGER items_keep_job BEFORE UPDATE OF id, rowid, oid, _rowid_, job, url ON items
        WHEN OLD.id <> NEW.id OR OLD.job <> NEW.job OR OLD.url <> NEW.url BEGIN
            SELECT RAISE(ABORT, 'the id, job and url of an item stay as they are; insert a new item instead');
        END;
        CREATE TRIGGER items_keep_ending BEFORE UPDATE OF cached, blacklisted, bytes ON items
        WHEN OLD.state = NEW.state AND OLD.finished_at IS NOT NULL
            AND (\(anyOf(["cached", "blacklisted", "bytes"], { "NEW.\($0) IS NOT OLD.\($0)" }))) BEGIN
            SELECT RAISE(ABORT, 'what an item ended with stays as it is; retry it instead');
        END;
        """

    /// The triggers that count, each with a change of the revision.
    private static let countedItems = """
        DROP TRIGGER items_count_insert;
        CREATE TRIGGER items_count_insert AFTER INSERT ON items
        WHEN NOT EXISTS (SELECT 1 FROM spreading WHERE job = NEW.job) BEGIN
            SELECT RAISE(ABORT, 'the id of an item is a positive number; leave it out of the INSERT') WHERE NEW.id < 1;
            UPDATE jobs SET state = 'queued', finished_at = NULL, revision = revision + 1
                WHERE id = NEW.job AND state = 'finished';
            UPDATE jobs SET total = total + 1, queued = queued + 1, revision = revision + 1
                WHERE id = NEW.job AND state NOT IN ('cancelled', 'failed');
            SELECT RAISE(ABORT, 'no open job has this id: insert the job first, and add items as in INSERT INTO items (job, url) SELECT (SELECT last_insert_rowid()), url FROM …')
                WHERE changes() = 0;
        END;
        DROP TRIGGER items_count_update;
        CREATE TRIGGER items_count_update AFTER UPDATE OF state ON items
        WHEN OLD.state <> NEW.state AND NOT EXISTS
            (SELECT 1 FROM moving WHERE (item = NEW.id OR item = -NEW.job) AND state = NEW.state) BEGIN
            \(countRevisedMove)
        END;
        DROP TRIGGER items_reopen;
        CREATE TRIGGER items_reopen BEFORE UPDATE OF state ON items
        WHEN NEW.state = 'queued' AND (OLD.state = 'failed' OR OLD.state = 'cancelled')
            AND NOT EXISTS (SELECT 1 FROM moving WHERE item = -NEW.job AND state = 'queued') BEGIN
            UPDATE jobs SET state = 'queued', finished_at = NULL, error = NULL, revision = revision + 1
                WHERE id = NEW.job AND (state = 'finished' OR state = 'cancelled' OR state = 'failed');
        END;
        DROP TRIGGER items_delete;
        CREATE TRIGGER items_delete AFTER DELETE ON items BEGIN
            DELETE FROM renditions WHERE item = OLD.id;
        END;
        CREATE TRIGGER items_count_delete AFTER DELETE ON items
        WHEN NOT EXISTS (SELECT 1 FROM moving WHERE item = -OLD.job AND state = 'deleted') BEGIN
            UPDATE jobs SET total = total - 1,
            \(dropCounters),
            revision = revision + 1
            WHERE id = OLD.job;
            UPDATE jobs SET state = 'finished', finished_at = \(now)
                WHERE id = OLD.job AND queued = 0 AND active = 0 AND delayed = 0 AND (state = 'queued' OR state = 'running' OR state = 'paused');
        END;
        DROP TRIGGER jobs_spread;
        CREATE TRIGGER jobs_spread AFTER INSERT ON jobs WHEN NEW.urls IS NOT NULL BEGIN
            UPDATE jobs SET urls = NULL WHERE id = NEW.id;
            INSERT INTO spreading (job) VALUES (NEW.id);
            INSERT INTO items (job, url)
                SELECT NEW.id, CASE type WHEN 'text' THEN value ELSE
                    RAISE(ABORT, 'urls must be a JSON array of strings, and one of its elements is not a string') END
                FROM json_each(NEW.urls);
            DELETE FROM spreading;
            UPDATE jobs SET total = counted.n, queued = counted.n, revision = revision + 1
                FROM (SELECT count(*) AS n FROM items WHERE job = NEW.id) AS counted WHERE id = NEW.id;
            UPDATE jobs SET state = 'finished', finished_at = \(now) WHERE id = NEW.id AND total = 0;
        END;
        """

    private static let counterColumns = ["total"] + counters.map(\.column) + ["bytes"]

    private static func anyOf(_ columns: [String], _ condition: (String) -> String) -> String {
        columns.map(condition).joined(separator: " OR ")
    }
}
