/// Migration 4: what workers know of hosts and of their transfers, and what people may change of it while they run.
extension Schema {
    static let downloads = """
        ALTER TABLE hosts ADD COLUMN set_at INTEGER;
        ALTER TABLE hosts ADD COLUMN reason TEXT;
        ALTER TABLE hosts ADD COLUMN width REAL;
        ALTER TABLE hosts ADD COLUMN parks INTEGER NOT NULL DEFAULT 0;

        -- The row '*' is for the worker as a whole and for hosts without a row.
        CREATE TABLE limits (
            host TEXT PRIMARY KEY NOT NULL,
            concurrency INTEGER CONSTRAINT "concurrency is a whole number from 1 to 1000, and of the row '*' only"
                CHECK (concurrency IS NULL OR (typeof(concurrency) = 'integer' AND concurrency BETWEEN 1 AND 1000
                    AND host = '*')),
            per_host INTEGER CONSTRAINT "per_host is a whole number from 1 to 1000"
                CHECK (per_host IS NULL OR (typeof(per_host) = 'integer' AND per_host BETWEEN 1 AND 1000)),
            rate REAL CONSTRAINT "rate is a number of requests a second"
                CHECK (rate IS NULL OR (typeof(rate) = 'real' AND rate BETWEEN 0.0001 AND 100000)),
            burst INTEGER CONSTRAINT "burst is a whole number from 1 to 10000"
                CHECK (burst IS NULL OR (typeof(burst) = 'integer' AND burst BETWEEN 1 AND 10000))
        ) WITHOUT ROWID;

        CREATE TABLE host_load (
            worker INTEGER NOT NULL,
            host TEXT NOT NULL,
            running INTEGER NOT NULL,
            waiting INTEGER NOT NULL,
            rate REAL NOT NULL,
            PRIMARY KEY (worker, host)
        ) WITHOUT ROWID;
        CREATE TABLE host_failures (
            host TEXT NOT NULL,
            class TEXT NOT NULL,
            count INTEGER NOT NULL,
            last_at INTEGER NOT NULL,
            PRIMARY KEY (host, class)
        ) WITHOUT ROWID;

        ALTER TABLE sources ADD COLUMN http TEXT;
        ALTER TABLE items ADD COLUMN waits_for TEXT;
        CREATE INDEX items_waiting_for ON items (waits_for) WHERE state = 'delayed' AND waits_for IS NOT NULL;
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
        CREATE TRIGGER items_delete_tries AFTER DELETE ON items BEGIN
            DELETE FROM tries WHERE item = OLD.id;
        END;
        CREATE TABLE transfer_progress (
            worker INTEGER NOT NULL,
            item INTEGER NOT NULL,
            received INTEGER NOT NULL,
            expected INTEGER,
            updated_at INTEGER NOT NULL,
            PRIMARY KEY (worker, item)
        ) WITHOUT ROWID;
        CREATE VIEW transfers AS SELECT
            items.job AS job, items.id AS item, items.url AS url, received, expected,
            CASE WHEN expected > 0 THEN round(100.0 * received / expected, 1) END AS percent,
            \(iso("updated_at")) AS updated_at
            FROM transfer_progress JOIN items ON items.id = transfer_progress.item WHERE items.state = 'active';
        CREATE VIEW waiting AS SELECT
            job, id AS item, url, waits_for AS host, message AS reason, class, attempts, \(iso("run_at")) AS until
            FROM items WHERE state = 'delayed';
        """
}
