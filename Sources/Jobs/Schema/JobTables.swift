/// Jobs, items and their results, and the workers that lease items.
extension Schema {
    static let jobTables = """
        -- not_new counts the URLs that only-new has left out. notify: where its notice is sent when it has ended. revision
        -- changes with every change of the counters that the database itself makes: an UPDATE that changes counters and not
        -- the revision was typed by a person, and is refused.
        CREATE TABLE jobs (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            name TEXT,
            urls TEXT,
            variants TEXT,
            options TEXT,
            headers TEXT,
            priority INTEGER NOT NULL DEFAULT 0,
            execution_order TEXT CONSTRAINT "execution_order is fifo or lifo" CHECK (execution_order IN ('fifo', 'lifo')),
            state TEXT NOT NULL DEFAULT 'queued' CONSTRAINT "state of a job" CHECK (\(isOneOf(JobState.self))),
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
            not_new INTEGER NOT NULL DEFAULT 0,
            created_at INTEGER NOT NULL DEFAULT (\(now)),
            started_at INTEGER,
            finished_at INTEGER,
            error TEXT,
            dedupe_key TEXT,
            notify TEXT,
            revision INTEGER NOT NULL DEFAULT 0,
            CONSTRAINT "a finished job has nothing left to do"
                CHECK (state <> 'finished' OR queued + active + delayed = 0),
            CONSTRAINT "the counters of a job add up"
                CHECK (total = queued + active + delayed + done + cached + failed + blacklisted + cancelled)
        );
        CREATE INDEX jobs_open ON jobs (priority) WHERE state IN ('queued', 'running');
        CREATE UNIQUE INDEX jobs_dedupe ON jobs (dedupe_key)
            WHERE dedupe_key IS NOT NULL AND state IN ('queued', 'running', 'paused');
        CREATE INDEX jobs_closed ON jobs (id) WHERE state IN ('cancelled', 'failed') AND queued + active + delayed > 0;
        -- While it has a row, nothing is claimed of any job.
        CREATE TABLE suspension (
            id INTEGER PRIMARY KEY CONSTRAINT "there is one suspension at most" CHECK (id = 1),
            since INTEGER NOT NULL DEFAULT (\(now))
        );
        -- When a job ended, by the cache's clock, which retention counts on; jobs.finished_at is the machine's, for
        -- people.
        CREATE TABLE job_ends (
            job INTEGER PRIMARY KEY,
            ended_at INTEGER NOT NULL
        );

        -- The revision of the ended job when a worker last counted its items.
        CREATE TABLE recounts (
            job INTEGER PRIMARY KEY,
            revision INTEGER NOT NULL
        );

        -- deaths counts the workers that died while they held the item. The columns from meta on are given for this
        -- item alone; most items have none. fallback: the number of the fallback that is fetched now.
        -- bytes_from: where the source came from, if neither the network nor the cache on the disk.
        CREATE TABLE items (
            id INTEGER PRIMARY KEY,
            job INTEGER NOT NULL,
            url TEXT NOT NULL ON CONFLICT REPLACE DEFAULT '',
            state TEXT NOT NULL DEFAULT 'queued' CONSTRAINT "state of an item" CHECK (\(isOneOf(ItemState.self))),
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
            waits_for TEXT,
            deaths INTEGER NOT NULL DEFAULT 0,
            meta TEXT,
            priority INTEGER,
            variants TEXT,
            headers TEXT,
            sha256 TEXT,
            size INTEGER,
            fallbacks TEXT,
            fallback INTEGER,
            bytes_from TEXT,
            CONSTRAINT "an item is leased exactly while it is active" CHECK ((lease IS NOT NULL) = (state = 'active')),
            CONSTRAINT "an item has a time to run exactly while it is delayed"
                CHECK ((run_at IS NOT NULL) = (state = 'delayed')),
            CONSTRAINT "a failed item has a class" CHECK (state <> 'failed' OR class IS NOT NULL),
            CONSTRAINT "an ended item has an end"
                CHECK (state = 'queued' OR state = 'active' OR state = 'delayed' OR finished_at IS NOT NULL)
        );
        CREATE INDEX items_by_job ON items (job);
        CREATE INDEX items_queued ON items (job) WHERE state = 'queued' AND priority IS NULL;
        CREATE INDEX items_own_priority ON items (priority, job) WHERE state = 'queued' AND priority IS NOT NULL;
        CREATE INDEX items_delayed ON items (run_at) WHERE state = 'delayed';
        CREATE INDEX items_leased ON items (lease) WHERE state = 'active';
        CREATE INDEX items_waiting_for ON items (waits_for) WHERE state = 'delayed' AND waits_for IS NOT NULL;
        CREATE INDEX items_suspect ON items (deaths, id) WHERE state = 'queued' AND deaths > 1;
        CREATE INDEX items_delayed_by_job ON items (job) WHERE state = 'delayed';

        -- The URLs of items that are done, for only-new. Few databases use that option, and an index of all such items
        -- would cost a fifth of a run that finds everything cached. So the table stays empty until the first item is
        -- added to a job with only-new, which adds what is done; from then on it has the row ('', 0).
        CREATE TABLE done_urls (url TEXT NOT NULL, item INTEGER NOT NULL, PRIMARY KEY (url, item)) WITHOUT ROWID;

        -- The ids of jobs whose items are being added in several transactions. The job comes with the last of them, so all
        -- other programs see it with all its items or not at all. Where the program has ended before that, a worker, a
        -- prune or the next long list removes the items.
        CREATE TABLE job_additions (job INTEGER PRIMARY KEY);
        -- While a trigger adds the urls of a job as items: how many of them are no URL.
        CREATE TABLE spreading (job INTEGER PRIMARY KEY, failed INTEGER NOT NULL DEFAULT 0);
        -- The moves and deletions that a worker adds up itself, once a group, in the same transaction. Counting them row by row cost more than everything else that is done with a row. A
        -- negative number stands for all items of that job. Every other move, for example by a user's
        -- trigger, is counted by items_count_update.
        CREATE TABLE moving (id INTEGER PRIMARY KEY, item INTEGER NOT NULL, state TEXT NOT NULL);
        -- Holds, within one INSERT, the jobs that an OR REPLACE would delete: SQLite runs no DELETE trigger for them
        -- unless recursive_triggers is on, so their items would be stranded.
        CREATE TABLE replacing (job INTEGER PRIMARY KEY);

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
        -- Every request that was made, as long as its item is there. Times in microseconds.
        CREATE TABLE tries (
            item INTEGER NOT NULL,
            at INTEGER NOT NULL,
            class TEXT,
            http_status INTEGER,
            message TEXT,
            received INTEGER,
            saved INTEGER,
            redirects INTEGER,
            address TEXT,
            http_version TEXT,
            dns INTEGER,
            connect INTEGER,
            tls INTEGER,
            first_byte INTEGER,
            total INTEGER,
            PRIMARY KEY (item, at)
        ) WITHOUT ROWID;

        -- sharing: 1 if the worker obeys its shares of the limits, 0 if it uses all slots because it is the only one. The
        -- helpers_ columns are as the worker last reported them; started and died count since it began.
        CREATE TABLE workers (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            host TEXT NOT NULL,
            pid INTEGER NOT NULL,
            started_at INTEGER NOT NULL,
            seen_at INTEGER NOT NULL,
            sharing INTEGER NOT NULL DEFAULT 1,
            helpers INTEGER NOT NULL DEFAULT 0,
            helpers_busy INTEGER NOT NULL DEFAULT 0,
            helpers_waiting INTEGER NOT NULL DEFAULT 0,
            helpers_started INTEGER NOT NULL DEFAULT 0,
            helpers_died INTEGER NOT NULL DEFAULT 0
        );
        -- is_alone says that the lease's item was the only one that its worker held.
        CREATE TABLE leases (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            worker INTEGER NOT NULL,
            claimed_at INTEGER NOT NULL,
            expires_at INTEGER NOT NULL,
            is_alone INTEGER NOT NULL DEFAULT 0
        );
        """
}
