internal import Core

extension JobQueue {
    /// The fewest deaths among queued items with two deaths or more: only ``claimSuspects`` claims such items.
    ///
    /// - Returns: nil if no open job has such an item.
    public func leastSuspicion() async throws(JobsError) -> Int? {
        try await gate.read { db in try Self.leastSuspicion(in: db) }
    }

    private static func leastSuspicion(in db: Connection) throws -> Int? {
        return try db.int(
            """
            SELECT deaths FROM items WHERE state = 'queued' AND deaths > 1
                AND EXISTS (SELECT 1 FROM jobs WHERE jobs.id = items.job AND jobs.state IN ('queued', 'running'))
                    AND \(Schema.nothingIsSuspended)
                ORDER BY deaths LIMIT 1
            """)
    }

    /// Claims items with two deaths or more: as many as may be in flight together, and no other items.
    ///
    /// - Parameter deaths: the number of deaths, from ``leastSuspicion()``.
    public func claimSuspects(
        deaths: Int, worker: Int64, order: ExecutionOrder = .fifo,
    ) async throws(JobsError) -> Claim {
        let reading = gate.reading
        return try await writeSparingOthers { [leaseDuration = gate.leaseDuration] db, refusals in
            let rows = try db.rows(
                """
                SELECT job, id FROM items INDEXED BY items_suspect
                    WHERE state = 'queued' AND deaths > 1 AND deaths = ?
                    AND EXISTS (SELECT 1 FROM jobs WHERE jobs.id = items.job AND jobs.state IN ('queued', 'running'))
                    AND \(Schema.nothingIsSuspended)
                    ORDER BY id LIMIT ?
                """, [deaths, Suspicion.window(deaths: deaths)])
            guard !rows.isEmpty else { return Claim(items: [], jobs: [:]) }
            var ids: [JobID: [Int64]] = [:]
            for row in rows { ids[row["job"], default: []].append(row["id"]) }
            let now = try reading.moment(in: db)
            let lease = try Self.newLease(
                of: worker, now: now, lasts: leaseDuration, isAlone: deaths >= Suspicion.alone, in: db)
            var taking = try ClaimTransaction(
                lease: lease, others: Self.keysOfOthers(than: worker, in: db), now: now, caution: .none,
                refusals: refusals, in: db)
            var used: [JobID: JobDefinition] = [:]
            for (job, items) in ids.sorted(by: { $0.key < $1.key }) {
                guard let definition = try Self.definition(of: job, order: order, in: db) else { continue }
                used[job] = definition
                try taking.take(items, of: definition, in: db)
            }
            return try taking.claim(used, in: db)
        }.result
    }

    /// Queues the active items of a dead worker's lease again, each with one more death, and ends guilty ones.
    ///
    /// - Returns: the number of items that were queued or ended.
    static func takeBack(
        ofDeadWorker lease: (id: Int64, isAlone: Bool), now: Moment, _ guilty: inout [JobID], _ refusals: ItemRefusals,
        in db: Connection,
    ) throws -> Int {
        var count = 0
        if lease.isAlone {
            let rows = try db.rows(
                "SELECT id, job, \(ItemSchema.askedURL("items")) AS url FROM items WHERE state = 'active' AND lease = ? AND deaths >= ?",
                [lease.id, Suspicion.guilty - 1])
            for row in rows {
                let item: Int64 = row["id"]
                if let failure = refusals.failures[item] {
                    try fail(refused: item, failure, now: now.wall, in: db)
                } else {
                    try change(item, to: .failed, in: db) { try end(guilty: item, url: row["url"], now: now, in: db) }
                }
            }
            guilty += rows.map { $0["job"] }
            count += rows.count
        }
        // Deaths beside other items do not prove the guilt of a single item.
        let most = lease.isAlone ? Suspicion.guilty : Suspicion.alone
        return try count
            + queueAgain(
                "state = 'active' AND lease = ?", [lease.id], deaths: "min(max(deaths, 0) + 1, \(most))", refusals,
                now: now.wall, in: db)
    }

    private static func end(
        guilty item: Int64, url: String, now: Moment, in db: Connection,
    ) throws {
        let failure = FailureClass.workerCrash
        let message =
            "Three workers died while processing only this URL. Inspect its bytes, and report this."
        try db.run(
            """
            UPDATE items SET state = 'failed', lease = NULL, run_at = NULL, attempts = \(ItemSchema.attempts) + 1, class = ?, http_status = NULL,
                message = ?, deaths = ?, finished_at = ? WHERE id = ?
            """, [failure.rawValue, message, Suspicion.guilty, now.wall.milliseconds, item])
        let options = try db.text("SELECT options FROM jobs WHERE id = (SELECT job FROM items WHERE id = ?)", [item])
        let listing = Blacklist.Listing(
            key: key(of: url, by: keyRule(options)), host: URLText.host(url), failure: Failure(failure, message),
            until: now.steady + FailureClass.day)
        try Blacklist.add([listing], now: now.wall, in: RowStatements(db))
    }
}
