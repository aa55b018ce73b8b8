internal import Core

/// How far a move to PostgreSQL has come, and what was copied in the end.
public struct MoveReport: Codable, Sendable {
    public internal(set) var jobs = 0
    public internal(set) var items = 0
    public internal(set) var rows = 0
    /// Rows that PostgreSQL refuses, such as text in a column of numbers: their number, and the reason of the first.
    public internal(set) var refused = 0
    public internal(set) var reason: String?
}

/// Copies a SQLite database into a PostgreSQL database. A move that was interrupted goes on when it is started again.
extension Maintenance {
    /// Rows of a page. A page is one transaction of the new database.
    private static let page = 500
    /// Names the source in the new database until all is copied.
    private static let mark = "moving-from"
    /// What these tables hold is about running workers and transactions.
    private static let transient: Set = [
        "announced_files", "removed_files",
        "host_load", "held_items", "transfer_progress", "spreading", "moving", "replacing", "reservations",
        "job_additions", "removed_links", "quarantined", "suspension",
    ]
    private static let numbered = ["jobs", "items", "workers", "leases", "event_log", "source_facts"]

    /// Copies all rows. The jobs of this database are paused first, so that no worker goes on with them here.
    ///
    /// - Throws: `refused` if a worker uses one of the databases, or if the other one has a queue of its own.
    public func move(
        to target: DatabaseGate, progress: @Sendable (MoveReport) -> Void = { _ in },
    ) async throws(JobsError) -> MoveReport {
        let source = gate
        guard source.sqlite != nil, target.sqlite == nil else {
            throw JobsError(.refused, "A move goes from a SQLite database to a PostgreSQL database.")
        }
        for store in [source, target] where store.liveness.isAnyWorkerAlive {
            throw JobsError(.refused, "A worker is using \(store.path). Stop all workers first.")
        }
        try await begin(in: target)
        // First, so that no row is added to a table that was copied already.
        try await source.write { db in
            try db.run("INSERT OR IGNORE INTO suspension (id, since) VALUES (1, ?)", [source.now().milliseconds])
        }
        var report = MoveReport()
        for table in PostgresSchema.shapes.keys.sorted() where !Self.transient.contains(table) {
            try await copy(table, to: target, &report, progress)
        }
        // Ids of rows that were removed are not given again.
        let sequences = try await source.read { db in
            try db.rows("SELECT name, seq FROM sqlite_sequence").reduce(into: [:]) { sequences, row in
                sequences[row["name"] as String] = row["seq"] as Int64
            }
        }
        try await target.write { db in
            for table in Self.numbered {
                try db.script(
                    """
                    SELECT setval(pg_get_serial_sequence('\(table)', 'id'),
                        (SELECT greatest(coalesce(max(id), 0), \(sequences[table] ?? 0)) + 1 FROM \(table)), false)
                    """)
            }
            // What is true of the old file alone, and of the folder of its machine.
            try db.run(
                "DELETE FROM cache_properties WHERE name IN ('log-holder', ?) OR name LIKE 'write-lock-%'",
                [CacheIndex.placeProperty])
            try CacheProperty.set(Self.mark, to: nil, in: db)
        }
        return report
    }

    private func begin(in target: DatabaseGate) async throws(JobsError) {
        let path = gate.fileName
        try await target.write { db in
            let mark = try CacheProperty.value(Self.mark, in: db)
            let isEmpty = try !db.exists("SELECT 1 FROM jobs")
            guard mark == path || (mark == nil && isEmpty) else {
                throw JobsError(
                    .refused,
                    "\(target.path) has a queue of its own\(mark.map { ", which is being moved from \($0)" } ?? ""). "
                        + "Move to an empty database or schema.")
            }
            // Those of the source take their places, such as the name by which the cache knows its index.
            if mark == nil { try db.run("DELETE FROM cache_properties") }
            try CacheProperty.set(Self.mark, to: path, in: db)
            // Triggers keep this row, and they are off while rows are copied.
            try db.run("DELETE FROM cache_totals")
        }
    }

    private func copy(
        _ table: String, to target: DatabaseGate, _ report: inout MoveReport, _ progress: (MoveReport) -> Void,
    ) async throws(JobsError) {
        guard let shape = PostgresSchema.shapes[table] else { return }
        let (columns, key) = (shape.columns.joined(separator: ", "), shape.key.joined(separator: ", "))
        var last: [SQLValue]?
        while true {
            let condition =
                last == nil ? "" : "WHERE (\(key)) > (\(shape.key.map { _ in "?" }.joined(separator: ", ")))"
            let after = last
            let rows = try await gate.read { db in
                try db.rows(
                    "SELECT \(columns) FROM \(table) \(condition) ORDER BY \(key) LIMIT \(Self.page)",
                    SQLValues(after ?? [])
                ).map(\.values)
            }
            guard let end = rows.last else { return }
            let next = shape.key.map { name in shape.columns.firstIndex(of: name).map { end[$0] } ?? .null }
            if let last, !PageOrder.isBeyond(last, next) {
                throw JobsError(
                    .refused,
                    "A row of the table '\(table)' in \(gate.path) has a key that is no UTF-8, so the rows behind it can't "
                        + "be read. Make a new database of it with 'worker db rebuild', and move that one.")
            }
            last = next
            do {
                try await Self.insert(rows, columns, into: table, of: target)
            } catch  where error.code == .refused || error.code == .internalError {
                try await insertOneByOne(rows, columns, into: table, of: target, &report)
            }
            report.rows += rows.count
            if table == "jobs" { report.jobs += rows.count }
            if table == "items" { report.items += rows.count }
            progress(report)
        }
    }

    private func insertOneByOne(
        _ rows: [[SQLValue]], _ columns: String, into table: String, of target: DatabaseGate, _ report: inout MoveReport,
    ) async throws(JobsError) {
        for row in rows {
            do {
                try await Self.insert([row], columns, into: table, of: target)
            } catch  where error.code == .refused || error.code == .internalError {
                report.refused += 1
                report.reason = report.reason ?? "\(table): \(error.message)"
            }
        }
    }

    private static func insert(
        _ rows: [[SQLValue]], _ columns: String, into table: String, of target: DatabaseGate,
    ) async throws(JobsError) {
        try await target.write(isDurable: false) { db in
            let marks = "(" + rows[0].map { _ in "?" }.joined(separator: ", ") + ")"
            let values = repeatElement(marks, count: rows.count).joined(separator: ", ")
            _ = try TriggerSwitch.withTriggers(false, db) {
                try db.run(
                    "INSERT INTO \(table) (\(columns)) VALUES \(values) ON CONFLICT DO NOTHING",
                    SQLValues(Array(rows.joined())))
            }
        }
    }
}
