internal import Core
internal import GRDB

/// A worker's requests to a host, and its share of the host's limits.
public struct HostDemand: Hashable, Sendable {
    public let load: HostLoad
    /// Requests at once that all workers may have together.
    public let limit: Int
    /// Its share since it asked last. It has at most that many requests in flight, and those that it had before.
    public let share: Int?

    /// - Parameter load: of the host `*` for all hosts together.
    public init(load: HostLoad, limit: Int, share: Int?) {
        self.load = load
        self.limit = max(0, limit)
        self.share = share
    }
}

/// A worker's limits until it asks again.
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

extension HostBook {
    /// A worker that hasn't been seen for so long, in milliseconds, is stopped or hangs: it isn't waited for, though it
    /// lives.
    private static let longestSilence: Int64 = 20_000
    /// How long places stay with their workers where more workers want some than there are places, in milliseconds.
    private static let turnDuration: Int64 = 10_000

    /// Saves a worker's requests to hosts, and splits the hosts' limits among the live workers.
    ///
    /// Places are only ever taken where they are free: what a worker has written down is its own until it has written
    /// down less, and it begins to use less before it does. So together they never have more than there are, and what
    /// one that died had is free at the next look.
    ///
    /// - Parameter wasIdle: whether it had nothing in hand the last time; then nothing is written where there is
    ///   nothing now.
    public func takeShares(
        _ demands: [HostDemand], worker: Int64, wasIdle: Bool,
    ) async throws(JobsError) -> WorkerShares {
        let reading = gate.reading
        if demands.isEmpty, wasIdle, let shares = try await idleShares(worker, now: reading.wall) { return shares }
        let clock = gate.now
        // A power cut ends the worker, and with it its requests.
        return try await gate.write(isDurable: false) { [lockFile = gate.lockFile] db in
            // Read only now: another program's transaction may have been waited for.
            let now = clock()
            let others = try Self.others(than: worker, now: now, in: db) { lockFile.isAlive(worker: $0) }
            let isAlone = others.isEmpty
            try db.run(
                "UPDATE workers SET sharing = ?, seen_at = ? WHERE id = ?", [!isAlone, now.milliseconds, worker])
            guard !isAlone else {
                try Self.write(demands.map { ($0.load, nil) }, of: worker, in: db)
                return WorkerShares(hosts: nil)
            }
            let turn = Int(clamping: try reading.time(in: db).milliseconds / Self.turnDuration)
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

    /// The share of a worker without requests; nil where it first has to say whether it is alone.
    private func idleShares(_ worker: Int64, now: WallTime) async throws(JobsError) -> WorkerShares? {
        try await gate.read { [lockFile = gate.lockFile] db in
            let others = try Self.others(than: worker, now: now, in: db) { lockFile.isAlive(worker: $0) }
            guard try db.flag("SELECT sharing FROM workers WHERE id = ?", [worker]) == !others.isEmpty else {
                return nil
            }
            return WorkerShares(hosts: others.isEmpty ? nil : [:])
        }
    }

    /// Workers that live, and whether they keep to shares.
    ///
    /// While this worker could write nothing, neither could they, and when the clock jumps, none has been seen since:
    /// so one counts as well that was seen about when this one was seen last.
    private static func others(
        than worker: Int64, now: WallTime, in db: Database, isAlive: (Int64) -> Bool,
    ) throws -> [Int64: Bool] {
        let times = [now, try db.row("SELECT seen_at FROM workers WHERE id = ?", [worker])?.wall("seen_at") ?? now]
        var found: [Int64: Bool] = [:]
        for row in try db.rows("SELECT id, seen_at, sharing FROM workers WHERE id <> ?", [worker]) {
            let seen = row.wall("seen_at") ?? WallTime(milliseconds: 0)
            guard times.contains(where: { abs($0 - seen) < longestSilence }), let id = row.number("id"), isAlive(id)
            else { continue }
            found[id] = row.count("sharing") > 0
        }
        return found
    }

    /// The requests of other workers to a host: how many they may make, and how many they want.
    private struct Taken {
        var places = 0
        var demands: [Int64: Int] = [:]

        func fair(for worker: Int64, _ demand: HostDemand, turn: Int) -> Int {
            var demands = demands
            demands[worker] = HostBook.demand(running: demand.load.running, waiting: demand.load.waiting)
            let offset = demand.load.host.utf8.reduce(0) { ($0 &* 31 &+ Int($1)) & 0xFFFF }
            return FairShares.split(demand.limit, demands: demands, turn: turn &+ offset)[worker] ?? 0
        }
    }

    fileprivate static func demand(running: Int, waiting: Int) -> Int {
        min(max(0, running), 1_000_000) + min(max(0, waiting), 1_000_000)
    }

    private static func taken(by workers: some Collection<Int64>, in db: Database) throws -> [String: Taken] {
        var found: [String: Taken] = [:]
        for worker in workers {
            for row in try db.rows("SELECT host, running, waiting, share FROM host_load WHERE worker = ?", [worker]) {
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
        try db.run("DELETE FROM host_load WHERE worker = ?", [worker])
        let insert = try db.cachedStatement(
            sql: """
                INSERT OR REPLACE INTO host_load (worker, host, running, waiting, rate, reason, until, share)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                """)
        for (load, share) in rows {
            try insert.execute(arguments: [
                worker, load.host, load.running, load.waiting, load.rate, load.reason, load.until?.milliseconds, share,
            ])
        }
    }
}

/// How places are split among workers that want some: none gets more than it wants, and the remainder goes round.
public enum FairShares {
    /// - Parameters:
    ///   - turn: counts up now and then, so that where places are fewer than workers each has its turn.
    /// - Returns: places for each worker; together never more than there are.
    public static func split(_ places: Int, demands: [Int64: Int], turn: Int) -> [Int64: Int] {
        var left = max(0, places)
        var shares = demands.mapValues { _ in 0 }
        var open = demands.filter { $0.value > 0 }.map(\.key).sorted()
        if !open.isEmpty {
            let start = ((turn % open.count) + open.count) % open.count
            open = Array(open[start...] + open[..<start])
        }
        while left > 0, !open.isEmpty {
            // Those that want little have it first; the others share what they leave.
            let each = max(1, left / open.count)
            for worker in open where left > 0 {
                let more = min(each, left, (demands[worker] ?? 0) - (shares[worker] ?? 0))
                shares[worker, default: 0] += more
                left -= more
            }
            open.removeAll { shares[$0] == demands[$0] }
        }
        return shares
    }
}
