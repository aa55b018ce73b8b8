extension Schema {
    /// What people read. Times are ISO text here and milliseconds in the tables.
    static let views = """
        CREATE VIEW progress AS SELECT
            id AS job, name, state, priority, total,
            done + cached + failed + blacklisted + cancelled AS ended,
            CASE total WHEN 0 THEN 100.0 ELSE
                round(100.0 * (done + cached + failed + blacklisted + cancelled) / total, 1) END AS percent,
            queued, active, delayed, done, cached, failed, blacklisted, cancelled, bytes,
            done + cached + failed + blacklisted AS finished_count,
            failed + blacklisted AS skipped_count,
            \(iso("created_at")) AS created_at, \(iso("started_at")) AS started_at,
            \(iso("finished_at")) AS finished_at, error
            FROM jobs;
        CREATE VIEW results AS SELECT
            items.job AS job, items.id AS item, items.url AS url, items.state AS state, items.cached AS cached,
            renditions.name AS variant, renditions.format AS format, renditions.width AS width,
            renditions.height AS height, renditions.size AS size, renditions.blob AS blob,
            'blobs/sha256/' || substr(renditions.blob, 1, 2) || '/' || renditions.blob AS path,
            items.class AS class, items.http_status AS http_status, items.message AS message,
            \(iso("items.finished_at")) AS finished_at
            FROM items LEFT JOIN renditions ON renditions.item = items.id
            WHERE items.state IN ('done', 'failed', 'cancelled');
        CREATE VIEW failures AS SELECT
            job, id AS item, url, class, http_status, message, attempts, blacklisted,
            \(iso("finished_at")) AS failed_at
            FROM items WHERE state = 'failed';
        CREATE VIEW blacklist AS SELECT
            url, host, class, http_status, message, count,
            \(iso("first_at")) AS first_at, \(iso("last_at")) AS last_at, \(iso("expires_at")) AS expires_at
            FROM blacklist_entries WHERE expires_at > \(now);
        CREATE TRIGGER blacklist_delete INSTEAD OF DELETE ON blacklist BEGIN
            DELETE FROM blacklist_entries WHERE url = OLD.url;
        END;
        """
}
