extension Maintenance {
    /// The result of queueing lost files again.
    public struct Repairs: Equatable, Sendable {
        public var jobs: [JobID] = []
        /// URLs whose lost files no known job requested, since the jobs were removed. These lost files are forgotten.
        public var unknown = 0
    }

    /// Maximum files that are looked up and queued at once.
    private static let repairsAtOnce = 10_000

    /// Queues lost files, in one job for each combination of variants and options. Files with a URL on the blacklist
    /// stay lost, since their origin does not have them.
    public func repairLostFiles() async throws(JobsError) -> Repairs {
        var repairs = Repairs()
        let reading = gate.reading
        while true {
            let lost = try await gate.read { db in
                let now = try reading.time(in: db)
                return try LostFiles.list(unlistedAt: now, limit: Self.repairsAtOnce, in: db)
            }
            guard !lost.isEmpty else { return repairs }
            let requests = try await gate.read { db in try LostFileRequests(for: lost, in: db) }
            let before = repairs
            for (request, files) in requests.found {
                if let job = try await enqueue(request, files) { repairs.jobs.append(job) }
            }
            repairs.unknown += try await gate.write { db in
                let unknown = try requests.left.filter { try LostFiles.isUnqueued($0, in: db) }
                for file in unknown {
                    try db.run("DELETE FROM lost_files WHERE key = ? AND variant = ?", [file.key, file.variant])
                }
                return Set(unknown.map(\.key)).count
            }
            // Another program has queued the files, or their keys are not text, so that the statements don't find them.
            guard repairs != before else { return repairs }
        }
    }

    /// In one transaction, so that each file is queued exactly once, even if another repair runs.
    private func enqueue(
        _ request: LostFileRequest, _ files: [(file: LostFile, url: String)],
    ) async throws(JobsError) -> JobID? {
        try await gate.write { db in
            let open = try files.filter { try LostFiles.isUnqueued($0.file, in: db) }
            guard !open.isEmpty else { return nil }
            let job = try request.job(Set(open.map(\.url)).sorted())
            guard let id = try JobQueue.insert(job, try JobQueue.texts(of: job), in: db) else { return nil }
            for one in open {
                try db.run(
                    "UPDATE lost_files SET job = ? WHERE key = ? AND variant = ?", [id, one.file.key, one.file.variant])
            }
            return id
        }
    }
}

/// The variants, options and headers with which a job requested a URL.
private struct LostFileRequest: Hashable {
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
            headers: try headers.map(JobQueue.headers) ?? [:])
    }
}

/// For each lost file, the last job that produced it, possibly for another URL with the same key.
private struct LostFileRequests {
    private(set) var found: [LostFileRequest: [(file: LostFile, url: String)]] = [:]
    /// Files that no known job produced.
    private(set) var left: [LostFile] = []

    init(for files: [LostFile], in db: Connection) throws {
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
        found[LostFileRequest(row), default: []].append((file, row["url"]))
    }

    private static let columns = "items.id, items.url, items.source, jobs.variants, jobs.options, jobs.headers"

    /// Finds an item by the URL itself, or by the URL with a fragment, which keys do not contain.
    private static func row(of file: LostFile, in db: Connection) throws -> Row? {
        let sql = """
            SELECT \(columns) FROM items JOIN jobs ON jobs.id = items.job
            WHERE items.state = 'done' AND items.url %@
                AND EXISTS (SELECT 1 FROM renditions WHERE item = items.id AND name = ?)
            ORDER BY items.id DESC LIMIT 20
            """
        let key = file.key
        // '$' follows '#' in ASCII.
        let rows =
            try db.rows(sql.replacing("%@", with: "= ?"), [key, file.rendition])
            + db.rows(sql.replacing("%@", with: ">= ? AND items.url < ?"), [key + "#", key + "$", file.rendition])
        return rows.first { row in
            guard let rule = rule(of: row) else { return true }
            return Self.key(of: row, by: rule) == key
        }
    }

    /// Searches all finished items, for URLs whose key a rule or a delegate made; keys from delegates are found by the
    /// bytes of their source.
    private mutating func search(for files: [LostFile], in db: Connection) throws {
        let byKey = Dictionary(grouping: files, by: \.key)
        var bySource: [String: [LostFile]] = [:]
        for (key, files) in byKey {
            if let hash = try db.text("SELECT hash FROM sources WHERE key = ?", [key]) {
                bySource[hash, default: []] += files
            }
        }
        var latest: [LostFile: Row] = [:]
        var latestOfBytes: [LostFile: Row] = [:]
        var rules: [String: CacheKeyRule?] = [:]
        try db.forEachRow(
            """
            SELECT \(Self.columns) FROM items JOIN jobs ON jobs.id = items.job
            WHERE items.state = 'done' ORDER BY items.id
            """
        ) { row in
            let options: String = row["options"] ?? ""
            let rule = rules[options] ?? Self.rule(of: row)
            rules[options] = .some(rule)
            let keyed = rule.flatMap { Self.key(of: row, by: $0) }.flatMap { byKey[$0] } ?? []
            let same = (row["source"] as String?).flatMap { bySource[$0] } ?? []
            if keyed.isEmpty, same.isEmpty { return }
            let had = Set(try db.texts("SELECT name FROM renditions WHERE item = ?", [row["id"] as Int64]))
            for file in keyed where had.contains(file.rendition) { latest[file] = row }
            for file in same where had.contains(file.rendition) { latestOfBytes[file] = row }
        }
        for file in files {
            if let row = latest[file] ?? latestOfBytes[file] { add(row, file) } else { left.append(file) }
        }
    }

    private static func key(of row: Row, by rule: CacheKeyRule) -> String? {
        // Best effort: a pattern that takes too long makes no key.
        try? rule.key(of: row["url"])
    }

    private static func rule(of row: Row) -> CacheKeyRule? {
        // Best effort: unreadable options make no key.
        (try? JobSettings(parsing: row["options"]))?.cacheKey
    }
}

extension LostFile {
    /// The variant's name in a job's results.
    fileprivate var rendition: String { variant.isEmpty ? "original" : variant }
}
