internal import Core

/// Repairs rows with values that no worker writes, but a shell that has switched triggers or checks off may. One such
/// row could stop a worker, and so keep all other items waiting.
enum RowMending {
    /// A condition on the database, and the statements that mend it. Triggers are off while they run.
    private static let repairs: [(isNeeded: String, statements: [String])] = [
        (
            "SELECT 1 FROM jobs WHERE typeof(priority) <> 'integer' OR priority NOT BETWEEN -100 AND 100",
            [
                """
                UPDATE jobs SET priority = min(max(CAST(priority AS INTEGER), -100), 100)
                WHERE typeof(priority) <> 'integer' OR priority NOT BETWEEN -100 AND 100
                """
            ]
        ),
        (
            "SELECT 1 FROM jobs WHERE NOT (\(Schema.isOneOf(JobState.self)))",
            ["UPDATE jobs SET state = 'queued', finished_at = NULL WHERE NOT (\(Schema.isOneOf(JobState.self)))"]
        ),
        (
            """
            SELECT 1 FROM items INDEXED BY items_own_priority WHERE state = 'queued' AND priority IS NOT NULL
                AND (typeof(priority) <> 'integer' OR priority NOT BETWEEN -100 AND 100)
            """,
            [
                """
                UPDATE items SET priority = min(max(CAST(priority AS INTEGER), -100), 100)
                WHERE state = 'queued' AND priority IS NOT NULL
                    AND (typeof(priority) <> 'integer' OR priority NOT BETWEEN -100 AND 100)
                """
            ]
        ),
        (
            """
            SELECT 1 FROM items INDEXED BY items_suspect WHERE state = 'queued' AND deaths > 1
                AND (typeof(deaths) <> 'integer' OR deaths > \(Suspicion.guilty))
            """,
            [
                """
                UPDATE items SET deaths = 1 WHERE state = 'queued' AND deaths > 1
                    AND (typeof(deaths) <> 'integer' OR deaths > \(Suspicion.guilty))
                """
            ]
        ),
        (
            """
            SELECT 1 FROM cache_totals WHERE typeof(blobs) <> 'integer' OR typeof(bytes) <> 'integer'
                OR blobs NOT BETWEEN 0 AND 1099511627776 OR bytes NOT BETWEEN 0 AND 4503599627370496
            """,
            [
                "UPDATE cache_totals SET blobs = (SELECT count(*) FROM blobs), bytes = (SELECT CAST(total(size) AS INTEGER) FROM blobs)"
            ]
        ),
    ]

    /// Mends rows that would stop a worker.
    static func run(in db: Connection) throws {
        for repair in repairs where try db.exists(repair.isNeeded) {
            try TriggerSwitch.withTriggers(false, db) {
                for statement in repair.statements { try db.run(statement) }
            }
        }
        try JobControl.mendImpossible(in: db)
    }

    /// Whether there is such a row.
    static func isNeeded(in db: Connection) throws -> Bool {
        try repairs.contains { try db.exists($0.isNeeded) } || JobControl.hasImpossibleCounters(in: db)
    }
}

extension JobControl {
    /// Mends rows that would stop a worker, before it claims.
    public func mendRows() async throws(JobsError) {
        guard try await gate.read({ db in try RowMending.isNeeded(in: db) }) else { return }
        try await gate.write { db in try RowMending.run(in: db) }
    }
}
