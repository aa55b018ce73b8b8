/// The views for users. Times are ISO text here and milliseconds in the tables.
extension Schema {
    /// 2 or 3 if the picture's name contains `@2x` or `@3x`, as SDWebImage reads it, else 1; the host's name does not
    /// count.
    private static let scale = {
        let rest = "replace(replace(substr(items.url, instr(items.url, '://') + 3), '?', '/'), '#', '/')"
        let path =
            "CASE WHEN instr(items.url, '://') > 0 THEN substr(\(rest), nullif(instr(\(rest), '/'), 0)) ELSE items.url END"
        let cases = [2, 3].map {
            "WHEN instr(\(path), '@\($0)x.') > 0 OR instr(\(path), '%40\($0)x.') > 0 THEN \($0)"
        }
        return "CASE \(cases.joined(separator: "\n                ")) ELSE 1 END"
    }()

    static let views = """
        CREATE VIEW progress AS SELECT
            id AS job, name, state, priority, total,
            done + cached + failed + blacklisted + cancelled AS ended,
            CASE total WHEN 0 THEN 100.0 ELSE
                round(100.0 * (done + cached + failed + blacklisted + cancelled) / total, 1) END AS percent,
            queued, active, delayed, done, cached, failed, blacklisted, cancelled, bytes,
            done + cached + failed + blacklisted AS finished_count,
            failed + blacklisted AS skipped_count, not_new,
            \(iso("created_at")) AS created_at, \(iso("started_at")) AS started_at,
            \(iso("finished_at")) AS finished_at, error
            FROM jobs;

        -- A result stays when its file was evicted; only its path goes. The source's facts come from the cache's index,
        -- for as long as the source is known.
        CREATE VIEW results AS SELECT
            items.job AS job, items.id AS item, items.url AS url, items.state AS state, items.cached AS cached,
            renditions.name AS variant, renditions.format AS format, renditions.width AS width,
            renditions.height AS height, renditions.size AS size, renditions.blob AS blob,
            CASE WHEN blobs.dying = 0
                THEN 'blobs/sha256/' || substr(renditions.blob, 1, 2) || '/' || renditions.blob END AS path,
            items.class AS class, items.http_status AS http_status, items.message AS message,
            \(iso("items.finished_at")) AS finished_at,
            source_facts.dominant_colour AS dominant_colour, source_facts.blurhash AS blurhash,
            source_facts.thumbhash AS thumbhash,
            CASE WHEN source_facts.phash IS NOT NULL THEN printf('%016x', source_facts.phash) END AS phash,
            sources.format AS source_format, sources.width AS source_width, sources.height AS source_height,
            sources.frames AS frames, sources.has_alpha AS has_alpha,
            source_facts.damage AS damage,
            \(scale) AS scale,
            \(json("items.meta")) AS meta,
            CASE WHEN items.state = 'done' AND items.fallbacks IS NOT NULL THEN \(ItemSchema.askedURL("items")) END AS served_url,
            \(SourceOrigin.column) AS bytes_from
            FROM items
            LEFT JOIN renditions ON renditions.item = items.id
            LEFT JOIN blobs ON blobs.hash = renditions.blob
            LEFT JOIN source_facts ON source_facts.hash = items.source
            LEFT JOIN sources ON sources.key = (SELECT same.key FROM sources AS same WHERE same.hash = items.source LIMIT 1)
            WHERE items.state IN ('done', 'failed', 'cancelled');

        CREATE VIEW failures AS SELECT
            job, id AS item, url, class, http_status, message, attempts, blacklisted,
            \(iso("finished_at")) AS failed_at
            FROM items WHERE state = 'failed';

        CREATE VIEW blacklist AS SELECT
            url, host, class, http_status, message, count,
            \(iso("first_at")) AS first_at, \(iso("last_at")) AS last_at, \(isoOfSteady("expires_at")) AS expires_at
            FROM blacklist_entries WHERE expires_at > \(steady(now));
        CREATE TRIGGER blacklist_delete INSTEAD OF DELETE ON blacklist BEGIN
            DELETE FROM blacklist_entries WHERE url = OLD.url;
        END;

        -- An entry that is deleted goes with its link and, where no other entry or source needs them, its bytes: a worker
        -- deletes those within seconds, and `worker cache remove` at once.
        CREATE VIEW entries AS SELECT
            key, key AS url, variant, format, blob, 'blobs/sha256/' || substr(blob, 1, 2) || '/' || blob AS path
            FROM cache_entries;
        CREATE TRIGGER entries_delete INSTEAD OF DELETE ON entries BEGIN
            INSERT OR REPLACE INTO removed_links (key, variant, format) SELECT OLD.key, OLD.variant, OLD.format
                WHERE EXISTS (SELECT 1 FROM cache_properties WHERE name = '\(linksProperty)');
            DELETE FROM cache_entries WHERE key = OLD.key AND variant = OLD.variant;
            UPDATE sources SET kept = 0 WHERE key = OLD.key AND OLD.variant = 'original';
            UPDATE blobs SET dying = \(now) WHERE hash = OLD.blob AND dying = 0
                AND NOT EXISTS (SELECT 1 FROM cache_entries WHERE blob = OLD.blob)
                AND NOT EXISTS (SELECT 1 FROM sources WHERE hash = OLD.blob AND kept <> 0);
        END;

        CREATE VIEW transfers AS SELECT
            items.job AS job, items.id AS item, items.url AS url, received, expected,
            CASE WHEN expected > 0 THEN round(100.0 * received / expected, 1) END AS percent,
            \(iso("updated_at")) AS updated_at, transfer_progress.bytes_from AS bytes_from
            FROM transfer_progress JOIN items ON items.id = transfer_progress.item WHERE items.state = 'active';

        CREATE VIEW waiting AS SELECT
            job, id AS item, url, waits_for AS host, message AS reason, class, attempts, \(isoOfSteady("run_at")) AS until
            FROM items WHERE state = 'delayed'
        UNION ALL SELECT
            items.job, items.id, items.url, held_items.host,
            coalesce(host_load.reason, \(WaitPlace.downloaderReason(worker: "held_items.worker"))), items.class, items.attempts,
            \(isoOfSteady("host_load.until"))
            FROM held_items JOIN items ON items.id = held_items.item AND items.state = 'active'
            LEFT JOIN host_load ON host_load.worker = held_items.worker AND host_load.host = held_items.host
        UNION ALL SELECT
            items.job, items.id, items.url, '\(WaitPlace.suspects)', '\(WaitPlace.suspectsReason)', items.class,
            items.attempts, NULL
            FROM items JOIN jobs ON jobs.id = items.job AND (jobs.state = 'queued' OR jobs.state = 'running')
            WHERE items.state = 'queued' AND items.deaths > 1
        UNION ALL SELECT
            items.job, items.id, items.url, '\(WaitPlace.disk)', \(WaitPlace.pauseReason), items.class, items.attempts,
            NULL
            FROM jobs JOIN items ON items.job = jobs.id AND items.state = 'queued' AND items.deaths <= 1
            WHERE (jobs.state = 'queued' OR jobs.state = 'running') AND \(WaitPlace.isPaused);
        """
}
