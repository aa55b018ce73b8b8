/// Migration 11: what was wanted and turned out missing or damaged, until it is there again.
///
/// Whoever finds such a file forgets it at once, so that nobody is handed it; without this nobody would know any more that
/// it has to be fetched again.
extension Schema {
    static let lostFiles = """
        CREATE TABLE lost_files (
            key TEXT NOT NULL,
            -- The variant's name; empty for the source.
            variant TEXT NOT NULL,
            blob TEXT NOT NULL,
            found_at INTEGER NOT NULL,
            -- The job that it was queued again in.
            job INTEGER,
            PRIMARY KEY (key, variant)
        ) WITHOUT ROWID;
        """
}
