extension Schema {
    static let tables = """
        CREATE TABLE jobs (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            name TEXT,
            urls TEXT,
            variants TEXT,
            options TEXT,
            headers TEXT,
            priority INTEGER NOT NULL DEFAULT 0,
            execution_order TEXT CONSTRAINT "execution_order is fifo or lifo" CHECK (execution_order IN ('fifo', 'lifo')),
            state TEXT NOT NULL DEFAULT 'queued' CONSTRAINT "state of a job" CHECK (state IN (\(list(JobState.self)))),
            total INTEGER NOT NULL DEFAULT 0,
            queued INTEGER NOT NULL DEFAULT 0,
            active INTEGER NOT NULL DEFAULT 0,
            delayed INTEGER NOT NULL DEFAULT 0,
            done INTEGER NOT NULL DEFAULT 0,
            cached INTEGER NOT NULL DEFAULT 0,
            failed INTEGER NOT NULL DEFAULT 0,
            blacklisted INTEGER NOT NULL DEFAULT 0,
            cancelled INTEGER NOT NULL DEFAULT 0,
            bytes INTEGER NOT NULL DEFAULT 0,
            created_at INTEGER NOT NULL DEFAULT (\(now)),
            started_at INTEGER,
            finished_at INTEGER,
            error TEXT,
            dedupe_key TEXT,
            CONSTRAINT "a finished job has nothing left to do"
                CHECK (state <> 'finished' OR queued + active + delayed = 0),
            CONSTRAINT "the counters of a job add up"
                CHECK (total = queued + active + delayed + done + cached + failed + blacklisted + cancelled)
        );
        CREATE INDEX jobs_open ON jobs (priority) WHERE state IN ('queued', 'running');
        CREATE UNIQUE INDEX jobs_dedupe ON jobs (dedupe_key)
            WHERE dedupe_key IS NOT NULL AND state IN ('queued', 'running', 'paused');

        CREATE TABLE items (
            id INTEGER PRIMARY KEY,
            job INTEGER NOT NULL,
            url TEXT NOT NULL,
            state TEXT NOT NULL DEFAULT 'queued' CONSTRAINT "state of an item" CHECK (state IN (\(list(ItemState.self)))),
            lease INTEGER,
            attempts INTEGER NOT NULL DEFAULT 0,
            run_at INTEGER,
            class TEXT,
            http_status INTEGER,
            message TEXT,
            cached INTEGER NOT NULL DEFAULT 0,
            blacklisted INTEGER NOT NULL DEFAULT 0,
            source TEXT,
            bytes INTEGER,
            started_at INTEGER,
            finished_at INTEGER,
            CONSTRAINT "an item is leased exactly while it is active" CHECK ((lease IS NOT NULL) = (state = 'active')),
            CONSTRAINT "an item has a time to run exactly while it is delayed"
                CHECK ((run_at IS NOT NULL) = (state = 'delayed')),
            CONSTRAINT "a failed item has a class" CHECK (state <> 'failed' OR class IS NOT NULL),
            CONSTRAINT "an ended item has an end" CHECK (state NOT IN ('done', 'failed', 'cancelled') OR finished_at IS NOT NULL)
        );
        CREATE INDEX items_by_job ON items (job);
        CREATE INDEX items_queued ON items (job) WHERE state = 'queued';
        CREATE INDEX items_delayed ON items (run_at) WHERE state = 'delayed';
        CREATE INDEX items_done_by_url ON items (url) WHERE state = 'done';
        CREATE INDEX items_leased ON items (lease) WHERE state = 'active';

        -- Holds a job for as long as a trigger spreads its urls, within that one statement.
        CREATE TABLE spreading (job INTEGER PRIMARY KEY);
        CREATE TABLE workers (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            host TEXT NOT NULL,
            pid INTEGER NOT NULL,
            started_at INTEGER NOT NULL,
            seen_at INTEGER NOT NULL
        );
        CREATE TABLE leases (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            worker INTEGER NOT NULL,
            claimed_at INTEGER NOT NULL,
            expires_at INTEGER NOT NULL
        );
        CREATE TABLE hosts (
            host TEXT PRIMARY KEY,
            not_before INTEGER NOT NULL
        ) WITHOUT ROWID;
        CREATE TABLE blacklist_entries (
            url TEXT PRIMARY KEY,
            host TEXT NOT NULL,
            class TEXT NOT NULL,
            http_status INTEGER,
            message TEXT,
            count INTEGER NOT NULL,
            first_at INTEGER NOT NULL,
            last_at INTEGER NOT NULL,
            expires_at INTEGER NOT NULL
        ) WITHOUT ROWID;

        CREATE TABLE blobs (
            hash TEXT PRIMARY KEY,
            size INTEGER NOT NULL,
            created_at INTEGER NOT NULL,
            used_at INTEGER NOT NULL
        ) WITHOUT ROWID;
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
            fetched_at INTEGER NOT NULL
        ) WITHOUT ROWID;
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
        CREATE TABLE renditions (
            item INTEGER NOT NULL,
            name TEXT NOT NULL,
            blob TEXT NOT NULL,
            size INTEGER NOT NULL,
            format TEXT NOT NULL,
            width INTEGER,
            height INTEGER,
            PRIMARY KEY (item, name)
        ) WITHOUT ROWID;
        """
}
