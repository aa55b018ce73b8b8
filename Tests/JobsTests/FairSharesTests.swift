import Core
import TestSupport
import Testing

@testable import Jobs

/// How the slots of a host are split among workers.
@Suite("Shares of workers", .timeLimit(.minutes(15)))
struct FairSharesTests {
    @Test func `A host's slots are split fairly, and the others get the slots that a worker leaves`() {
        #expect(FairShares.split(6, demands: [1: 100, 2: 100], turn: 0) == [1: 3, 2: 3])
        #expect(FairShares.split(6, demands: [1: 1, 2: 100], turn: 0) == [1: 1, 2: 5])
        #expect(FairShares.split(6, demands: [1: 2, 2: 2], turn: 0) == [1: 2, 2: 2])
        #expect(FairShares.split(6, demands: [1: 0, 2: 100], turn: 0) == [1: 0, 2: 6])
        #expect(FairShares.split(0, demands: [1: 5], turn: 0) == [1: 0])
        #expect(FairShares.split(5, demands: [:], turn: 0) == [:])
    }

    @Test func `Workers take turns if a host has fewer slots than there are workers`() {
        let demands: [Int64: Int] = [1: 9, 2: 9, 3: 9]
        let turns = (0..<3).map { turn in FairShares.split(1, demands: demands, turn: turn).filter { $0.value > 0 }.keys
        }
        #expect(Set(turns.flatMap(\.self)) == [1, 2, 3])
    }

    @Test(arguments: [(2, 1, 1), (3, 2, 1), (3, 1, 2), (4, 1, 1)])
    func `Some worker soon has a slot of a host and of all hosts together`(
        _ workers: Int, _ concurrency: Int, _ perHost: Int
    ) {
        // The row * has demands of all workers, and a host those of some.
        for host in ["a.example", "example.com", "img.test", "localhost", "cdn.example.net"] {
            for wanting in 1...workers {
                let all = Dictionary(uniqueKeysWithValues: (1...workers).map { (Int64($0), 9) })
                let some = all.filter { $0.key <= wanting }
                let waits = (0..<200).split { turn in
                    let slots = FairShares.split(
                        concurrency, demands: all, turn: FairShares.turn(turn, of: "*"))
                    let own = FairShares.split(
                        perHost, demands: some, turn: FairShares.turn(turn, of: host))
                    return own.contains { $0.value > 0 && slots[$0.key] ?? 0 > 0 }
                }
                #expect(waits.map(\.count).max() ?? 0 <= 8 * workers, "\(host), \(wanting) of \(workers)")
            }
        }
    }

    @Test func `The shares never exceed the slots or the demands`() {
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<500 {
            let workers = (1...Int64.random(in: 1...9, using: &generator))
            let demands = Dictionary(
                uniqueKeysWithValues: workers.map { ($0, Int.random(in: 0...20, using: &generator)) })
            let places = Int.random(in: 0...40, using: &generator)
            let shares = FairShares.split(places, demands: demands, turn: Int.random(in: -5...5, using: &generator))
            let given: Int = shares.values.reduce(0, +)
            let wanted: Int = demands.values.reduce(0, +)
            #expect(given == min(places, wanted))
            #expect(shares.allSatisfy { share in share.value <= (demands[share.key] ?? 0) })
        }
    }

    private func demand(_ running: Int, _ waiting: Int, share: Int?, limit: Int = 4) -> [HostDemand] {
        let load = HostLoad(host: "a.example", running: running, waiting: waiting, rate: 0)
        return [HostDemand(load: load, limit: limit, share: share)]
    }

    /// A worker that calls with what it obeys now.
    private final class Caller {
        let store: JobStore
        let worker: Int64
        private var shares: [String: WorkerShares.Share]? = [:]

        init(_ store: JobStore, _ worker: Int64) {
            self.store = store
            self.worker = worker
        }

