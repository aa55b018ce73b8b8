/// Removes ids at the end of their range. After such an id SQLite assigns no more, and reports a full disk.
enum UsedUpIDs {
    /// Tables whose rows with such ids are deleted: no worker has assigned these ids.
    private static let tables = ["workers", "leases", "event_log"]

    /// Removes such rows, and lets SQLite continue after the largest other id.
    static func mend(in db: Connection) throws {
        let wrong = "typeof(seq) <> 'integer' OR seq NOT BETWEEN 0 AND \(Schema.largestJobID)"
        guard try db.exists("SELECT 1 FROM sqlite_sequence WHERE \(wrong)") else { return }
        for table in tables { try db.run("DELETE FROM \(table) WHERE id > \(Schema.largestJobID)") }
        for table in tables + ["jobs"] {
            try db.run(
                """
                UPDATE sqlite_sequence SET seq = (SELECT coalesce(max(id), 0) FROM \(table))
                WHERE name = '\(table)' AND (\(wrong))
                """)
        }
    }
}
