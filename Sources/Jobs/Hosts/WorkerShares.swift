internal import Core

/// A worker's requests to a host, and its share of the host's limits.
public struct HostDemand: Hashable, Sendable {
    public let load: HostLoad
    /// Concurrent requests that all workers may have together.
    public let limit: Int
    /// The share in force. The worker has at most that many requests in flight, or those that it had before it got the
    /// share. Nil for requests that no other worker has to leave room for.
    public let share: Int?

    /// - Parameter load: the load of one host, or of the host `*` for all hosts together.
    public init(load: HostLoad, limit: Int, share: Int?) {
        self.load = load
        self.limit = max(0, limit)
        self.share = share
    }
}

/// A worker's limits until its next request for shares.
public struct WorkerShares: Hashable, Sendable {
    public struct Share: Hashable, Sendable {
        /// Concurrent requests.
        public var slots: Int
        /// The number of workers with requests, including this one.
        public var parts: Int
    }

    /// By host, with `*` for all hosts together; a host that is not named has no slots. Nil for a single worker, which
    /// has all of them.
    public var hosts: [String: Share]?
}

extension HostBook {
    /// If a live worker has not been seen for this long, in milliseconds, it counts as stopped or hanging, and the
    /// others do not wait for it.
    private static let longestSilence: Int64 = 20_000
    /// How long workers keep their slots if there are more workers than slots, in milliseconds.
    private static let turnDuration: Int64 = 10_000

    /// Saves a worker's requests to hosts, and splits the hosts' limits among the live workers.
    ///
    /// A worker takes only free slots. It owns the number that it has recorded until it records a smaller one, and it
    /// reduces its use before it does so. So all workers together never exceed a limit, and the slots of a dead worker
    /// are free at the next call.
    ///
    /// A worker that was alone has used all slots. This call first gives it none. Once its downloader obeys, the worker
    /// calls again and gets its share; until then, other workers take no slot.
    ///
    /// - Parameters:
    ///   - demands: counted after the worker's downloader got the shares in force; also for each host of which the worker
    ///     has slots and no requests.
    ///   - isSharing: whether the worker obeys shares; false if it has all slots.
    ///   - countsSilent: whether to count workers that have not been seen lately. After a pause of its own, a worker
    ///     can't tell whether the others have ended or are only slower.
    ///   - wasIdle: whether the worker had no requests at the last call; if it has none now either, nothing is written.
    public func takeShares(
        _ demands: [HostDemand], worker: Int64, isSharing: Bool, countsSilent: Bool = false, wasIdle: Bool,
    ) async throws(JobsError) -> WorkerShares {
        let reading = gate.reading
        if demands.isEmpty, wasIdle,
            let shares = try await idleShares(worker, isSharing, countsSilent, now: reading.wall)
        {
            return shares
        }
        let clock = gate.now
        // Not synced: a power failure ends the worker, and with it its requests.
        return try await gate.write(isDurable: false) { [liveness = gate.liveness] db in
            // Read only now, since the transaction may have waited for another program.
            let now = clock()
            let others = try Self.others(than: worker, now: now, countsSilent, in: db, liveness)
            let isAlone = others.isEmpty
            try db.run(
                "UPDATE workers SET sharing = ?, seen_at = ? WHERE id = ?",
                [!isAlone && isSharing, now.milliseconds, worker])
            guard !isAlone, isSharing else {
                try Self.write(demands.map { ($0.load, nil) }, of: worker, in: db)
                return WorkerShares(hosts: isAlone ? nil : [:])
            }
            let turn = Int(clamping: try reading.time(in: db).milliseconds / Self.turnDuration)
            let taken = try Self.taken(by: others.keys, in: db)
            // A worker that was alone before keeps all slots until it has seen this worker.
            let mayTake = !others.values.contains(false)
            var shares: [String: WorkerShares.Share] = [:]
            var rows: [(HostLoad, Int?)] = []
            for demand in demands {
                let host = taken[demand.load.host] ?? Taken()
                let held = max(demand.share ?? demand.load.running, demand.load.running)
                let fair = host.fair(for: worker, demand, turn: turn)
                // A smaller share takes effect at once and is recorded next time; a larger share is recorded first.
                let free = max(0, demand.limit - host.slots)
                let written = mayTake ? max(held, min(fair, free)) : held
                rows.append((demand.load, written))
                shares[demand.load.host] = WorkerShares.Share(
                    slots: mayTake ? min(fair, written) : 0, parts: host.demands.count + 1)
            }
            try Self.write(rows, of: worker, in: db)
            return WorkerShares(hosts: shares)
        }
    }

    /// The share of a worker without requests; nil if it must first record whether it is alone.
    private func idleShares(
        _ worker: Int64, _ isSharing: Bool, _ countsSilent: Bool, now: WallTime,
    ) async throws(JobsError) -> WorkerShares? {
        try await gate.read { [liveness = gate.liveness] db in
            let others = try Self.others(than: worker, now: now, countsSilent, in: db, liveness)
            guard isSharing || others.isEmpty,
                try db.flag("SELECT sharing FROM workers WHERE id = ?", [worker]) == !others.isEmpty
            else { return nil }
            return WorkerShares(hosts: others.isEmpty ? nil : [:])
        }
    }

