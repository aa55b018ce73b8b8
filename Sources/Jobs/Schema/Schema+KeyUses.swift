/// Migration 6: when a URL was last asked for. A file that many URLs share stays in use for ever, and would keep the names of
/// all of them.
extension Schema {
    static let keyUses = """
        ALTER TABLE sources ADD COLUMN used_at INTEGER NOT NULL DEFAULT 0;
        -- Nobody knows, so it begins to count now.
        UPDATE sources SET used_at = \(now);
        CREATE INDEX sources_by_use ON sources (used_at);
        """
}
