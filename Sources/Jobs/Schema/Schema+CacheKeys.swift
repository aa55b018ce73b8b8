/// Migration 12: cache keys that a rule has made of a URL outlive the jobs that said so.
///
/// - `key_rules` says by which rule a key was made, for jobs that were removed: another URL that the same rule makes the same
///   key of is the same picture.
/// - `pin_urls` says for which URL a key is pinned: several URLs may have the same key, and one URL several.
extension Schema {
    static let cacheKeys = """
        CREATE TABLE key_rules (
            rule TEXT NOT NULL,
            key TEXT NOT NULL,
            PRIMARY KEY (rule, key)
        ) WITHOUT ROWID;
        CREATE INDEX key_rules_by_key ON key_rules (key);
        CREATE TABLE pin_urls (
            url TEXT NOT NULL,
            key TEXT NOT NULL,
            PRIMARY KEY (url, key)
        ) WITHOUT ROWID;
        CREATE INDEX pin_urls_by_key ON pin_urls (key);
        """
}
