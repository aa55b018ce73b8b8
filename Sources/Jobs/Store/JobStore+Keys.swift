internal import GRDB

/// The cache keys of a URL: a job's rule may have made another of it than its own.
extension JobStore {
    /// What a URL may be known by: its own key first, then those that the rules of jobs make of it that ended with it.
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
        return keys
    }
}
