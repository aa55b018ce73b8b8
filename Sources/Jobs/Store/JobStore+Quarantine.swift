internal import GRDB

extension JobStore {
    /// Of what is in quarantine, what has been there for long enough, by the cache's clock. That counts from when it was first
    /// seen there: the files' own times are those of a clock that may have been set.
    ///
    /// - Parameters:
    ///   - names: everything that is in quarantine now.
    ///   - age: in milliseconds.
    public func expired(inQuarantine names: [String], after age: Int64) async throws(JobsError) -> [String] {
        let reading = reading
        let (time, known) = try await read { db in
            let rows = try Row.fetchAll(db, sql: "SELECT name, seen_at FROM quarantined")
            return (
                try Self.cacheTime(reading, in: db),
                Dictionary(uniqueKeysWithValues: rows.map { ($0["name"] as String, $0["seen_at"] as Int64) })
            )
        }
        let new = names.filter { known[$0] == nil }
        let gone = Set(known.keys).subtracting(names)
        if !new.isEmpty || !gone.isEmpty {
            try await write { db in
                for name in new {
                    try db.execute(sql: "INSERT OR IGNORE INTO quarantined VALUES (?, ?)", arguments: [name, time])
                }
                for name in gone { try db.execute(sql: "DELETE FROM quarantined WHERE name = ?", arguments: [name]) }
            }
        }
        return names.filter { (known[$0] ?? time) <= time - age }
    }
}