    /// The other live workers, and whether they keep to shares.
    ///
    /// While another program blocks writes, and after a jump of the clock, every worker's `seen_at` is outdated. So a
    /// worker also counts if it was last seen at about the same time as this one.
    private static func others(
        than worker: Int64, now: WallTime, _ countsSilent: Bool, in db: Connection, _ liveness: any Liveness,
    ) throws -> [Int64: Bool] {
        let times = [now, try db.row("SELECT seen_at FROM workers WHERE id = ?", [worker])?.wall("seen_at") ?? now]
        var seen: [Int64: Bool] = [:]
        for row in try db.rows("SELECT id, seen_at, sharing FROM workers WHERE id <> ?", [worker]) {
            let time = row.wall("seen_at") ?? WallTime(milliseconds: 0)
            // A program that only reserves room in the cache has no time at all.
            let isSeen = countsSilent && time.milliseconds > 0
            guard isSeen || times.contains(where: { abs($0 - time) < longestSilence }), let id = row.number("id")
            else { continue }
            seen[id] = row.count("sharing") > 0
        }
        guard !seen.isEmpty else { return [:] }
        let living = liveness.living(Array(seen.keys))
        return seen.filter { living.contains($0.key) }
    }

    /// The requests of other workers to a host: their slots, and how many each wants.
    private struct Taken {
        var slots = 0
        var demands: [Int64: Int] = [:]

        func fair(for worker: Int64, _ demand: HostDemand, turn: Int) -> Int {
            var demands = demands
            demands[worker] = HostBook.demand(running: demand.load.running, waiting: demand.load.waiting)
            let own = FairShares.turn(turn, of: demand.load.host)
            return FairShares.split(demand.limit, demands: demands, turn: own)[worker] ?? 0
        }
    }

    fileprivate static func demand(running: Int, waiting: Int) -> Int {
        min(max(0, running), 1_000_000) + min(max(0, waiting), 1_000_000)
    }

    private static func taken(by workers: some Collection<Int64>, in db: Connection) throws -> [String: Taken] {
        var found: [String: Taken] = [:]
        for worker in workers {
            for row in try db.rows("SELECT host, running, waiting, share FROM host_load WHERE worker = ?", [worker]) {
                let host = row.text("host") ?? ""
                let share = row.number("share").map { Int(clamping: $0) } ?? row.count("running")
                found[host, default: Taken()].slots += min(max(0, share), 1_000_000)
                let wanted = demand(running: row.count("running"), waiting: row.count("waiting"))
                if wanted > 0 { found[host, default: Taken()].demands[worker] = wanted }
            }
        }
        return found
    }

    private static func write(_ rows: [(load: HostLoad, share: Int?)], of worker: Int64, in db: Connection) throws {
        try db.run("DELETE FROM host_load WHERE worker = ?", [worker])
        let insert = try RowStatement(
            """
            INSERT OR REPLACE INTO host_load (worker, host, running, waiting, rate, reason, until, share)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            """, in: db)
        try insert.runEach(rows) { load, share in
            (worker, load.host, load.running, load.waiting, load.rate, load.reason, load.until, share)
        }
    }
}

/// Splits slots among workers with requests: no worker gets more than it wants, and the remainder rotates.
public enum FairShares {
    /// The turn of one host, in a row without a period. If a host and all hosts together (`*`) have fewer slots than
    /// there are workers, two regular rows could give one worker the slot of the host whenever another has the slot of
    /// all hosts, so that neither ever starts a request.
    static func turn(_ turn: Int, of host: String) -> Int {
        // FNV-1a over the host and the turn, and the last step of SplitMix64, which mixes all bits.
        var mixed: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in host.utf8 { mixed = (mixed ^ UInt64(byte)) &* 0x100_0000_01B3 }
        mixed = (mixed ^ UInt64(bitPattern: Int64(turn))) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return Int(truncatingIfNeeded: (mixed ^ (mixed >> 31)) >> 1)
    }

    /// - Parameters:
    ///   - turn: increases over time, so that all workers get a turn if there are more workers than slots.
    /// - Returns: the slots of each worker; their sum never exceeds `slots`.
    public static func split(_ slots: Int, demands: [Int64: Int], turn: Int) -> [Int64: Int] {
        var left = max(0, slots)
        var shares = demands.mapValues { _ in 0 }
        var open = demands.filter { $0.value > 0 }.map(\.key).sorted()
        if !open.isEmpty {
            let start = ((turn % open.count) + open.count) % open.count
            open = Array(open[start...] + open[..<start])
        }
        while left > 0, !open.isEmpty {
            // Workers that want few slots are satisfied first; the others share the rest.
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
