/// Migration 13: since when a file is in quarantine, by the clock that doesn't jump. Its own times are the machine's.
extension Schema {
    static let quarantine = """
        CREATE TABLE quarantined (
            name TEXT PRIMARY KEY,
            seen_at INTEGER NOT NULL
        ) WITHOUT ROWID;
        """
}
