internal import Core
internal import GRDB

/// Fills a new database with the rows of a broken one, and makes them consistent.
struct SalvageLoad {
    let old: DatabaseQueue?
    let new: Connection
    let now: WallTime
    var report: Salvage.Report

    private static let tables: [(name: String, key: [String], isNumber: Bool)] = [
        ("jobs", ["id"], true), ("items", ["id"], true), ("renditions", ["item", "name"], false),
        ("sources", ["key"], false), ("source_facts", ["id"], true), ("variants", ["identity"], false),
        ("blobs", ["hash"], false), ("cache_entries", ["key", "variant"], false), ("pins", ["key"], false),
        ("blacklist_entries", ["url"], false), ("hosts", ["host"], false), ("cache_properties", ["name"], false),
        ("lost_files", ["key", "variant"], false), ("limits", ["host"], false), ("tries", ["item", "at"], false),
        ("host_failures", ["host", "class"], false), ("key_rules", ["rule", "key"], false),
        ("suspension", ["id"], true), ("pin_urls", ["url", "key"], false), ("quarantined", ["name"], false),
        ("schedules", ["name"], false), ("schedule_runs", ["schedule", "due_at"], false),
        ("recipes", ["name"], false), ("notices", ["job"], true), ("job_additions", ["job"], true),
        // Last, since the triggers of `blobs` stay, and change the row of `cache_totals` for each blob that is loaded.
        ("cache_totals", ["id"], true),
    ]
    /// Tables of which some rows could not be read.
    private var gaps: Set<String> = []

    init(old: DatabaseQueue?, new: Connection, now: WallTime, report: Salvage.Report) {
        self.old = old
        self.new = new
        self.now = now
        self.report = report
    }

    mutating func run(_ cache: Salvage.Cache) throws {
        let triggers = try dropTriggers()
        try SQLiteFile.transaction(new) { _ in
            if let old {
                for table in Self.tables {
                    try load(table.name, SalvageReader(database: old), table.key, isNumber: table.isNumber)
                }
            }
            try mendQueue()
        }
        try bind(cache)
        let found = try cache.files()
        try SQLiteFile.transaction(new) { _ in try mendIndex(found) }
        for trigger in triggers { try new.script(trigger) }
    }

    private func bind(_ cache: Salvage.Cache) throws {
        let blobs = try new.rows("SELECT hash, size FROM blobs LIMIT 1000")
        let name = try cache.bind(
            Salvage.Index(
                cache: try CacheProperty.value(CacheProperty.name, in: new),
                blobs: blobs.map { (hash: $0["hash"], size: $0["size"]) }, isComplete: report.unreadable.isEmpty))
        try CacheProperty.set(CacheProperty.name, to: name, in: new)
        // The place of the old cache does not apply to the cache that is taken over.
        try CacheProperty.set(CacheIndex.placeProperty, to: nil, in: new)
    }

