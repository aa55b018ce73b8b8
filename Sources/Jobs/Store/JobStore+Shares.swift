internal import GRDB

/// What a worker has in hand for a host, and what it keeps to there.
public struct HostDemand: Hashable, Sendable {
    public let load: HostLoad
    /// Requests at once that all workers may have together.
    public let limit: Int
    /// What the worker keeps to since its last look; it has no more than that and what was under way before.
    public let share: Int?

    /// - Parameter load: of the host `*` for all hosts together.
    public init(load: HostLoad, limit: Int, share: Int?) {
        self.load = load
        self.limit = max(0, limit)
        self.share = share
    }
}

/// What a worker may use until it asks again.
public struct WorkerShares: Hashable, Sendable {
    public struct Share: Hashable, Sendable {
        /// Requests at once.
        public var places: Int
        /// Workers that want some, this one included.
        public var parts: Int
    }

    /// By host, with `*` for all hosts together; nil for a worker that is alone and has everything.
    public var hosts: [String: Share]?
}

extension JobStore {
    /// A worker that hasn't been seen for so long, in milliseconds, is stopped or hangs: it isn't waited for, though it lives.
    private static let longestSilence: Int64 = 20_000
    /// For so long places stay where they are that are fewer than the workers who want them, in milliseconds.
    private static let turnDuration: Int64 = 10_000

    /// Writes down what a worker has in hand for hosts, and splits the places with the workers that live.
    ///
    /// Places are only ever taken where they are free: what a worker has written down is its own until it has written down
    /// less, and it begins to use less before it does. So together they never have more than there are, and what one that
    /// died had is free at the next look.
    ///
    /// - Parameter wasIdle: whether it had nothing in hand the last time; then nothing is written where there is nothing now.
    public func takeShares(
        _ demands: [HostDemand], worker: Int64, wasIdle: Bool,
    ) async throws(JobsError) -> WorkerShares {
        let reading = reading
        if demands.isEmpty, wasIdle, let shares = try await idleShares(worker, now: reading.wall) { return shares }
        let clock = now
        // A power cut ends the worker, and with it what it has in hand.
        return try await write(isDurable: false) { [lockFile] db in
            // Read only now: another program's transaction may have been waited for.
            let now = clock()
            let others = try Self.others(than: worker, now: now, in: db) { lockFile.isAlive(worker: $0) }
            let isAlone = others.isEmpty
            try db.cachedStatement(sql: "UPDATE workers SET sharing = ?, seen_at = ? WHERE id = ?")
                .execute(arguments: [!isAlone, now, worker])
            guard !isAlone else {
                try Self.write(demands.map { ($0.load, nil) }, of: worker, in: db)
                return WorkerShares(hosts: nil)
            }
            let turn = Int(clamping: try Self.cacheTime(reading, in: db) / Self.turnDuration)
            let taken = try Self.taken(by: others.keys, in: db)
            // One that was alone a moment ago still has everything, until it has seen us.
            let mayTake = !others.values.contains(false)
            var shares: [String: WorkerShares.Share] = [:]
            var rows: [(HostLoad, Int?)] = []
            for demand in demands {
                let host = taken[demand.load.host] ?? Taken()
                let held = max(demand.share ?? demand.load.running, demand.load.running)
                let fair = host.fair(for: worker, demand, turn: turn)
                // Less is kept to at once and written down the next time; more is written down first.
                let free = max(0, demand.limit - host.places)
                let written = mayTake ? max(held, min(fair, free)) : held
                rows.append((demand.load, written))
                shares[demand.load.host] = WorkerShares.Share(
                    places: mayTake ? min(fair, written) : 0, parts: host.demands.count + 1)
            }
            try Self.write(rows, of: worker, in: db)
            return WorkerShares(hosts: shares)
        }
    }

    /// What a worker has that wants nothing; nil where it first has to say whether it is alone.
    private func idleShares(_ worker: Int64, now: Int64) async throws(JobsError) -> WorkerShares? {
        try await read { [lockFile] db in
            let others = try Self.others(than: worker, now: now, in: db) { lockFile.isAlive(worker: $0) }
            let statement = try db.cachedStatement(sql: "SELECT sharing FROM workers WHERE id = ?")
            guard try Bool.fetchOne(statement, arguments: [worker]) == !others.isEmpty else { return nil }
            return WorkerShares(hosts: others.isEmpty ? nil : [:])
        }
    }

    /// Workers that live, and whether they keep to shares.
    ///
    /// While this worker could write nothing, neither could they, and when the clock jumps, none has been seen since: so one
    /// counts as well that was seen about when this one was seen last.
    private static func others(
        than worker: Int64, now: Int64, in db: Database, isAlive: (Int64) -> Bool,
    ) throws -> [Int64: Bool] {
        let statement = try db.cachedStatement(sql: "SELECT id, seen_at, sharing FROM workers WHERE id <> ?")
        let mine = try db.cachedStatement(sql: "SELECT seen_at FROM workers WHERE id = ?")
        let times = [now, try Row.fetchOne(mine, arguments: [worker])?.number("seen_at") ?? now].map(HostMemory.clamped)
        var found: [Int64: Bool] = [:]
        for row in try Row.fetchAll(statement, arguments: [worker]) {
            let seen = HostMemory.clamped(row.number("seen_at") ?? 0)
            guard times.contains(where: { abs($0 - seen) < longestSilence }), let id = row.number("id"), isAlive(id)
            else { continue }
            found[id] = row.count("sharing") > 0
        }
        return found
    }

    /// What others have of a host's places, and want.
    private struct Taken {
        var places = 0
        var demands: [Int64: Int] = [:]

        func fair(for worker: Int64, _ demand: HostDemand, turn: Int) -> Int {
            var demands = demands
            demands[worker] = JobStore.demand(running: demand.load.running, waiting: demand.load.waiting)
            let offset = demand.load.host.utf8.reduce(0) { ($0 &* 31 &+ Int($1)) & 0xFFFF }
            return FairShares.split(demand.limit, demands: demands, turn: turn &+ offset)[worker] ?? 0
        }
    }

    fileprivate static func demand(running: Int, waiting: Int) -> Int {
        min(max(0, running), 1_000_000) + min(max(0, waiting), 1_000_000)
    }

    private static func taken(by workers: some Collection<Int64>, in db: Database) throws -> [String: Taken] {
        var found: [String: Taken] = [:]
        let statement = try db.cachedStatement(
            sql: "SELECT host, running, waiting, share FROM host_load WHERE worker = ?")
        for worker in workers {
            for row in try Row.fetchAll(statement, arguments: [worker]) {
                let host = row.text("host") ?? ""
                let share = row.number("share").map { Int(clamping: $0) } ?? row.count("running")
                found[host, default: Taken()].places += min(max(0, share), 1_000_000)
                let wanted = demand(running: row.count("running"), waiting: row.count("waiting"))
                if wanted > 0 { found[host, default: Taken()].demands[worker] = wanted }
            }
        }
        return found
    }

    private static func write(_ rows: [(load: HostLoad, share: Int?)], of worker: Int64, in db: Database) throws {
        try db.cachedStatement(sql: "DELETE FROM host_load WHERE worker = ?").execute(arguments: [worker])
        let insert = try db.cachedStatement(
            sql: """
                INSERT OR REPLACE INTO host_load (worker, host, running, waiting, rate, reason, until, share)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                """)
        for (load, share) in rows {
            try insert.execute(arguments: [
                worker, load.host, load.running, load.waiting, load.rate, load.reason, load.until, share,
            ])
        }
    }
}
