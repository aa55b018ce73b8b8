internal import Core

/// Triggers that check changes of `items` and update the counters of `jobs`.
///
/// SQLite runs triggers in the reverse order of their creation. So the trigger that refuses illegal moves is created
/// last, and a refused move runs no other trigger.
///
/// SQLite allocates memory for a trigger's whole body each time it checks the trigger's condition. A worker updates
/// each item twice, so only two triggers watch these updates, and their bodies are short. The statements that seldom
/// run are in triggers on views, which an INSERT into the view starts. This saves three tenths of both updates.
enum ItemSchema {
    /// The counters of `jobs` in which an item counts, each as a condition on columns with a prefix, such as `OLD.`.
    static let counters: [(column: String, condition: @Sendable (String) -> String)] = [
        ("queued", { "\($0)state = 'queued'" }),
        ("active", { "\($0)state = 'active'" }),
        ("delayed", { "\($0)state = 'delayed'" }),
        ("done", { "(\($0)state = 'done' AND \($0)cached = 0)" }),
        ("cached", { "(\($0)state = 'done' AND \($0)cached <> 0)" }),
        ("failed", { "(\($0)state = 'failed' AND \($0)blacklisted = 0)" }),
        ("blacklisted", { "(\($0)state = 'failed' AND \($0)blacklisted <> 0)" }),
        ("cancelled", { "\($0)state = 'cancelled'" }),
    ]

    private static let moveCounters =
        counters
        .map { "\($0.column) = \($0.column) + (\($0.condition("NEW."))) - (\($0.condition("NEW.was_")))" }
        .joined(separator: ",\n        ")

    /// The tries so far, within bounds: a program may have written another value, even a negative one.
    static let attempts = "min(max(CAST(attempts AS INTEGER), 0), 1000000)"

    /// The condition that a retried item opens its job again.
    private static let reopens = """
        (NEW.state = 'queued' AND (NEW.was_state = 'failed' OR NEW.was_state = 'cancelled')
                    AND (state = 'finished' OR state = 'cancelled' OR state = 'failed'))
        """

    private static let dropCounters =
        counters
        .map { "\($0.column) = \($0.column) - (\($0.condition("OLD.")))" }
        .joined(separator: ",\n        ")

    /// True for no value, white space, bytes or a number. The column's affinity converts a number to text before a
    /// trigger runs, so the trigger recognizes it by its digits. The pattern is a constant, since a concatenated one
    /// took a fifth of an INSERT.
    private static let isNoURL =
        "(typeof(NEW.url) <> 'text' OR NEW.url NOT GLOB '*[^0-9.e+ \t\n\r-]*')"

    /// The condition that an item with this URL is done. A row of `done_urls` alone is no proof: a program that
    /// switches triggers off may have deleted its item.
    static func isKnown(_ url: String) -> String {
        """
        EXISTS (SELECT 1 FROM done_urls CROSS JOIN items ON items.id = done_urls.item
                    WHERE done_urls.url = \(url) AND items.state = 'done')
        """
    }