    /// Without triggers, rows are inserted as they are, rather than as changes of a state.
    private func dropTriggers() throws -> [String] {
        let rows = try new.rows(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name IN ('jobs', 'items')")
        for row in rows { try new.script("DROP TRIGGER \(row["name"] as String)") }
        return rows.map { $0["sql"] }
    }

    private mutating func load(
        _ table: String, _ reader: SalvageReader, _ key: [String], isNumber: Bool,
    ) throws {
        let known = Set(try new.rows("PRAGMA table_info(\(table))").map { $0["name"] as String })
        var refused = 0
        let outcome: SalvageReader.Outcome
        do {
            outcome = try reader.read(table, key: key, isNumber: isNumber) { row in
                let columns = Array(row.columnNames.filter(known.contains))
                let marks = columns.map { _ in "?" }.joined(separator: ", ")
                guard Self.makesSense(row, of: table) else {
                    refused += 1
                    return
                }
                var values = columns.map(row.value)
                Self.mend(table, columns, &values)
                do {
                    try new.run(
                        "INSERT OR REPLACE INTO \(table) (\(columns.joined(separator: ", "))) VALUES (\(marks))",
                        SQLValues(values))
                } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
                    // A damaged page yields rows that this program has never written.
                    refused += 1
                }
            }
        } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
            // The readable part of the schema does not contain this table.
            return
        }
        if let failure = outcome.failure {
            report.unreadable.append("Only \(outcome.rows) rows of the table \(table) could be read: \(failure)")
        }
        if refused > 0 {
            report.unreadable.append(
                refused == 1
                    ? "1 row of the table \(table) was invalid." : "\(refused) rows of the table \(table) were invalid."
            )
        }
        if outcome.failure != nil || refused > 0 { gaps.insert(table) }
        if table == "jobs" { report.jobs = outcome.rows - refused }
        if table == "items" { report.items = outcome.rows - refused }
    }

    /// The columns that hold a SHA-256.
    private static let hashes = [
        "renditions": ["blob"], "blobs": ["hash"], "sources": ["hash"], "source_facts": ["hash"],
        "variants": ["identity", "source", "blob"], "cache_entries": ["blob"],
    ]

    /// Whether a worker may have written this row. SQLite does not notice damage within a value, and a result with a
    /// damaged hash would stay `done` without its file, although the file is there.
    private static func makesSense(_ row: Row, of table: String) -> Bool {
        (hashes[table] ?? []).allSatisfy { column in
            // Not read as text: a damaged one may be anything.
            guard case .text(let text) = row.value(column) else { return false }
            return BlobHash(text) != nil
        }
    }

    /// A job's counters are recounted later, and must be 0 until then.
    private static func mend(_ table: String, _ columns: [String], _ values: inout [SQLValue]) {
        let counters: Set = [
            "total", "queued", "active", "delayed", "done", "cached", "failed", "blacklisted", "cancelled",
        ]
        let isActive = zip(columns, values).contains { $0 == "state" && $1 == .text("active") }
        for (index, column) in columns.enumerated() {
            if table == "jobs", counters.contains(column) { values[index] = .integer(0) }
            if table == "items", isActive, column == "state" { values[index] = .text("queued") }
            if table == "items", column == "lease" { values[index] = .null }
            if table == "blobs", column == "dying" { values[index] = .integer(0) }
        }
    }

    private mutating func mendQueue() throws {
        // Lists that were not completed.
        try new.script(
            """
            DELETE FROM job_additions WHERE job IN (SELECT id FROM jobs);
            DELETE FROM items WHERE job IN (SELECT job FROM job_additions);
            """)
        report.items -= try new.changesCount()
        try new.script("DELETE FROM job_additions")
        // Items with an unreadable job get a paused job that says so, since their variants are unknown.
        try new.script(
            """
            INSERT INTO jobs (id, name, state, error)
                SELECT DISTINCT job, 'recovered', 'paused',
                    'The row of this job could not be read: set its variants and options, and resume it.'
                FROM items WHERE job NOT IN (SELECT id FROM jobs);
            """)
        report.jobs += try new.changesCount()
        try new.script(
            """
            UPDATE items SET state = 'queued', finished_at = NULL, source = NULL WHERE state = 'done'
                AND NOT EXISTS (SELECT 1 FROM renditions WHERE renditions.item = items.id)
            """)
        report.requeued += try new.changesCount()
        if gaps.contains("renditions") { try mendResults() }
        try new.script(
            """
            DELETE FROM renditions WHERE item NOT IN (SELECT id FROM items);
            DELETE FROM tries WHERE item NOT IN (SELECT id FROM items);
            DELETE FROM source_facts WHERE hash NOT IN (SELECT hash FROM sources);
            UPDATE jobs SET urls = NULL;
            UPDATE jobs SET state = 'queued' WHERE state = 'finished';
            UPDATE jobs SET total = c.total, queued = c.queued, active = 0, delayed = c.delayed, done = c.done,
                cached = c.cached, failed = c.failed, blacklisted = c.blacklisted, cancelled = c.cancelled
                FROM (SELECT job, count(*) AS total, sum(state = 'queued') AS queued, sum(state = 'delayed') AS delayed,
                    sum(state = 'done' AND cached = 0) AS done, sum(state = 'done' AND cached <> 0) AS cached,
                    sum(state = 'failed' AND blacklisted = 0) AS failed,
                    sum(state = 'failed' AND blacklisted <> 0) AS blacklisted,
                    sum(state = 'cancelled') AS cancelled FROM items GROUP BY job) AS c
                WHERE c.job = jobs.id;
            """)
        try new.run(
            """
            UPDATE jobs SET state = 'finished', finished_at = coalesce(finished_at, ?)
            WHERE state IN ('queued', 'running') AND queued + delayed = 0
            """, [now.milliseconds])
        try new.script("UPDATE jobs SET finished_at = NULL WHERE state IN ('queued', 'running', 'paused')")
        try new.run(
            """
            INSERT INTO job_ends SELECT id, \(Schema.steady("finished_at")) FROM jobs WHERE finished_at IS NOT NULL
            """)
    }

    /// Queues a `done` item again if it lacks a variant that another `done` item of its job has. An item with variants
    /// of its own has none to be compared with, so it is queued again in any case: the worker finds its files in the cache.
    private mutating func mendResults() throws {
        try new.script(
            """
            CREATE TEMP TABLE wanted AS SELECT DISTINCT items.job AS job, renditions.name AS name
                FROM renditions CROSS JOIN items ON items.id = renditions.item WHERE items.state = 'done'
                AND items.variants IS NULL;
            CREATE INDEX temp.wanted_by_job ON wanted (job);
            """)
        try new.script(
            """
            UPDATE items SET state = 'queued', finished_at = NULL, source = NULL WHERE state = 'done'
                AND (variants IS NOT NULL
                    OR EXISTS (SELECT 1 FROM temp.wanted WHERE wanted.job = items.job AND NOT EXISTS
                        (SELECT 1 FROM renditions WHERE renditions.item = items.id AND renditions.name = wanted.name)))
            """)
        report.requeued += try new.changesCount()
        try new.script(
            """
            DELETE FROM renditions WHERE item IN (SELECT id FROM items WHERE state <> 'done');
            DROP TABLE temp.wanted;
            """)
    }

    private mutating func mendIndex(_ files: [(hash: String, size: Int64)]) throws {
        try new.script("CREATE TEMP TABLE found (hash TEXT PRIMARY KEY, size INTEGER) WITHOUT ROWID")
        for file in files {
            try new.run("INSERT OR REPLACE INTO temp.found VALUES (?, ?)", [file.hash, file.size])
        }
        report.lostFiles =
            try new.int("SELECT count(*) FROM blobs WHERE hash NOT IN (SELECT hash FROM temp.found)")
            ?? 0
        // Files without any reference are recorded as well: they expire and are evicted like all others.
        try new.run(
            """
            INSERT OR IGNORE INTO blobs (hash, size, created_at, used_at, modified_at)
                SELECT hash, size, ?1, ?1, ?1 FROM temp.found
            """, [now.milliseconds])
        // `worker cache verify` reports these files, and can queue them again.
        try new.run(
            """
            INSERT OR REPLACE INTO lost_files (key, variant, blob, found_at)
                SELECT key, variant, blob, ?1 FROM cache_entries WHERE blob NOT IN (SELECT hash FROM temp.found)
                UNION ALL SELECT key, '', hash, ?1 FROM sources
                    WHERE kept <> 0 AND hash NOT IN (SELECT hash FROM temp.found)
            """, [now.milliseconds])
        try new.script(
            """
            DELETE FROM blobs WHERE hash NOT IN (SELECT hash FROM temp.found);
            UPDATE blobs SET size = (SELECT size FROM temp.found WHERE found.hash = blobs.hash),
                is_source = hash IN (SELECT hash FROM sources);
            UPDATE sources SET kept = hash IN (SELECT hash FROM temp.found);
            DELETE FROM variants WHERE blob NOT IN (SELECT hash FROM temp.found);
            DELETE FROM cache_entries WHERE blob NOT IN (SELECT hash FROM temp.found);
            \(Self.entriesOfResults);
            UPDATE cache_totals SET blobs = (SELECT count(*) FROM blobs), bytes = (SELECT coalesce(sum(size), 0) FROM blobs);
            DROP TABLE temp.found;
            """)
        report.blobs = try new.int("SELECT count(*) FROM blobs") ?? 0
    }

    /// Makes entries from each URL's latest result. It is inserted first, and older ones do not replace it.
    private static let entriesOfResults = """
        INSERT OR IGNORE INTO cache_entries (key, variant, blob, format)
            SELECT CASE instr(items.url, '#') WHEN 0 THEN items.url
                    ELSE substr(items.url, 1, instr(items.url, '#') - 1) END,
                renditions.name, renditions.blob, renditions.format
            FROM items JOIN renditions ON renditions.item = items.id
            WHERE items.state = 'done' AND renditions.blob IN (SELECT hash FROM blobs)
            ORDER BY items.finished_at DESC, items.id DESC
        """
}
