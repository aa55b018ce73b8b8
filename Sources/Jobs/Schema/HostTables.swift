/// Tables about hosts: their state, waiting items, limits that users set while workers run, and the blacklist.
extension Schema {
    /// The limits that hold for the worker as a whole: the column, its lowest and highest value, and its unit.
    static let workerLimits: [(name: String, range: ClosedRange<Int64>, unit: String)] = [
        ("silence_timeout", 1...LimitsRecord.longestTime, "of milliseconds "),
        ("connect_timeout", 1...LimitsRecord.longestTime, "of milliseconds "),
        ("total_timeout", 1...LimitsRecord.longestTime, "of milliseconds "),
        ("max_tries", 1...1_000, ""),
        ("retry_delay", 0...LimitsRecord.longestDelay, "of milliseconds "),
        ("cache_max_age", -1...LimitsRecord.longestAge, "of milliseconds "),
    ]

    private static func workerLimit(_ name: String, _ range: ClosedRange<Int64>, _ unit: String) -> String {
        let range = (range.lowerBound, range.upperBound)
        let sentence = "\(name) is a whole number \(unit)from \(range.0) to \(range.1), and of the row '*' only"
        return """
            \(name) INTEGER CONSTRAINT "\(sentence)"
                    CHECK (\(name) IS NULL OR (typeof(\(name)) = 'integer' AND \(name) BETWEEN \(range.0) AND \(range.1)
                        AND host = '*'))
            """
    }

    static let hostTables = """
        -- Times by the cache's clock. Of a host that has never answered: since when it fails, and when it is given up.
        CREATE TABLE hosts (
            host TEXT PRIMARY KEY,
            not_before INTEGER NOT NULL,
            set_at INTEGER,
            reason TEXT,
            width REAL,
            circuit_opens INTEGER NOT NULL DEFAULT 0,
            failing_since INTEGER,
            failed_at INTEGER,
            gives_up_at INTEGER,
            failure_class TEXT,
            failure_message TEXT,
            answered INTEGER NOT NULL DEFAULT 0
        ) WITHOUT ROWID;
        CREATE TABLE host_failures (
            host TEXT NOT NULL,
            class TEXT NOT NULL,
            count INTEGER NOT NULL,
            last_at INTEGER NOT NULL,
            PRIMARY KEY (host, class)
        ) WITHOUT ROWID;
        -- reason and until: why a worker's requests to a host wait, and until when, where that is known. share:
        -- how many of the concurrent requests allowed for all workers this worker may have; the row '*' is for all hosts.
        CREATE TABLE host_load (
            worker INTEGER NOT NULL,
            host TEXT NOT NULL,
            running INTEGER NOT NULL,
            waiting INTEGER NOT NULL,
            rate REAL NOT NULL,
            reason TEXT,
            until INTEGER,
            share INTEGER,
            PRIMARY KEY (worker, host)
        ) WITHOUT ROWID;

        -- The row '*' is for the worker as a whole and for hosts without a row. Times in milliseconds.
        CREATE TABLE limits (
            host TEXT PRIMARY KEY NOT NULL,
            concurrency INTEGER CONSTRAINT "concurrency is a whole number from 1 to 1000, and of the row '*' only"
                CHECK (concurrency IS NULL OR (typeof(concurrency) = 'integer' AND concurrency BETWEEN 1 AND 1000
                    AND host = '*')),
            per_host INTEGER CONSTRAINT "per_host is a whole number from 1 to 1000"
                CHECK (per_host IS NULL OR (typeof(per_host) = 'integer' AND per_host BETWEEN 1 AND 1000)),
            rate REAL CONSTRAINT "rate is a number of requests a second, from 0.0001 to 100000"
                CHECK (rate IS NULL OR (typeof(rate) = 'real' AND rate BETWEEN 0.0001 AND 100000)),
            burst INTEGER CONSTRAINT "burst is a whole number from 1 to 10000"
                CHECK (burst IS NULL OR (typeof(burst) = 'integer' AND burst BETWEEN 1 AND 10000)),
            \(workerLimits.map(workerLimit).joined(separator: ",\n            "))
        ) WITHOUT ROWID;
        -- setting: the one that has refused the URL, such as max-body=67108864; the entry holds while it is the same.
        CREATE TABLE blacklist_entries (
            url TEXT PRIMARY KEY,
            host TEXT NOT NULL,
            class TEXT NOT NULL,
            http_status INTEGER,
            message TEXT,
            count INTEGER NOT NULL,
            first_at INTEGER NOT NULL,
            last_at INTEGER NOT NULL,
            expires_at INTEGER NOT NULL,
            setting TEXT
        ) WITHOUT ROWID;

        CREATE TABLE transfer_progress (
            worker INTEGER NOT NULL,
            item INTEGER NOT NULL,
            received INTEGER NOT NULL,
            expected INTEGER,
            updated_at INTEGER NOT NULL,
            bytes_from TEXT NOT NULL DEFAULT 'network',
            PRIMARY KEY (worker, item)
        ) WITHOUT ROWID;
        -- Active items that wait for their host.
        CREATE TABLE held_items (
            worker INTEGER NOT NULL,
            item INTEGER NOT NULL,
            host TEXT NOT NULL,
            PRIMARY KEY (worker, item)
        ) WITHOUT ROWID;
        CREATE TRIGGER workers_delete_held AFTER DELETE ON workers BEGIN
            DELETE FROM held_items WHERE worker = OLD.id;
        END;
        """
}
