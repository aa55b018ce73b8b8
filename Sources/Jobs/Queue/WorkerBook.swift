public import Core
public import SystemPackage

/// A live worker, as reports show it.
public struct WorkerStatus: Hashable, Sendable, Encodable {
    public let id: Int64
    /// The name of its machine.
    public let host: String
    public let pid: Int32
    public let startedAt: WallTime
    /// Its last sign of life.
    public let seenAt: WallTime
    /// The number of items that it has claimed and not ended.
    public let inHand: Int64
    public let helpers: HelperCounts
}

/// The helper processes of a worker.
public struct HelperCounts: Hashable, Sendable, Encodable {
    /// Processes that run.
    public var running: Int64 = 0
    /// Those of them that have an image in hand.
    public var busy: Int64 = 0
    /// Images that wait for a helper.
    public var waiting: Int64 = 0
    /// Started since the worker began. A helper is replaced when it is worn out or has died.
    public var started: Int64 = 0
    /// Died, or killed because they took too long, since the worker began.
    public var died: Int64 = 0

    public init() {}

    init(row: Row) {
        running = row["helpers"]
        busy = row["helpers_busy"]
        waiting = row["helpers_waiting"]
        started = row["helpers_started"]
        died = row["helpers_died"]
    }
}

/// Registers workers, extends their leases, and reclaims the items of dead workers.
public struct WorkerBook: Sendable {
    let gate: DatabaseGate
    private var queue: JobQueue { JobQueue(gate: gate) }

    /// Registers a worker and marks it as alive as long as this process lives.
    ///
    /// - Parameter fetches: false for a program that only reserves space in the cache: workers leave it no share of
    ///   their hosts.
    public func register(host: String, pid: Int32, fetches: Bool = true) async throws(JobsError) -> Int64 {
        let draft = gate.sqlite.map { DatabaseFile.rebuildDraft(of: $0.file.name) }
        return try await gate.write { [gate, liveness = gate.liveness] db in
            let now = gate.now()
            // A rebuild holds the lock under which this transaction runs, so an existing draft was left by a killed
            // process.
            draft.map(DatabaseFile.removeRebuildDraft)
            let worker = try db.insert(
                "INSERT INTO workers (host, pid, started_at, seen_at) VALUES (?, ?, ?, ?) RETURNING id",
                [host, pid, now.milliseconds, fetches ? now.milliseconds : 0])
            try db.run("DELETE FROM host_failures WHERE last_at < ?", [(now - 7 * FailureClass.day).milliseconds])
            // Inside the transaction, so that no other program sees the row without the lock.
            try liveness.hold(worker: worker)
            return worker
        }
    }

    /// A descriptor for the helpers of a worker. As long as one of them has it open, space that the worker has reserved
    /// is not given to others, even if the worker is dead: a helper may still have a file open that has no name. The
    /// caller closes it.
    public func helperMark(of worker: Int64) throws(JobsError) -> FileDescriptor {
        try gate.liveness.helperMark(of: worker)
    }

    /// Records what the worker's helpers do, for reports.
    public func note(_ helpers: HelperCounts, of worker: Int64) async throws(JobsError) {
        try await gate.write(isDurable: false) { db in
            try db.run(
                """
                UPDATE workers SET helpers = ?, helpers_busy = ?, helpers_waiting = ?, helpers_started = ?, helpers_died = ?
                WHERE id = ?
                """, [helpers.running, helpers.busy, helpers.waiting, helpers.started, helpers.died, worker])
        }
    }

    /// Removes a worker, and queues its active items again.
    public func unregister(worker: Int64) async throws(JobsError) {
        let now = gate.now()
        _ = try await queue.writeSparingOthers { [liveness = gate.liveness] db, refusals in
            _ = try Self.takeBack(fromWorker: worker, refusals, now: now, in: db)
            liveness.letGo(worker: worker)
        }
    }