    static let triggers = """
        CREATE TRIGGER items_check_insert BEFORE INSERT ON items
        WHEN NEW.state IS NOT 'queued' OR NEW.job IS NULL OR NEW.attempts <> 0 OR NEW.deaths <> 0 BEGIN
            SELECT RAISE(ABORT, 'an item needs the id of its job') WHERE NEW.job IS NULL;
            SELECT RAISE(ABORT, 'a new item has no attempts and no deaths; leave them out of the INSERT')
                WHERE NEW.attempts <> 0 OR NEW.deaths <> 0;
            SELECT RAISE(ABORT, 'a new item is ''queued''; leave state out of the INSERT');
        END;
        CREATE TRIGGER items_delete_tries AFTER DELETE ON items BEGIN
            DELETE FROM tries WHERE item = OLD.id;
        END;
        CREATE TRIGGER items_refuse_replacing BEFORE INSERT ON items
        WHEN NEW.id <> -1 AND (NEW.id < 1 OR NEW.id > \(Schema.largestItemID) OR EXISTS (SELECT 1 FROM items WHERE id = NEW.id)) BEGIN
            SELECT RAISE(ABORT, 'the id of an item is a positive number that no other item has; leave it out of the INSERT');
        END;
        -- In a statement of its own, since SQLite would look through all items before it finds that there is nothing to do.
        CREATE VIEW unnoted_urls AS SELECT 1 AS note WHERE FALSE;
        CREATE TRIGGER unnoted_urls_note INSTEAD OF INSERT ON unnoted_urls BEGIN
            INSERT INTO done_urls VALUES ('', 0);
            INSERT INTO done_urls SELECT url, id FROM items WHERE state = 'done' ORDER BY url, id;
        END;
        -- Leaves out URLs that are done already, so that a whole feed can be enqueued each time. A job with no
        -- other URLs is finished.
        CREATE TRIGGER items_leave_out_known BEFORE INSERT ON items
        WHEN EXISTS (SELECT 1 FROM jobs WHERE id = NEW.job AND instr(options, 'only-new') > 0
                AND \(Schema.optionWords) LIKE '%,only-new,%') BEGIN
            INSERT INTO unnoted_urls SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM done_urls);
            UPDATE jobs SET not_new = not_new + 1, revision = revision + 1 WHERE id = NEW.job AND \(isKnown("NEW.url"));
            UPDATE jobs SET state = 'finished', finished_at = \(Schema.now) WHERE id = NEW.job
                AND queued = 0 AND active = 0 AND delayed = 0 AND \(Schema.isOpen())
                AND urls IS NULL AND \(isKnown("NEW.url"));
            SELECT RAISE(IGNORE) WHERE \(isKnown("NEW.url"));
        END;
        CREATE TRIGGER items_keep_job BEFORE UPDATE OF id, rowid, oid, _rowid_, job, url ON items
        WHEN OLD.id <> NEW.id OR OLD.job <> NEW.job OR OLD.url IS NOT NEW.url BEGIN
            SELECT RAISE(ABORT, 'the id, job and url of an item stay as they are; insert a new item instead');
        END;
        -- One row of a table without a URL doesn't keep the others out. Made before items_count_insert, and so run after it.
        CREATE TRIGGER items_end_without_url AFTER INSERT ON items WHEN \(isNoURL) BEGIN
            UPDATE spreading SET failed = failed + 1 WHERE job = NEW.job;
            UPDATE items SET state = 'failed', class = '\(FailureClass.invalidURL.rawValue)',
                message = 'The item has no URL.', finished_at = \(Schema.now) WHERE id = NEW.id;
            -- Otherwise items_count_update logs it.
            INSERT INTO event_log (at, detail) SELECT \(Schema.now),
                json_array(json_array(NEW.id, NEW.job, 'failed', '\(FailureClass.invalidURL.rawValue)'))
                WHERE \(Schema.isBeingSpread);
        END;
        -- The job is opened first, since a finished one may have nothing left to do; and by itself, since an UPDATE
        -- that names `state` rewrites the indices that depend on it.
        CREATE TRIGGER items_count_insert AFTER INSERT ON items
        WHEN NOT \(Schema.isBeingSpread) BEGIN
            SELECT RAISE(ABORT, 'the id of an item is a positive number; leave it out of the INSERT') WHERE NEW.id < 1;
            UPDATE jobs SET state = 'queued', finished_at = NULL, revision = revision + 1
                WHERE id = NEW.job AND state = 'finished';
            UPDATE jobs SET total = total + 1, queued = queued + 1, revision = revision + 1
                WHERE id = NEW.job AND state NOT IN ('cancelled', 'failed');
            SELECT RAISE(ABORT, 'no open job has this id: insert the job first, and add items as in INSERT INTO items (job, url) SELECT (SELECT last_insert_rowid()), url FROM …')
                WHERE changes() = 0;
        END;
        CREATE VIEW uncounted_moves AS SELECT id, job, state AS was_state, cached AS was_cached,
            blacklisted AS was_blacklisted, state, cached, blacklisted, bytes, class FROM items WHERE FALSE;
        CREATE TRIGGER uncounted_moves_count INSTEAD OF INSERT ON uncounted_moves BEGIN
            UPDATE jobs SET
                \(moveCounters),
                revision = revision + 1,
                bytes = bytes + CASE WHEN NEW.state = 'done' AND NEW.cached = 0 THEN coalesce(NEW.bytes, 0) ELSE 0 END
                WHERE id = NEW.job AND NOT \(reopens);
            -- By itself, since an UPDATE that names `state` rewrites the indices that depend on it.
            UPDATE jobs SET
                \(moveCounters),
                revision = revision + 1, state = 'queued', finished_at = NULL, error = NULL
                WHERE id = NEW.job AND \(reopens);
            INSERT OR IGNORE INTO done_urls SELECT url, id FROM items
                WHERE id = NEW.id AND state = 'done' AND EXISTS (SELECT 1 FROM done_urls);
            \(Schema.logEnd)
            \(Schema.finishJob("NEW.job"))
        END;
        CREATE TRIGGER items_count_update AFTER UPDATE OF state ON items
        WHEN OLD.state <> NEW.state AND NOT EXISTS
            (SELECT 1 FROM moving WHERE (item = NEW.id OR item = -NEW.job) AND state = NEW.state)
            AND NOT (OLD.state = 'queued' AND NEW.state = 'failed' AND \(Schema.isBeingSpread)) BEGIN
            INSERT INTO uncounted_moves VALUES (NEW.id, NEW.job, OLD.state, OLD.cached, OLD.blacklisted,
                NEW.state, NEW.cached, NEW.blacklisted, NEW.bytes, NEW.class);
        END;
        CREATE TRIGGER items_delete AFTER DELETE ON items BEGIN
            DELETE FROM renditions WHERE item = OLD.id;
            DELETE FROM done_urls WHERE url = OLD.url AND item = OLD.id;
        END;
        CREATE TRIGGER items_count_delete AFTER DELETE ON items
        WHEN EXISTS (SELECT 1 FROM jobs WHERE id = OLD.job)
            AND NOT EXISTS (SELECT 1 FROM moving WHERE item = -OLD.job AND state = 'deleted') BEGIN
            UPDATE jobs SET
                total = total - 1,
                \(dropCounters),
                revision = revision + 1
                WHERE id = OLD.job;
            \(Schema.finishJob("OLD.job"))
        END;
        CREATE TRIGGER items_keep_deaths BEFORE UPDATE OF deaths ON items
        WHEN typeof(NEW.deaths) <> 'integer' OR NEW.deaths NOT BETWEEN 0 AND 100 BEGIN
            SELECT RAISE(ABORT, 'deaths must be a whole number from 0 to 100: the workers that died while they held the item');
        END;
        CREATE TRIGGER items_check_update BEFORE UPDATE OF state, cached, blacklisted, bytes ON items
        WHEN CASE WHEN OLD.state = NEW.state THEN OLD.finished_at IS NOT NULL
                AND (\(Schema.changesAny(of: ["cached", "blacklisted", "bytes"])))
            ELSE \(Schema.isIllegalMove(ItemState.self) { $0.canMove(to: $1) }) END BEGIN
            SELECT RAISE(ABORT, 'the result of an ended item cannot be changed; retry the item instead') WHERE OLD.state = NEW.state;
            SELECT RAISE(ABORT, 'the states of an item are \(ItemState.allCases.map(\.rawValue).joined(separator: ", ")), in lower case')
                WHERE NOT (\(Schema.isState("NEW.state", ItemState.self)));
            SELECT RAISE(ABORT, 'an item can''t move between these states; docs/reference/sql.md shows the moves it can make');
        END;
        """
}
