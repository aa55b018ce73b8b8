/// Migration 15: hosts that never answered, why items wait, what workers share, and which setting has refused a URL.
extension Schema {
    static let hostReach = """
        -- By the clock that doesn't jump. Of a host that has never answered: since when it fails, and when it is given up.
        ALTER TABLE hosts ADD COLUMN failing_since INTEGER;
        ALTER TABLE hosts ADD COLUMN failed_at INTEGER;
        ALTER TABLE hosts ADD COLUMN gives_up_at INTEGER;
        ALTER TABLE hosts ADD COLUMN failure_class TEXT;
        ALTER TABLE hosts ADD COLUMN failure_message TEXT;
        ALTER TABLE hosts ADD COLUMN answered INTEGER NOT NULL DEFAULT 0;

        -- Why a worker's requests to a host wait, and until when, where that is known.
        ALTER TABLE host_load ADD COLUMN reason TEXT;
        ALTER TABLE host_load ADD COLUMN until INTEGER;
        -- Requests at once that a worker keeps to, of those that all may have together; the row '*' is for all hosts.
        ALTER TABLE host_load ADD COLUMN share INTEGER;
        -- Whether a worker keeps to its shares; one that is alone has everything.
        ALTER TABLE workers ADD COLUMN sharing INTEGER NOT NULL DEFAULT 1;

        -- Items that wait in a worker's hands.
        CREATE TABLE held_items (
            worker INTEGER NOT NULL,
            item INTEGER NOT NULL,
            host TEXT NOT NULL,
            PRIMARY KEY (worker, item)
        ) WITHOUT ROWID;
        CREATE TRIGGER workers_delete_held AFTER DELETE ON workers BEGIN
            DELETE FROM held_items WHERE worker = OLD.id;
        END;
        DROP VIEW waiting;
        CREATE VIEW waiting AS SELECT
            job, id AS item, url, waits_for AS host, message AS reason, class, attempts, \(iso("run_at")) AS until
            FROM items WHERE state = 'delayed'
        UNION ALL SELECT
            items.job, items.id, items.url, held_items.host,
            ifnull(host_load.reason, 'All downloads at once are taken (--concurrency).'), items.class, items.attempts,
            \(iso("host_load.until"))
            FROM held_items JOIN items ON items.id = held_items.item AND items.state = 'active'
            LEFT JOIN host_load ON host_load.worker = held_items.worker AND host_load.host = held_items.host;

        -- The setting that has refused the URL, such as max-body=67108864: the entry holds while it is the same.
        ALTER TABLE blacklist_entries ADD COLUMN setting TEXT;
        """
}
