/// Migration 3: what eviction has to know, so that it needs neither a scan nor a guess.
///
/// - `blobs` learns when a file was last changed or confirmed, whether it is a source, and whether it is about to go.
/// - `entries` says which file stands for a URL and a variant's name now. Results of jobs can be pruned without it, and
///   the links for web servers are made from it.
/// - `cache_totals` is one row that triggers keep, so that the size of the cache is known at any moment.
extension Schema {
    static let cacheEviction = """
        ALTER TABLE blobs ADD COLUMN modified_at INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE blobs ADD COLUMN is_source INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE blobs ADD COLUMN dying INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE blobs ADD COLUMN verified TEXT;
        UPDATE blobs SET modified_at = created_at,
            is_source = EXISTS (SELECT 1 FROM sources WHERE sources.hash = blobs.hash AND sources.kept <> 0);
        CREATE INDEX blobs_by_use ON blobs (used_at, hash, is_source, size);
        CREATE INDEX blobs_dying ON blobs (dying) WHERE dying <> 0;
        CREATE INDEX variants_by_blob ON variants (blob);

        CREATE TABLE entries (
            key TEXT NOT NULL,
            variant TEXT NOT NULL,
            blob TEXT NOT NULL,
            format TEXT NOT NULL,
            PRIMARY KEY (key, variant)
        ) WITHOUT ROWID;
        CREATE INDEX entries_by_blob ON entries (blob);
        \(entriesOfResults);

        CREATE TABLE pins (
            key TEXT PRIMARY KEY,
            pinned_at INTEGER NOT NULL
        ) WITHOUT ROWID;
        CREATE TABLE reservations (
            worker INTEGER PRIMARY KEY,
            bytes INTEGER NOT NULL
        );
        -- Small facts about the cache: its clock, the place where a verification stopped, whether links are kept.
        CREATE TABLE cache_properties (
            name TEXT PRIMARY KEY,
            value TEXT NOT NULL
        ) WITHOUT ROWID;
        CREATE TABLE cache_totals (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            blobs INTEGER NOT NULL,
            bytes INTEGER NOT NULL,
            hits INTEGER NOT NULL DEFAULT 0,
            misses INTEGER NOT NULL DEFAULT 0,
            revalidated_bytes INTEGER NOT NULL DEFAULT 0,
            deduped_bytes INTEGER NOT NULL DEFAULT 0,
            evicted_blobs INTEGER NOT NULL DEFAULT 0,
            evicted_bytes INTEGER NOT NULL DEFAULT 0,
            failed_syncs INTEGER NOT NULL DEFAULT 0
        );
        INSERT INTO cache_totals (id, blobs, bytes) SELECT 1, count(*), ifnull(sum(size), 0) FROM blobs;
        \(countingTriggers)
        \(resultsView)
        """

    /// What each URL's latest result says. It comes first, and is not replaced by an older one.
    static let entriesOfResults = """
        INSERT OR IGNORE INTO entries (key, variant, blob, format)
            SELECT CASE instr(items.url, '#') WHEN 0 THEN items.url
                    ELSE substr(items.url, 1, instr(items.url, '#') - 1) END,
                renditions.name, renditions.blob, renditions.format
            FROM items JOIN renditions ON renditions.item = items.id
            WHERE items.state = 'done' AND renditions.blob IN (SELECT hash FROM blobs)
            ORDER BY items.finished_at DESC, items.id DESC
        """

    static let countingTriggers = """
        CREATE TRIGGER blobs_count_insert AFTER INSERT ON blobs BEGIN
            UPDATE cache_totals SET blobs = blobs + 1, bytes = bytes + NEW.size WHERE id = 1;
        END;
        CREATE TRIGGER blobs_count_delete AFTER DELETE ON blobs BEGIN
            UPDATE cache_totals SET blobs = blobs - 1, bytes = bytes - OLD.size WHERE id = 1;
        END;
        CREATE TRIGGER blobs_count_size AFTER UPDATE OF size ON blobs BEGIN
            UPDATE cache_totals SET bytes = bytes + NEW.size - OLD.size WHERE id = 1;
        END;
        """

    /// A result stays when its file was evicted; only its path goes.
    private static let resultsView = """
        DROP VIEW results;
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
            CASE WHEN source_facts.phash IS NOT NULL THEN printf('%016x', source_facts.phash) END AS phash
            FROM items
            LEFT JOIN renditions ON renditions.item = items.id
            LEFT JOIN blobs ON blobs.hash = renditions.blob
            LEFT JOIN source_facts ON source_facts.hash = items.source
            WHERE items.state IN ('done', 'failed', 'cancelled');
        """
}