        /// - Returns: its slots of the host; nil if it has all.
        func call(_ demands: (Int?) -> [HostDemand]) async throws -> Int? {
            let share = shares.map { $0["a.example"]?.slots ?? 0 }
            shares = try await store.hosts.takeShares(
                demands(share), worker: worker, isSharing: share != nil, wasIdle: false
            ).hosts
            return shares.map { $0["a.example"]?.slots ?? 0 }
        }
    }

    @Test func `A second worker gets slots only after the first has released them`() async throws {
        try await withQueue { queue in
            let store = try JobStore(path: queue.path, now: { queue.clock.now })
            let one = Caller(queue.store, queue.worker)
            var two = Caller(store, try await store.workers.register(host: "h", pid: 1))
            func first(_ running: Int, _ waiting: Int) async throws -> Int? {
                try await one.call { demand(running, waiting, share: $0) }
            }
            func second(_ running: Int, _ waiting: Int) async throws -> Int? {
                try await two.call { demand(running, waiting, share: $0) }
            }
            // The first has not called yet, so it is known to share, and has none.
            #expect(try await second(0, 9) == 4)
            try await store.workers.unregister(worker: two.worker)
            #expect(try await first(4, 9) == nil)
            // It has all slots, and may have started more requests than it has told of.
            two = Caller(store, try await store.workers.register(host: "h", pid: 1))
            #expect(try await second(0, 9) == 0)
            #expect(try await first(1, 9) == 0)
            // It has none from now on, but is not known to obey that.
            #expect(try await second(0, 9) == 0)
            // Four were running in truth, and it gets its half when two of them have ended.
            #expect(try await first(4, 5) == 2)
            #expect(try await second(0, 9) == 0)
            #expect(try await first(3, 5) == 2)
            #expect(try await second(0, 9) == 1)
            #expect(try await first(2, 5) == 2)
            #expect(try await second(1, 9) == 2)
            // The slots that the first no longer wants are the other's, once the first obeys that.
            #expect(try await first(0, 0) == 0)
            #expect(try await second(2, 9) == 2)
            #expect(try await first(0, 0) == 0)
            #expect(try await second(2, 9) == 4)
            // A worker that has ended holds no slots, and no other waits for it.
            try await store.workers.unregister(worker: two.worker)
            try await store.close()
            #expect(try await first(0, 9) == nil)
        }
    }

    /// Each worker starts as many requests as it may, at once, and counts them at any time before it calls.
    @Test(arguments: 1...40) func `Workers that come, go and are slow never have more requests than the limit`(
        _ seed: Int
    ) async throws {
        try await withQueue { queue in
            var random = SeededGenerator(seed: UInt64(seed))
            let limit = Int.random(in: 1...5, using: &random)
            var workers: [Int64: Sharer] = [queue.worker: Sharer(queue.store, at: queue.clock.now)]
            func running() -> Int { workers.values.reduce(0) { $0 + $1.running } }
            func anyOne() -> Sharer? { workers.keys.sorted().randomElement(using: &random).flatMap { workers[$0] } }
            for _ in 0..<150 {
                queue.clock.advance(50)
                switch Int.random(in: 0..<12, using: &random) {
                case 0 where workers.count < 4:
                    let store = try JobStore(path: queue.path, now: { queue.clock.now })
                    workers[try await store.workers.register(host: "h", pid: 1)] = Sharer(store, at: queue.clock.now)
                case 1:
                    guard let one = workers.keys.sorted().randomElement(using: &random), one != queue.worker else {
                        break
                    }
                    try await workers[one]?.store.workers.unregister(worker: one)
                    try await workers[one]?.store.close()
                    workers[one] = nil
                case 2, 3:
                    if let one = anyOne(), one.running > 0 { one.running -= 1 }
                case 4: anyOne()?.wants = Bool.random(using: &random)
                case 5 where workers.count > 1:
                    // A suspension, during which its requests end and the others take its slots.
                    let frozen = anyOne()
                    frozen?.running = 0
                    for _ in 0..<5 {
                        queue.clock.advance(5_000)
                        for id in workers.keys.sorted() {
                            guard let one = workers[id], one !== frozen else { continue }
                            try await one.call(as: id, limit: limit, isCounted: true, at: queue.clock.now)
                            one.start(limit, at: queue.clock.now)
                            #expect(running() <= limit)
                        }
                    }
                default:
                    guard let one = workers.keys.sorted().randomElement(using: &random), let sharer = workers[one]
                    else { break }
                    try await sharer.call(
                        as: one, limit: limit, isCounted: Bool.random(using: &random), at: queue.clock.now)
                }
                for worker in workers.values { worker.start(limit, at: queue.clock.now) }
                #expect(running() <= limit)
            }
            for (id, worker) in workers where id != queue.worker { try await worker.store.close() }
        }
    }

