/// The cache's index: files, the URLs and variants that use them, and stored facts about the cache.
enum CacheSchema {
    static let tables = """
        -- modified_at: last changed or confirmed. dying: about to be removed. lifetime: how many milliseconds the file
        -- stays, -1 for ever; NULL for as long as the worker keeps files.
        CREATE TABLE blobs (
            hash TEXT PRIMARY KEY,
            size INTEGER NOT NULL,
            created_at INTEGER NOT NULL,
            used_at INTEGER NOT NULL,
            modified_at INTEGER NOT NULL DEFAULT 0,
            is_source INTEGER NOT NULL DEFAULT 0,
            dying INTEGER NOT NULL DEFAULT 0,
            verified TEXT,
            lifetime INTEGER
        ) WITHOUT ROWID;
        CREATE INDEX blobs_by_use ON blobs (used_at, hash, is_source, size);
        CREATE INDEX blobs_dying ON blobs (dying) WHERE dying <> 0;
        CREATE INDEX blobs_by_lifetime ON blobs (hash) WHERE lifetime IS NOT NULL;

        -- used_at is when the URL was last asked for: a file that many URLs share stays in use for ever, and would keep
        -- the names of all of them. recheck_after: how many milliseconds after fetched_at a job with the option recheck
        -- asks again.
        CREATE TABLE sources (
            key TEXT PRIMARY KEY,
            hash TEXT NOT NULL,
            size INTEGER NOT NULL,
            kept INTEGER NOT NULL,
            final_url TEXT,
            format TEXT,
            width INTEGER,
            height INTEGER,
            frames INTEGER,
            has_alpha INTEGER,
            etag TEXT,
            last_modified TEXT,
            fetched_at INTEGER NOT NULL,
            http TEXT,
            used_at INTEGER NOT NULL DEFAULT 0,
            recheck_after INTEGER
        ) WITHOUT ROWID;
        CREATE INDEX sources_by_hash ON sources (hash);
        CREATE INDEX sources_by_use ON sources (used_at);
        -- Facts computed from a source's pixels. A row belongs to the bytes and not to a URL: the same file at
        -- two URLs is decoded once, and results of an old job keep theirs after a URL has changed its picture.
        CREATE TABLE source_facts (
            id INTEGER PRIMARY KEY,
            hash TEXT NOT NULL UNIQUE,
            \(ImagePlaceholders.columns.map { "\($0.name) \($0.type)" }.joined(separator: ", ")),
            \(hashBands)
        );
        \(hashBandIndices)

        CREATE TABLE variants (
            identity TEXT PRIMARY KEY,
            source TEXT NOT NULL,
            spec TEXT NOT NULL,
            coder TEXT NOT NULL,
            blob TEXT NOT NULL,
            size INTEGER NOT NULL,
            format TEXT NOT NULL,
            width INTEGER NOT NULL,
            height INTEGER NOT NULL,
            created_at INTEGER NOT NULL
        ) WITHOUT ROWID;
        CREATE INDEX variants_by_source ON variants (source);
        CREATE INDEX variants_by_blob ON variants (blob);
        -- Which file stands for a URL and a variant's name now. Results of jobs can be pruned without it, and the links
        -- for web servers are made from it.
        CREATE TABLE cache_entries (
            key TEXT NOT NULL,
            variant TEXT NOT NULL,
            blob TEXT NOT NULL,
            format TEXT NOT NULL,
            PRIMARY KEY (key, variant)
        ) WITHOUT ROWID;
        CREATE INDEX entries_by_blob ON cache_entries (blob);

        -- Links of entries that were removed, until a program that can reach the cache's files has unlinked them; also links
        -- of new entries, while it is unknown whether such a program has just unlinked them.
        -- removal: another number for each removal, so that a later one is not taken for one that was settled.
        CREATE TABLE removed_links (
            key TEXT NOT NULL,
            variant TEXT NOT NULL,
            format TEXT NOT NULL,
            removal INTEGER NOT NULL DEFAULT (random()),
            PRIMARY KEY (key, variant, format)
        ) WITHOUT ROWID;

        CREATE TABLE pins (
            key TEXT PRIMARY KEY,
            pinned_at INTEGER NOT NULL
        ) WITHOUT ROWID;
        -- For which URL a key is pinned: several URLs may have the same key, and one URL several.
        CREATE TABLE pin_urls (
            url TEXT NOT NULL,
            key TEXT NOT NULL,
            PRIMARY KEY (url, key)
        ) WITHOUT ROWID;
        CREATE INDEX pin_urls_by_key ON pin_urls (key);
        -- By which rule a key was made, for jobs that were removed: another URL of which the same rule makes the same
        -- key is the same picture.
        CREATE TABLE key_rules (
            rule TEXT NOT NULL,
            key TEXT NOT NULL,
            PRIMARY KEY (rule, key)
        ) WITHOUT ROWID;
        CREATE INDEX key_rules_by_key ON key_rules (key);

        -- Requested files that are missing or damaged, until they are restored. The index forgets such a
        -- file at once, so that no item gets it; this table remembers what has to be fetched again.
        CREATE TABLE lost_files (
            key TEXT NOT NULL,
            -- The variant's name; empty for the source.
            variant TEXT NOT NULL,
            blob TEXT NOT NULL,
            found_at INTEGER NOT NULL,
            -- The job that it was queued again in.
            job INTEGER,
            PRIMARY KEY (key, variant)
        ) WITHOUT ROWID;
        -- Since when a file is in quarantine, by the cache's clock. The file's own times are the machine's.
        CREATE TABLE quarantined (
            name TEXT PRIMARY KEY,
            seen_at INTEGER NOT NULL
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
        -- One row that triggers keep, so that the size of the cache is known at any moment.
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
            failed_syncs INTEGER NOT NULL DEFAULT 0,
            from_memory INTEGER NOT NULL DEFAULT 0,
            from_loaders INTEGER NOT NULL DEFAULT 0,
            from_files INTEGER NOT NULL DEFAULT 0
        );
        INSERT INTO cache_totals (id, blobs, bytes) VALUES (1, 0, 0);
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
}