    /// Extends the worker's leases, and deletes leases without items and hosts whose waits are over. Registers the worker
    /// again if its row is gone: a shell can delete it, and other workers would share no limits with this one.
    public func heartbeat(worker: Int64, host: String, pid: Int32) async throws(JobsError) {
        try await gate.write { [gate, leaseDuration = gate.leaseDuration] db in
            // Read only now, since the transaction may have waited for another program.
            let reading = gate.reading
            let now = reading.wall
            try db.run(
                """
                INSERT INTO workers (id, host, pid, started_at, seen_at, sharing) VALUES (?1, ?2, ?3, ?4, ?4, 0)
                ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at
                """, [worker, host, pid, now.milliseconds])
            try db.run(
                """
                DELETE FROM leases WHERE worker = ? AND claimed_at NOT BETWEEN ? AND ? AND NOT EXISTS
                    (SELECT 1 FROM items WHERE state = 'active' AND lease = leases.id)
                """,
                // Leases from a clock that was ahead are deleted as well.
                [worker, (now - 1_000).milliseconds, (now + 1_000).milliseconds])
            let steady = try reading.time(in: db)
            try db.run(
                "DELETE FROM hosts WHERE not_before < ?1 AND coalesce(set_at, 0) < ?1",
                [(steady - HostBook.memoryDuration).milliseconds])
            try db.run(
                "UPDATE leases SET expires_at = ? WHERE worker = ?", [(steady + leaseDuration).milliseconds, worker])
        }
    }

    /// Reclaims the items of dead workers' leases, of expired leases (also those of live workers), and items without a
    /// lease. Their tries do not count.
    ///
    /// - Parameter onGuilty: called with the job of each item that ended because three workers died while it ran alone.
    /// - Returns: the number of items that were queued or ended.
    public func takeBackDeadLeases(
        myself: Int64?, onGuilty: @Sendable (JobID) -> Void = { _ in },
    ) async throws(JobsError) -> Int {
        let reading = gate.reading
        let (others, expired, stranded) = try await gate.read { db in
            let now = try reading.time(in: db)
            return (
                try db.integers("SELECT id FROM workers UNION SELECT worker FROM leases"),
                try db.integers(
                    "SELECT DISTINCT worker FROM leases WHERE expires_at < ? AND worker IS NOT ?",
                    [now.milliseconds, myself]),
                try Self.hasStranded(in: db)
            )
        }
        let living = try await gate.living(others)
        let dead = others.filter { $0 != myself && !living.contains($0) }
        guard !dead.isEmpty || !expired.isEmpty || stranded else { return 0 }
        let ((count, guilty), _) = try await queue.writeSparingOthers {
            [liveness = gate.liveness] db, refusals -> (Int, [JobID]) in
            let now = try reading.moment(in: db)
            // A job that breaks the table's checks would make this transaction fail for the items of all jobs.
            try JobControl.mendImpossible(in: db)
            var count = 0
            var guilty: [JobID] = []
            // Checked again under the write lock. Numbers of workers are never reused, so a dead worker's number cannot
            // belong to a new one.
            let living = dead.isEmpty ? [] : liveness.living(dead)
            for worker in dead where !living.contains(worker) {
                count += try Self.takeBack(fromDeadWorker: worker, now: now, &guilty, refusals, in: db)
            }
            for worker in expired {
                // Reports show each item once, and another worker may have it soon.
                for table in ["transfer_progress", "held_items"] {
                    try db.run(
                        """
                        DELETE FROM \(table) WHERE worker = ?1 AND item IN (SELECT items.id FROM leases CROSS JOIN items
                            ON items.lease = leases.id AND items.state = 'active'
                            WHERE leases.worker = ?1 AND leases.expires_at < ?2)
                        """, [worker, now.steady])
                }
                count += try Self.takeBack(
                    leases: "worker = ? AND expires_at < ?", [worker, now.steady], refusals, now.wall, db)
            }
            count += try JobQueue.queueAgain(Self.isStranded, [], refusals, now: now.wall, in: db)
            return (count, guilty)
        }
        guilty.forEach(onGuilty)
        return count
    }

