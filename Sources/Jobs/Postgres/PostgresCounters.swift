internal import Core

/// Counts new, moved and deleted items, and new and deleted files of the cache, once for each statement.
///
/// SQLite counts row by row. On PostgreSQL each change of a job's row leaves a dead row until the transaction has ended,
/// and the next change has to pass all of them: 100,000 URLs in one INSERT would take minutes.
enum PostgresCounters {
    private static let isOn = "coalesce(current_setting('worker.triggers', true), '') <> 'off'"

    private static func translated(_ sql: String) -> String { PostgresDialect.translated(sql) }

    static let triggers = """
        CREATE TRIGGER a_url BEFORE INSERT ON items FOR EACH ROW WHEN (NEW.url IS NULL)
            EXECUTE FUNCTION worker_default_url();
        CREATE TRIGGER z_note_id AFTER INSERT ON jobs FOR EACH ROW EXECUTE FUNCTION worker_note_id();

        CREATE FUNCTION items_check_id() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            RAISE EXCEPTION 'the id of an item is a positive number that no other item has; leave it out of the INSERT';
        END $$;
        CREATE TRIGGER b_check_id BEFORE INSERT ON items FOR EACH ROW
            WHEN (NEW.id < 1 OR NEW.id > \(Schema.largestItemID)) EXECUTE FUNCTION items_check_id();
        CREATE FUNCTION jobs_check_id() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF NEW.id < 1 OR NEW.id > \(Schema.largestJobID) THEN
                RAISE EXCEPTION
                    'the id of a job is a positive number of at most 2^51; leave it out of the INSERT';
            END IF;
            IF EXISTS (SELECT 1 FROM job_additions WHERE job = NEW.id) THEN
                RAISE EXCEPTION
                    'this id belongs to a job whose list is being added; leave the id out of the INSERT';
            END IF;
            RETURN NEW;
        END $$;
        CREATE TRIGGER b_check_id BEFORE INSERT ON jobs FOR EACH ROW EXECUTE FUNCTION jobs_check_id();

        \(insertion)

        \(update)

        \(deletion)

        \(files)
        """

    private static let files = """
        CREATE FUNCTION blobs_count_insert() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF EXISTS (SELECT 1 FROM added) THEN
                UPDATE cache_totals SET blobs = blobs + (SELECT count(*) FROM added),
                    bytes = bytes + (SELECT sum(size) FROM added) WHERE id = 1;
            END IF;
            RETURN NULL;
        END $$;
        CREATE TRIGGER blobs_count_insert AFTER INSERT ON blobs REFERENCING NEW TABLE AS added FOR EACH STATEMENT
            WHEN (\(isOn)) EXECUTE FUNCTION blobs_count_insert();
        CREATE FUNCTION blobs_count_delete() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF EXISTS (SELECT 1 FROM gone) THEN
                UPDATE cache_totals SET blobs = blobs - (SELECT count(*) FROM gone),
                    bytes = bytes - (SELECT sum(size) FROM gone) WHERE id = 1;
            END IF;
            RETURN NULL;
        END $$;
        CREATE TRIGGER blobs_count_delete AFTER DELETE ON blobs REFERENCING OLD TABLE AS gone FOR EACH STATEMENT
            WHEN (\(isOn)) EXECUTE FUNCTION blobs_count_delete();
        """

    private static let insertion = """
        CREATE FUNCTION items_count_insert() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE
            one RECORD;
            ended BIGINT;
        BEGIN
            FOR one IN SELECT job, count(*) AS n, (SELECT urls IS NOT NULL FROM jobs WHERE id = job) AS spreads
                FROM added GROUP BY job ORDER BY job
            LOOP
                IF NOT coalesce(one.spreads, false) THEN
                    UPDATE jobs SET state = 'queued', finished_at = NULL, revision = revision + 1
                        WHERE id = one.job AND state = 'finished';
                    UPDATE jobs SET total = total + one.n, queued = queued + one.n, revision = revision + 1
                        WHERE id = one.job AND state NOT IN ('cancelled', 'failed');
                    IF NOT FOUND THEN
                        RAISE EXCEPTION 'no open job has this id: insert the job first, and add items as in INSERT INTO items (job, url) SELECT (SELECT last_insert_rowid()), url FROM …';
                    END IF;
                END IF;
            END LOOP;
            IF EXISTS (SELECT 1 FROM added WHERE url !~ '\(letters)') THEN
                UPDATE items SET state = 'failed', class = '\(FailureClass.invalidURL.rawValue)',
                    message = 'The item has no URL.', finished_at = worker_now()
                    WHERE id IN (SELECT id FROM added WHERE url !~ '\(letters)');
                GET DIAGNOSTICS ended = ROW_COUNT;
                UPDATE spreading SET failed = failed + ended WHERE job IN (SELECT job FROM added);
            END IF;
            RETURN NULL;
        END $$;
        CREATE TRIGGER items_count_insert AFTER INSERT ON items REFERENCING NEW TABLE AS added FOR EACH STATEMENT
            WHEN (\(isOn)) EXECUTE FUNCTION items_count_insert();
        """

    /// Matches a character that no number and no white space has. Text without such a character is no URL.
    private static let letters = "[^0-9.e+ \\t\\n\\r-]"

    private static let deltas = ItemSchema.counters.map { column, condition in
        "sum((\(condition("new_rows.")))::INTEGER - (\(condition("old_rows.")))::INTEGER) AS \(column)"
    }.joined(separator: ",\n            ")

