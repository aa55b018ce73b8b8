extension Schema {
    /// The counters of `jobs` that an item stands in, each as a condition on OLD or NEW.
    static let counters: [(column: String, condition: @Sendable (String) -> String)] = [
        ("queued", { "\($0).state = 'queued'" }),
        ("active", { "\($0).state = 'active'" }),
        ("delayed", { "\($0).state = 'delayed'" }),
        ("done", { "(\($0).state = 'done' AND \($0).cached = 0)" }),
        ("cached", { "(\($0).state = 'done' AND \($0).cached <> 0)" }),
        ("failed", { "(\($0).state = 'failed' AND \($0).blacklisted = 0)" }),
        ("blacklisted", { "(\($0).state = 'failed' AND \($0).blacklisted <> 0)" }),
        ("cancelled", { "\($0).state = 'cancelled'" }),
    ]

    private static let moveCounters =
        counters
        .map { "\($0.column) = \($0.column) + (\($0.condition("NEW"))) - (\($0.condition("OLD")))" }
        .joined(separator: ",\n            ")

    static let dropCounters =
        counters
        .map { "\($0.column) = \($0.column) - (\($0.condition("OLD")))" }
        .joined(separator: ",\n            ")

    /// An item's move, in the counters of its job, as migration 1 wrote it.
    static let countMove = move("")
    /// The same, with a change of the job's revision.
    static let countRevisedMove = move("revision = revision + 1,")

    private static func move(_ more: String) -> String {
        """
        UPDATE jobs SET
            \(moveCounters),\(more)
            bytes = bytes + CASE WHEN NEW.state = 'done' AND NEW.cached = 0 THEN ifnull(NEW.bytes, 0) ELSE 0 END
            WHERE id = NEW.job;
            UPDATE jobs SET state = 'finished', finished_at = \(now)
                WHERE id = NEW.job AND queued = 0 AND active = 0 AND delayed = 0 AND state IN ('queued', 'running', 'paused');
        """
    }

    /// The column's affinity has made text of a number before a trigger can see it, so its digits tell.
    private static let isNoURL =
        "(NEW.url IS NULL OR typeof(NEW.url) <> 'text' OR NEW.url = '' OR NEW.url NOT GLOB '*[^0-9.e+-]*')"

    static let itemTriggers = """
        CREATE TRIGGER items_check_insert BEFORE INSERT ON items
        WHEN \(isNoURL) OR NEW.state IS NOT 'queued' OR NEW.job IS NULL BEGIN
            SELECT RAISE(ABORT, 'an item needs a url, as text') WHERE \(isNoURL);
            SELECT RAISE(ABORT, 'an item needs the id of its job') WHERE NEW.job IS NULL;
            SELECT RAISE(ABORT, 'a new item is ''queued''; leave state out of the INSERT');
        END;
        -- The job is opened first, since a finished one may have nothing left to do; and by itself, since an UPDATE that
        -- names `state` rewrites the indices that depend on it.
        CREATE TRIGGER items_count_insert AFTER INSERT ON items
        WHEN NOT EXISTS (SELECT 1 FROM spreading WHERE job = NEW.job) BEGIN
            UPDATE jobs SET state = 'queued', finished_at = NULL WHERE id = NEW.job AND state = 'finished';
            UPDATE jobs SET total = total + 1, queued = queued + 1
                WHERE id = NEW.job AND state NOT IN ('cancelled', 'failed');
            SELECT RAISE(ABORT, 'no open job has this id: insert the job first, and add items as in INSERT INTO items (job, url) SELECT (SELECT last_insert_rowid()), url FROM …')
                WHERE changes() = 0;
        END;
        CREATE TRIGGER items_keep_job BEFORE UPDATE OF id, job, url ON items
        WHEN OLD.id <> NEW.id OR OLD.job <> NEW.job OR OLD.url <> NEW.url BEGIN
            SELECT RAISE(ABORT, 'the id, job and url of an item stay as they are; insert a new item instead');
        END;
        CREATE TRIGGER items_state_moves BEFORE UPDATE OF state ON items
        WHEN \(illegalMove(ItemState.self) { $0.canMove(to: $1) }) BEGIN
            SELECT RAISE(ABORT, 'an item can''t move between these states; docs/job-life.md shows the moves it can make');
        END;
        CREATE TRIGGER items_count_update AFTER UPDATE OF state ON items WHEN OLD.state <> NEW.state BEGIN
            \(countMove)
        END;
        -- Retried items reopen their job before they are counted, since a finished job may have nothing left to do.
        CREATE TRIGGER items_reopen BEFORE UPDATE OF state ON items
        WHEN NEW.state = 'queued' AND OLD.state IN ('failed', 'cancelled') BEGIN
            UPDATE jobs SET state = 'queued', finished_at = NULL, error = NULL
                WHERE id = NEW.job AND state IN ('finished', 'cancelled', 'failed');
        END;
        CREATE TRIGGER items_delete AFTER DELETE ON items BEGIN
            UPDATE jobs SET total = total - 1,
            \(dropCounters)
            WHERE id = OLD.job;
            UPDATE jobs SET state = 'finished', finished_at = \(now)
                WHERE id = OLD.job AND queued = 0 AND active = 0 AND delayed = 0 AND state IN ('queued', 'running', 'paused');
            DELETE FROM renditions WHERE item = OLD.id;
        END;
        """
}
