internal import GRDB

extension JobStore {
    /// What came of queueing again what was lost.
    public struct Repairs: Sendable {
        public var jobs: [JobID] = []
        /// URLs whose jobs are no longer known. They are not asked about again.
        public var unknown = 0
    }

    /// URLs that are looked up, and queued, at once.
    private static let repairsAtOnce = 10_000

    /// Queues what was lost, in one job for each way in which it was wanted.
    public func repairLostFiles() async throws(JobsError) -> Repairs {
        var repairs = Repairs()
        while true {
            let keys = try await read { db in
                Set(try Self.lostFiles(limit: Self.repairsAtOnce, in: db).map(\.key))
            }
            guard !keys.isEmpty else { return repairs }
            let wishes = try await read { db in try Wishes(for: keys, in: db) }
            for (wish, urls) in wishes.found {
                if let job = try await enqueue(wish, urls) {
                    repairs.jobs.append(job)
                }
            }
            let unknown = keys.subtracting(wishes.found.values.flatMap { $0.map(\.key) })
            repairs.unknown += unknown.count
            try await write { db in
                for key in unknown { try db.execute(sql: "DELETE FROM lost_files WHERE key = ?", arguments: [key]) }
            }
        }
    }

    /// In one transaction, so that nothing is queued twice, or never.
    private func enqueue(
        _ wish: Wish, _ urls: [(key: String, url: String)],
    ) async throws(JobsError) -> JobID? {
        try await write { db in
            let job = try wish.job(urls.map(\.url).sorted())
            guard let id = try Self.insert(job, try Self.texts(of: job), in: db) else { return nil }
            let statement = try db.cachedStatement(sql: "UPDATE lost_files SET job = ? WHERE key = ?")
            for url in urls { try statement.execute(arguments: [id, url.key]) }
            return id
        }
    }
}

/// How a job wanted a URL.
private struct Wish: Hashable {
    let variants: String?
    let options: String?
    let headers: String?

    init(_ row: Row) {
        variants = row["variants"]
        options = row["options"]
        headers = row["headers"]
    }

    func job(_ urls: [String]) throws -> NewJob {
        let words = (options ?? "").split { $0 == "," || $0.isWhitespace }.filter { $0 != "from-cache-only" }
        return NewJob(
            name: "repair", urls: urls, variants: variants,
            options: words.isEmpty ? nil : words.joined(separator: ","),
            headers: try headers.map(JobStore.headers) ?? [:])
    }
}

/// For each cache key the last job that got it, whatever it called the URL.
private struct Wishes {
    private(set) var found: [Wish: [(key: String, url: String)]] = [:]

    init(for keys: Set<String>, in db: Database) throws {
        var left = keys
        for key in keys {
            guard let row = try Self.row(of: key, in: db) else { continue }
            add(row, key)
            left.remove(key)
        }
        if !left.isEmpty { try search(for: left, in: db) }
    }

    private mutating func add(_ row: Row, _ key: String) {
        found[Wish(row), default: []].append((key, row["url"]))
    }

    private static let columns = "items.url, items.source, jobs.variants, jobs.options, jobs.headers"

    /// By the URL itself, or with a fragment, which no key has.
    private static func row(of key: String, in db: Database) throws -> Row? {
        let sql = """
            SELECT \(columns) FROM items JOIN jobs ON jobs.id = items.job
            WHERE items.state = 'done' AND items.url %@ ORDER BY items.id DESC LIMIT 20
            """
        let exact = try db.cachedStatement(sql: sql.replacing("%@", with: "= ?"))
        let open = try db.cachedStatement(sql: sql.replacing("%@", with: ">= ? AND items.url < ?"))
        // '$' comes after '#'.
        let rows = try Row.fetchAll(exact, arguments: [key]) + Row.fetchAll(open, arguments: [key + "#", key + "$"])
        return rows.first { row in
            guard let rule = rule(of: row) else { return true }
            return Self.key(of: row, by: rule) == key
        }
    }

    /// Among all that has ended, for URLs that a rule has made keys of, or a delegate; the latter by what came of them.
    private mutating func search(for keys: Set<String>, in db: Database) throws {
        var byKey: [String: Row] = [:]
        var bySource: [String: Row] = [:]
        var sources: [String: String] = [:]
        let source = try db.cachedStatement(sql: "SELECT hash FROM sources WHERE key = ?")
        for key in keys {
            if let hash = try String.fetchOne(source, arguments: [key]) { sources[key] = hash }
        }
        let wanted = Set(sources.values)
        var rules: [String: CacheKeyRule?] = [:]
        let rows = try Row.fetchCursor(
            db,
            sql: """
                SELECT \(Self.columns) FROM items JOIN jobs ON jobs.id = items.job
                WHERE items.state = 'done' ORDER BY items.id
                """)
        while let row = try rows.next() {
            let options: String = row["options"] ?? ""
            let rule = rules[options] ?? Self.rule(of: row)
            rules[options] = .some(rule)
            if let rule, let key = Self.key(of: row, by: rule), keys.contains(key) { byKey[key] = row.copy() }
            if let hash: String = row["source"], wanted.contains(hash) { bySource[hash] = row.copy() }
        }
        for key in keys {
            if let row = byKey[key] ?? sources[key].flatMap({ bySource[$0] }) { add(row, key) }
        }
    }

    private static func key(of row: Row, by rule: CacheKeyRule) -> String? {
        // A pattern that takes too long has made no key.
        try? rule.key(of: row["url"])
    }

    private static func rule(of row: Row) -> CacheKeyRule? {
        // Options that can't be read have made no key.
        (try? JobSettings(parsing: row["options"]))?.cacheKey
    }
}
