internal import Core

/// Queues delayed items whose time has come.
extension JobQueue {
    /// Queues delayed items that are due, at most `limit`. An item also counts as due if its time is further away than
    /// the longest delay: the clock was set back.
    ///
    /// - Returns: the number of queued items.
    public func promoteDue(limit: Int = 1_000) async throws(JobsError) -> Int {
        let reading = gate.reading
        let (now, isDue) = try await gate.read { db in
            let now = try reading.time(in: db)
            return (
                now,
                try db.flag(
                    """
                    SELECT EXISTS (SELECT 1 FROM items WHERE state = 'delayed' AND run_at <= ?)
                        OR EXISTS (SELECT 1 FROM items WHERE state = 'delayed' AND run_at > ?)
                        OR EXISTS (SELECT 1 FROM items WHERE state = 'delayed' AND run_at IS NULL)
                    """, [now.milliseconds, (now + HostMemory.longestDelay).milliseconds]) ?? false
            )
        }
        guard isDue else { return 0 }
        return try await writeSparingOthers { db, refusals in
            // The last has no time, which a shell can remove with the table's checks off; `coalesce` only uses the parameter.
            let conditions = [
                ("run_at <= ?1", now), ("run_at > ?1", now + HostMemory.longestDelay),
                ("(run_at IS NULL AND coalesce(run_at, ?1) = ?1)", now),
            ]
            return try conditions.reduce(0) { count, due in
                try count
                    + Self.queueAgain(
                        "state = 'delayed' AND \(due.0) ORDER BY run_at LIMIT ?2", [due.1.milliseconds, limit],
                        refusals, now: reading.wall, in: db)
            }
        }.result
    }

    /// Queues early the items that wait for hosts that were given up.
    ///
    /// - Returns: the number of queued items.
    public func promote(givenUp hosts: [String], limit: Int = 1_000) async throws(JobsError) -> Int {
        let waiting = try await gate.read { db in
            return try hosts.filter {
                try db.exists("SELECT 1 FROM items WHERE state = 'delayed' AND waits_for = ?", [$0])
            }
        }
        guard !waiting.isEmpty else { return 0 }
        let now = gate.now()
        return try await writeSparingOthers { db, refusals in
            var count = 0
            for host in waiting where count < limit {
                count += try Self.queueAgain(
                    "state = 'delayed' AND waits_for = ? ORDER BY id LIMIT ?", [host, limit - count], refusals,
                    now: now, in: db)
            }
            return count
        }.result
    }

    /// Queues early the items that only waited for a free slot of a host, the oldest first.
    public func promote(waitingFor host: String, limit: Int) async throws(JobsError) -> Int {
        let now = gate.now()
        return try await writeSparingOthers { db, refusals in
            try Self.queueAgain(
                "state = 'delayed' AND waits_for = ? AND class IS NULL ORDER BY id LIMIT ?", [host, limit], refusals,
                now: now, in: db)
        }.result
    }

    /// The items among these that this lease no longer holds: they were cancelled, deleted or reclaimed. Their work can
    /// stop.
    public func lost(of items: [ClaimedItem]) async throws(JobsError) -> Set<Int64> {
        guard !items.isEmpty else { return [] }
        return try await gate.readOne { db in
            let select = try RowStatement(
                "SELECT 1 FROM items WHERE id = ? AND state = 'active' AND lease = ?", in: db)
            let isHeld = try select.firstEach(items, { ($0.id, $0.lease) }) { _ in true }
            return Set(zip(items, isHeld).filter { $1 == nil }.map(\.0.id))
        }
    }
}
