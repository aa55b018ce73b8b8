internal import GRDB

extension JobStore {
    /// What came of queueing again what was lost.
    public struct Repairs: Sendable {
        public var jobs: [JobID] = []
        /// URLs of which something was lost that no job is known to have wanted: theirs were removed. It is not asked about
        /// again.
        public var unknown = 0
    }

    /// Files that are looked up, and queued, at once.
    private static let repairsAtOnce = 10_000

    /// Queues what was lost, in one job for each way in which it was wanted. What is on the blacklist stays where it is: its
    /// origin would have to be asked for what it doesn't have.
    public func repairLostFiles() async throws(JobsError) -> Repairs {
        var repairs = Repairs()
        let reading = reading
        while true {
            let lost = try await read { db in
                let now = try Self.cacheTime(reading, in: db)
                return try Self.lostFiles(unlistedAt: now, limit: Self.repairsAtOnce, in: db)
            }
            guard !lost.isEmpty else { return repairs }
            let wishes = try await read { db in try Wishes(for: lost, in: db) }
            for (wish, files) in wishes.found {
                if let job = try await enqueue(wish, files) { repairs.jobs.append(job) }
            }
            repairs.unknown += try await write { db in
                let unknown = try wishes.left.filter { try Self.isNobodys($0, in: db) }
                for file in unknown {
                    try db.execute(
                        sql: "DELETE FROM lost_files WHERE key = ? AND variant = ?",
                        arguments: [file.key, file.variant])
                }
                return Set(unknown.map(\.key)).count
            }
        }
    }

    /// In one transaction, so that nothing is queued twice, or never: another repair may have been faster.
    private func enqueue(
        _ wish: Wish, _ files: [(file: LostFile, url: String)],
    ) async throws(JobsError) -> JobID? {
        try await write { db in
            let open = try files.filter { try Self.isNobodys($0.file, in: db) }
            guard !open.isEmpty else { return nil }
            let job = try wish.job(Set(open.map(\.url)).sorted())
            guard let id = try Self.insert(job, try Self.texts(of: job), in: db) else { return nil }
            let statement = try db.cachedStatement(sql: "UPDATE lost_files SET job = ? WHERE key = ? AND variant = ?")
            for one in open { try statement.execute(arguments: [id, one.file.key, one.file.variant]) }
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

/// For each lost file the last job that got it, whatever it called the URL.
private struct Wishes {
    private(set) var found: [Wish: [(file: LostFile, url: String)]] = [:]
    /// Those that no job is known to have got.
    private(set) var left: [LostFile] = []

    init(for files: [LostFile], in db: Database) throws {
        var others: [LostFile] = []
        for file in files {
            guard let row = try Self.row(of: file, in: db) else {
                others.append(file)
                continue
            }
            add(row, file)
        }
        if !others.isEmpty { try search(for: others, in: db) }
    }

    private mutating func add(_ row: Row, _ file: LostFile) {
        found[Wish(row), default: []].append((file, row["url"]))
    }

    private static let columns = "items.id, items.url, items.source, jobs.variants, jobs.options, jobs.headers"

    /// By the URL itself, or with a fragment, which no key has.
    private static func row(of file: LostFile, in db: Database) throws -> Row? {
        let sql = """
            SELECT \(columns) FROM items JOIN jobs ON jobs.id = items.job
            WHERE items.state = 'done' AND items.url %@
                AND EXISTS (SELECT 1 FROM renditions WHERE item = items.id AND name = ?)
            ORDER BY items.id DESC LIMIT 20
            """
        let exact = try db.cachedStatement(sql: sql.replacing("%@", with: "= ?"))
        let open = try db.cachedStatement(sql: sql.replacing("%@", with: ">= ? AND items.url < ?"))
        let key = file.key
        // '$' comes after '#'.
        let rows =
            try Row.fetchAll(exact, arguments: [key, file.rendition])
            + Row.fetchAll(open, arguments: [key + "#", key + "$", file.rendition])
        return rows.first { row in
            guard let rule = rule(of: row) else { return true }
            return Self.key(of: row, by: rule) == key
        }
    }

    /// Among all that has ended, for URLs that a rule has made keys of, or a delegate; the latter by what came of them.
    private mutating func search(for files: [LostFile], in db: Database) throws {
        let byKey = Dictionary(grouping: files, by: \.key)
        var bySource: [String: [LostFile]] = [:]
        let source = try db.cachedStatement(sql: "SELECT hash FROM sources WHERE key = ?")
        for (key, files) in byKey {
            if let hash = try String.fetchOne(source, arguments: [key]) { bySource[hash, default: []] += files }
        }
        var latest: [LostFile: Row] = [:]
        var latestOfBytes: [LostFile: Row] = [:]
        var rules: [String: CacheKeyRule?] = [:]
        let names = try db.cachedStatement(sql: "SELECT name FROM renditions WHERE item = ?")
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
            let keyed = rule.flatMap { Self.key(of: row, by: $0) }.flatMap { byKey[$0] } ?? []
            let same = (row["source"] as String?).flatMap { bySource[$0] } ?? []
            if keyed.isEmpty, same.isEmpty { continue }
            let had = Set(try String.fetchAll(names, arguments: [row["id"] as Int64]))
            for file in keyed where had.contains(file.rendition) { latest[file] = row.copy() }
            for file in same where had.contains(file.rendition) { latestOfBytes[file] = row.copy() }
        }
        for file in files {
            if let row = latest[file] ?? latestOfBytes[file] { add(row, file) } else { left.append(file) }
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

extension LostFile {
    /// What a job's result calls it.
    fileprivate var rendition: String { variant.isEmpty ? "original" : variant }
}