    private static let moves = ItemSchema.counters.map { "\($0.column) = jobs.\($0.column) + one.\($0.column)" }
        .joined(separator: ", ")

    private static let update = """
        CREATE FUNCTION items_count_update() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE
            one RECORD;
        BEGIN
            IF NOT EXISTS (SELECT 1 FROM old_rows JOIN new_rows USING (id) WHERE old_rows.state <> new_rows.state) THEN
                RETURN NULL;
            END IF;
            -- Logs the items first, then the jobs that end with them. Items in moving are left out: the worker that moves
            -- them logs them.
            INSERT INTO event_log (at, detail)
                SELECT worker_now(), json_agg(event ORDER BY id)::TEXT FROM (
                    SELECT new_rows.id, json_build_array(new_rows.id, new_rows.job,
                        CASE WHEN new_rows.state = 'done' AND new_rows.cached <> 0 THEN 'cached'
                            WHEN new_rows.state = 'failed' AND new_rows.blacklisted <> 0 THEN 'blacklisted'
                            ELSE new_rows.state END, new_rows.class) AS event,
                        row_number() OVER (ORDER BY new_rows.id) / \(Schema.eventsPerRow) AS part
                        FROM old_rows JOIN new_rows USING (id)
                        WHERE old_rows.state <> new_rows.state AND new_rows.state IN ('done', 'failed', 'cancelled')
                            AND NOT EXISTS (SELECT 1 FROM moving
                                WHERE (item = new_rows.id OR item = -new_rows.job) AND moving.state = new_rows.state)
                    ) AS events GROUP BY part ORDER BY part;
            FOR one IN SELECT new_rows.job,
                \(deltas),
                bool_or(new_rows.state = 'queued' AND old_rows.state IN ('failed', 'cancelled')) AS reopens,
                sum(CASE WHEN new_rows.state = 'done' AND new_rows.cached = 0 THEN coalesce(new_rows.bytes, 0) ELSE 0 END)
                    AS bytes,
                bool_or(new_rows.state = 'done') AS is_done
                FROM old_rows JOIN new_rows USING (id)
                WHERE old_rows.state <> new_rows.state AND NOT EXISTS (SELECT 1 FROM moving
                        WHERE (item = new_rows.id OR item = -new_rows.job) AND moving.state = new_rows.state)
                    AND NOT (old_rows.state = 'queued' AND new_rows.state = 'failed'
                        AND EXISTS (SELECT 1 FROM jobs WHERE jobs.id = new_rows.job AND urls IS NOT NULL))
                GROUP BY new_rows.job ORDER BY new_rows.job
            LOOP
                UPDATE jobs SET \(moves), revision = revision + 1, bytes = jobs.bytes + one.bytes
                    WHERE id = one.job
                        AND NOT (one.reopens AND state IN ('finished', 'cancelled', 'failed'));
                UPDATE jobs SET \(moves), revision = revision + 1, bytes = jobs.bytes + one.bytes,
                    state = 'queued', finished_at = NULL, error = NULL
                    WHERE id = one.job AND one.reopens AND state IN ('finished', 'cancelled', 'failed');
                IF one.is_done AND EXISTS (SELECT 1 FROM done_urls) THEN
                    INSERT INTO done_urls SELECT url, id FROM new_rows WHERE state = 'done' AND job = one.job
                        ON CONFLICT DO NOTHING;
                END IF;
                \(PostgresDialect.translated(Schema.finishJob("one.job").replacing(";", with: "")));
            END LOOP;
            RETURN NULL;
        END $$;
        CREATE TRIGGER items_count_update AFTER UPDATE ON items REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
            FOR EACH STATEMENT WHEN (\(isOn)) EXECUTE FUNCTION items_count_update();
        """

    private static let losses = ItemSchema.counters.map { column, condition in
        "sum((\(condition("gone.")))::INTEGER) AS \(column)"
    }.joined(separator: ", ")

    private static let drops = ItemSchema.counters.map { "\($0.column) = jobs.\($0.column) - one.\($0.column)" }
        .joined(separator: ", ")

    private static let deletion = """
        CREATE FUNCTION items_count_delete() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE
            one RECORD;
        BEGIN
            DELETE FROM tries WHERE item IN (SELECT id FROM gone);
            DELETE FROM renditions WHERE item IN (SELECT id FROM gone);
            IF EXISTS (SELECT 1 FROM done_urls) THEN
                DELETE FROM done_urls USING gone WHERE done_urls.url = gone.url AND done_urls.item = gone.id;
            END IF;
            FOR one IN SELECT job, count(*) AS n, \(losses) FROM gone
                WHERE NOT EXISTS (SELECT 1 FROM moving WHERE item = -gone.job AND state = 'deleted')
                GROUP BY job ORDER BY job
            LOOP
                UPDATE jobs SET total = total - one.n, \(drops), revision = revision + 1 WHERE id = one.job;
                \(PostgresDialect.translated(Schema.finishJob("one.job").replacing(";", with: "")));
            END LOOP;
            RETURN NULL;
        END $$;
        CREATE TRIGGER items_count_delete AFTER DELETE ON items REFERENCING OLD TABLE AS gone FOR EACH STATEMENT
            WHEN (\(isOn)) EXECUTE FUNCTION items_count_delete();
        """
}
