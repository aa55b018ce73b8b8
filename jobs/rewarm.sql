-- Asks the origins again for everything that is cached and was fetched more than a day ago. What has not changed costs one
-- conditional request and no transform. Variants are those of the latest job that ended well for each URL.
--
--     sqlite3 worker.db < jobs/rewarm.sql && worker run --drain --quiet
.bail on
.timeout 60000
BEGIN IMMEDIATE;
INSERT OR IGNORE INTO jobs (name, dedupe_key, priority, options, variants, urls)
    SELECT 'rewarm', 'warm:rewarm:' || ifnull(variants, ''), -20, 'refresh-cached', variants, json_group_array(url)
    FROM (
        SELECT items.url AS url, jobs.variants AS variants, max(items.finished_at)
        FROM items JOIN jobs ON jobs.id = items.job
        WHERE items.state = 'done'
        GROUP BY items.url
    ) AS latest
    WHERE EXISTS (
        SELECT 1 FROM sources WHERE key = latest.url
        AND fetched_at < CAST(strftime('%s', 'now', '-1 day') AS INTEGER) * 1000
    )
    GROUP BY variants;
COMMIT;
SELECT job, name, state, total FROM progress WHERE name = 'rewarm' AND state IN ('queued', 'running');