    /// A worker as its downloader and its keeper of hosts act together.
    private final class Sharer {
        let store: JobStore
        /// None before the first call.
        var shares: [String: WorkerShares.Share]? = [:]
        var running = 0
        var wants = true

        private var sharedAt: WallTime
        private var returnedAt: WallTime?

        init(_ store: JobStore, at now: WallTime) {
            self.store = store
            sharedAt = now
        }

        func start(_ limit: Int, at now: WallTime) {
            // Later it doesn't know whether the others still count it; see ShareLease.
            guard wants, now - sharedAt < 15_000 else { return }
            running = max(running, shares.map { $0["a.example"]?.slots ?? 0 } ?? limit)
        }

        /// - Parameter isCounted: whether all that runs is counted, or only what ran some time ago.
        func call(as worker: Int64, limit: Int, isCounted: Bool, at now: WallTime) async throws {
            if now - sharedAt >= 15_000 {
                returnedAt = now
                if shares != nil { shares = [:] }
            }
            let share = shares.map { $0["a.example"]?.slots ?? 0 }
            // Requests beyond the share can only have become fewer since they were counted.
            let seen = isCounted || running > share ?? .max ? running : min(running, 1)
            let waiting = wants ? 9 : 0
            var demands: [HostDemand] = []
            if seen + waiting + (share ?? 0) > 0 {
                let load = HostLoad(host: "a.example", running: seen, waiting: waiting, rate: 0)
                demands = [HostDemand(load: load, limit: limit, share: share)]
            }
            shares = try await store.hosts.takeShares(
                demands, worker: worker, isSharing: share != nil,
                countsSilent: returnedAt.map { now - $0 < 20_000 } ?? false, wasIdle: false
            ).hosts
            sharedAt = now
        }
    }

    @Test(arguments: [30_000, 3_600_000, -3_600_000])
    func `Workers still know of each other after a pause or a jump of the clock`(_ jump: Int64)
        async throws
    {
        try await withQueue { queue in
            let second = try JobStore(path: queue.path, now: { queue.clock.now })
            let other = try await second.workers.register(host: "h", pid: 1)
            func isAlone(_ store: JobStore, _ worker: Int64) async throws -> Bool {
                try await store.hosts.takeShares(
                    demand(1, 9, share: 1), worker: worker, isSharing: true, wasIdle: false
                ).hosts == nil
            }
            #expect(try await !isAlone(queue.store, queue.worker))
            #expect(try await !isAlone(second, other))
            queue.clock.advance(jump)
            #expect(try await !isAlone(queue.store, queue.worker))
            #expect(try await !isAlone(second, other))
            #expect(try await !isAlone(queue.store, queue.worker))
            // One that hangs isn't waited for.
            for _ in 0..<2 {
                queue.clock.advance(12_000)
                #expect(try await !isAlone(second, other))
            }
            queue.clock.advance(12_000)
            #expect(try await isAlone(second, other))
            try await second.workers.unregister(worker: other)
            try await second.close()
        }
    }
}
