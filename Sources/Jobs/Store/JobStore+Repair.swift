internal import GRDB

extension JobStore {
    /// What has to be done to have some blobs again: one job for each way in which their URLs were wanted.
    ///
    /// To be asked before the blobs are forgotten.
    ///
    /// - Returns: the jobs, and how many URLs' jobs are no longer known.
    public func repairs(ofBlobs hashes: [String]) async throws(JobsError) -> (jobs: [NewJob], unknown: Int) {
        try await read { db in
            var wanted: [Wish: Set<String>] = [:]
            var unknown = 0
            var seen: Set<String> = []
            let sources = try db.cachedStatement(sql: "SELECT key FROM sources WHERE hash = ? AND kept <> 0")
            let jobs = try db.cachedStatement(
                sql: """
                    SELECT jobs.variants, jobs.options, jobs.headers FROM items JOIN jobs ON jobs.id = items.job
                    WHERE items.url = ? AND items.state = 'done' ORDER BY items.id DESC LIMIT 1
                    """)
            for hash in hashes {
                let entries = try Self.entries(ofBlob: hash, limit: .max, in: db)
                let keys = entries.map(\.key) + (try String.fetchAll(sources, arguments: [hash]))
                for key in keys where seen.insert(key).inserted {
                    if let row = try Row.fetchOne(jobs, arguments: [key]) {
                        let wish = Wish(variants: row["variants"], options: row["options"], headers: row["headers"])
                        wanted[wish, default: []].insert(key)
                    } else {
                        unknown += 1
                    }
                }
            }
            return (try wanted.map { try $0.key.job($0.value.sorted()) }, unknown)
        }
    }

    private struct Wish: Hashable {
        let variants: String?
        let options: String?
        let headers: String?

        func job(_ urls: [String]) throws -> NewJob {
            let words = (options ?? "").split { $0 == "," || $0.isWhitespace }.filter { $0 != "from-cache-only" }
            return NewJob(
                name: "repair", urls: urls, variants: variants,
                options: words.isEmpty ? nil : words.joined(separator: ","),
                headers: try headers.map(JobStore.headers) ?? [:])
        }
    }
}
