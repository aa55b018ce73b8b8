internal import GRDB

/// Which of a job's URLs are on the blacklist, by the key that the job's rule makes of them.
struct ListedKeys {
    private let rule: CacheKeyRule?
    private let now: Int64
    private let find: RowStatement
    private let remove: RowStatement

    init(of job: JobID, now: Int64, in db: Database) throws {
        let options = try String.fetchOne(db, sql: "SELECT options FROM jobs WHERE id = ?", arguments: [job])
        // Of a job whose options can't be read no item has ever been asked for.
        rule = options.flatMap { try? JobSettings(parsing: $0) }?.cacheKey
        self.now = now
        find = try RowStatement("SELECT EXISTS (SELECT 1 FROM blacklist_entries WHERE url = ? AND expires_at > ?)", in: db)
        remove = try RowStatement("DELETE FROM blacklist_entries WHERE url = ?", in: db)
    }

    /// - Parameter takesOff: whether it no longer is, afterwards.
    func has(_ url: String, takesOff: Bool) throws -> Bool {
        // A pattern that takes too long makes no key.
        let key = (try? rule?.key(of: url)) ?? URLText.cacheKey(url)
        guard try find.first(key, now, read: { $0.integer(0) }) == 1 else { return false }
        if takesOff { try remove.run(key) }
        return true
    }
}