    /// Active items whose lease a user has deleted or overwritten: no worker holds them, and they would stay active
    /// forever.
    private static let isStranded =
        "state = 'active' AND (typeof(lease) <> 'integer' OR lease NOT IN (SELECT id FROM leases))"

    private static func hasStranded(in db: Connection) throws -> Bool {
        return try db.exists("SELECT 1 FROM items WHERE \(isStranded)")
    }

    private static func takeBack(
        fromDeadWorker worker: Int64, now: Moment, _ guilty: inout [JobID], _ refusals: ItemRefusals, in db: Connection,
    ) throws -> Int {
        var count = 0
        let leases = try db.rows("SELECT id, is_alone FROM leases WHERE worker = ? ORDER BY id", [worker])
        for row in leases {
            count += try JobQueue.takeBack(
                ofDeadWorker: (row["id"], row["is_alone"]), now: now, &guilty, refusals, in: db)
        }
        try forget(worker: worker, in: db)
        return count
    }

    private static func takeBack(
        fromWorker worker: Int64, _ refusals: ItemRefusals, now: WallTime, in db: Connection,
    ) throws -> Int {
        let count = try takeBack(leases: "worker = ?", [worker], refusals, now, db)
        try forget(worker: worker, in: db)
        return count
    }

    /// Queues the items of leases again, and deletes the leases.
    private static func takeBack(
        leases condition: String, _ values: SQLValues, _ refusals: ItemRefusals, _ now: WallTime, _ db: Connection,
    ) throws -> Int {
        let leases = try db.integers("SELECT id FROM leases WHERE \(condition) ORDER BY id", values)
        return try leases.reduce(0) { count, lease in
            let queued = try JobQueue.queueAgain(
                "state = 'active' AND lease = ?", [lease], refusals, now: now, in: db)
            try db.run("DELETE FROM leases WHERE id = ?", [lease])
            return count + queued
        }
    }

    private static func forget(worker: Int64, in db: Connection) throws {
        for table in ["leases", "host_load", "transfer_progress"] {
            try db.run("DELETE FROM \(table) WHERE worker = ?", [worker])
        }
        try db.run("DELETE FROM workers WHERE id = ?", [worker])
    }

    /// Queues all active items of a worker that holds none: a shell may have moved them to its lease.
    ///
    /// - Parameter age: the minimum age of the lease in milliseconds, since the worker may have just claimed the items.
    public func release(notHeldBy worker: Int64, leasedFor age: Int64) async throws(JobsError) -> Int {
        let now = gate.now()
        let before = now - age
        let condition = """
            state = 'active' AND lease IN (SELECT id FROM leases WHERE worker = ? AND claimed_at < ?)
            """
        guard
            try await gate.read({ db in
                try db.exists("SELECT 1 FROM items WHERE \(condition)", [worker, before.milliseconds])
            })
        else { return 0 }
        return try await queue.writeSparingOthers { db, refusals in
            try JobQueue.queueAgain(condition, [worker, before.milliseconds], refusals, now: now, in: db)
        }.result
    }

    /// The workers that are alive, for reports.
    public func live() async throws(JobsError) -> [WorkerStatus] {
        let all = try await gate.read { db in
            try db.rows(
                """
                SELECT *, (
                    SELECT count(*) FROM leases CROSS JOIN items ON items.lease = leases.id AND items.state = 'active'
                    WHERE leases.worker = workers.id) AS in_hand
                FROM workers ORDER BY id
                """
            ).map {
                WorkerStatus(
                    id: $0["id"], host: $0["host"], pid: $0["pid"], startedAt: WallTime(milliseconds: $0["started_at"]),
                    seenAt: WallTime(milliseconds: $0["seen_at"]), inHand: $0["in_hand"], helpers: HelperCounts(row: $0)
                )
            }
        }
        let living = try await gate.living(all.map(\.id))
        return all.filter { living.contains($0.id) }
    }
}
