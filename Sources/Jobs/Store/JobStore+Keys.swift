internal import GRDB

/// The cache keys of a URL: a job's rule may have made another of it than its own.
extension JobStore {
    /// What a URL may be known by: its own key first, then those that the rules of jobs make of it that ended with it, and those
    /// that the rule of a removed job has made of it, or of a URL that is the same by that rule.
    /// Keys that delegates have made aren't among them.
    ///
    /// - Parameter everyState: also of jobs where it waits or failed; such items are found by going through all of them.
    public func keys(ofURL url: String, everyState: Bool = false) async throws(JobsError) -> [String] {
        try await read { db in try Self.keys(ofURL: url, everyState: everyState, in: db) }
    }

    static func keys(ofURL url: String, everyState: Bool = false, in db: Database) throws -> [String] {
        var keys = [URLText.cacheKey(url)]
        let rules = try String.fetchAll(
            db,
            sql: """
                SELECT DISTINCT jobs.options FROM items CROSS JOIN jobs ON jobs.id = items.job
                WHERE items.url = ? \(everyState ? "" : "AND items.state = 'done'") AND jobs.options LIKE '%cache-key=%'
                LIMIT 100
                """,
            arguments: [url])
        for text in rules {
            // Options that can't be read, and patterns that take too long, have made no key.
            guard let key = try? JobSettings(parsing: text).cacheKey?.key(of: url), !keys.contains(key) else {
                continue
            }
            keys.append(key)
        }
        for text in try rememberedRules(in: db) {
            // The same.
            guard let key = try? CacheKeyRule(text).key(of: url), !keys.contains(key) else { continue }
            let isKnown = try db.cachedStatement(
                sql: "SELECT EXISTS (SELECT 1 FROM key_rules WHERE rule = ? AND key = ?)")
            if try Bool.fetchOne(isKnown, arguments: [text, key]) ?? false { keys.append(key) }
        }
        return keys
    }

    /// The rules of removed jobs, each once: a look for each, however many keys they have made.
    private static func rememberedRules(in db: Database) throws -> [String] {
        let next = try db.cachedStatement(sql: "SELECT min(rule) FROM key_rules WHERE rule > ?")
        var rules: [String] = []
        while rules.count < 100, let rule = try String.fetchOne(next, arguments: [rules.last ?? ""]) {
            rules.append(rule)
        }
        return rules
    }

    /// Keeps in mind by which rule a key was made, for as long as it is known: the job that said so is about to go.
    static func remember(_ rule: CacheKeyRule, of key: String, in db: Database) throws {
        try db.cachedStatement(
            sql: """
                INSERT OR IGNORE INTO key_rules (rule, key) SELECT ?1, ?2
                    WHERE EXISTS (SELECT 1 FROM sources WHERE key = ?2)
                """
        ).execute(arguments: [rule.text, key])
    }

    static func forgetRules(of key: String, in db: Database) throws {
        try db.cachedStatement(sql: "DELETE FROM key_rules WHERE key = ?").execute(arguments: [key])
    }
}
