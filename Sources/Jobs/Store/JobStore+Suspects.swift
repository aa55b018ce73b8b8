internal import GRDB

/// Items that were active when a worker died, and how the one that kills workers is found among them.
///
/// Each such death raises an item's `deaths` by one, and the more deaths an item has seen, the fewer others are in flight with
/// it: 64, 16, 4, and then none. The guilty item is there at each death, so it runs alone after four; only deaths while it
/// runs alone count against it from then on.
public enum Suspicion {
    /// From so many deaths on an item runs alone.
    static let alone = 4
    /// With so many the item ends: three workers died while it ran alone.
    static let guilty = alone + 3

    /// Items in flight at most while one with so many deaths is among them.
    public static func window(deaths: Int) -> Int {
        deaths >= alone ? 1 : max(1, 256 >> (2 * min(max(deaths, 0), alone)))
    }

    /// How long a worker has to live before it claims an item with so many deaths, in milliseconds. Kills from outside come
    /// before that as often as after it, and so don't end an item that has only been there.
    public static func delay(deaths: Int) -> Int64 { deaths < 2 ? 0 : 1_000 * Int64(min(deaths, alone) - 1) }
}

/// How many items may be claimed beside those that were active when a worker died.
public struct Caution: Sendable {
    /// Items in flight.
    public let inFlight: Int
    /// Whether one of them was active when a worker died.
    public let hasSuspects: Bool
    /// Items in flight at most while one of them was.
    public let window: Int

    public init(inFlight: Int, hasSuspects: Bool, window: Int) {
        self.inFlight = inFlight
        self.hasSuspects = hasSuspects
        self.window = window
    }

    static let none = Caution(inFlight: 0, hasSuspects: false, window: .max)
}

extension JobStore {
    /// The fewest deaths among queued items that have seen two or more: such items are claimed by ``claimSuspects`` only.
    ///
    /// - Returns: nil where no open job has such an item.
    public func leastSuspicion() async throws(JobsError) -> Int? {
        try await read { db in try Self.leastSuspicion(in: db) }
    }

    private static func leastSuspicion(in db: Database) throws -> Int? {
        let statement = try db.cachedStatement(
            sql: """
                SELECT deaths FROM items WHERE state = 'queued' AND deaths > 1
                    AND EXISTS (SELECT 1 FROM jobs WHERE jobs.id = items.job AND jobs.state IN ('queued', 'running'))
                    ORDER BY deaths LIMIT 1
                """)
        return try Int.fetchOne(statement)
    }

    /// Claims items that have seen two deaths or more: as many as may be in flight together, and no others beside them.
    ///
    /// - Parameter deaths: how many they have seen, as ``leastSuspicion()`` says.
    public func claimSuspects(
        deaths: Int, worker: Int64, order: ExecutionOrder = .fifo,
    ) async throws(JobsError) -> Claim {
        let reading = reading
        return try await write { [leaseDuration] db in
            let steady = try Self.cacheTime(reading, in: db)
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT job, id FROM items INDEXED BY items_suspect
                        WHERE state = 'queued' AND deaths > 1 AND deaths = ?
                        AND EXISTS (SELECT 1 FROM jobs WHERE jobs.id = items.job AND jobs.state IN ('queued', 'running'))
                        ORDER BY id LIMIT ?
                    """, arguments: [deaths, Suspicion.window(deaths: deaths)])
            guard !rows.isEmpty else { return Claim(items: [], jobs: [:]) }
            var ids: [JobID: [Int64]] = [:]
            for row in rows { ids[row["job"], default: []].append(row["id"]) }
            let lease = try Self.newLease(
                of: worker, now: reading.wall, until: steady + leaseDuration, isAlone: deaths >= Suspicion.alone, in: db
            )
            var taking = try Taking(
                lease: lease, others: Self.keysOfOthers(than: worker, in: db), now: reading.wall, steady: steady,
                caution: .none, in: db)
            var used: [JobID: JobDefinition] = [:]
            for (job, items) in ids.sorted(by: { $0.key < $1.key }) {
                guard let definition = try Self.definition(of: job, order: order, in: db) else { continue }
                used[job] = definition
                try taking.take(items, of: definition, in: db)
            }
            return try taking.claim(used, in: db)
        }
    }

    /// Puts the active items of a dead worker's lease back, each with one death more, and ends those that are guilty.
    ///
    /// - Returns: how many went back or ended.
    static func takeBack(
        ofDeadWorker lease: (id: Int64, isAlone: Bool), now: (wall: Int64, steady: Int64), _ guilty: inout [JobID],
        in db: Database,
    ) throws -> Int {
        var count = 0
        if lease.isAlone {
            let rows = try Row.fetchAll(
                db, sql: "SELECT id, job, url FROM items WHERE state = 'active' AND lease = ? AND deaths >= ?",
                arguments: [lease.id, Suspicion.guilty - 1])
            for row in rows { try end(guilty: row["id"], url: row["url"], now: now, in: db) }
            guilty += rows.map { $0["job"] }
            count += rows.count
        }
        // Deaths beside other items don't add up to the guilt of a single one.
        let most = lease.isAlone ? Suspicion.guilty : Suspicion.alone
        let release = try db.cachedStatement(
            sql: """
                UPDATE items SET state = 'queued', lease = NULL, deaths = min(max(deaths, 0) + 1, ?)
                WHERE state = 'active' AND lease = ?
                """)
        try release.execute(arguments: [most, lease.id])
        return count + db.changesCount
    }

    private static func end(
        guilty item: Int64, url: String, now: (wall: Int64, steady: Int64), in db: Database,
    ) throws {
        let failure = FailureClass.workerCrash
        let message =
            "Three workers died while this was the only URL that they held. Its bytes, or this program, need a look."
        try db.execute(
            sql: """
                UPDATE items SET state = 'failed', lease = NULL, attempts = attempts + 1, class = ?, http_status = NULL,
                    message = ?, deaths = ?, finished_at = ? WHERE id = ?
                """,
            arguments: [failure.rawValue, message, Suspicion.guilty, now.wall, item])
        let options = try String.fetchOne(
            db, sql: "SELECT options FROM jobs WHERE id = (SELECT job FROM items WHERE id = ?)", arguments: [item])
        try blacklist(
            key: key(of: url, by: keyRule(options)), host: URLText.host(url), failure: FailureRecord(failure, message),
            until: now.steady + FailureClass.day, now: now.wall, in: db)
    }
}
