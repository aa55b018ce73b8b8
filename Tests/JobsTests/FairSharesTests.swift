import Core
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

    @Test func `The shares never exceed the slots or the demands`() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<500 {
            let workers = (1...Int64.random(in: 1...9, using: &generator))
            let demands = Dictionary(uniqueKeysWithValues: workers.map { ($0, Int.random(in: 0...20)) })
            let places = Int.random(in: 0...40)
            let shares = FairShares.split(places, demands: demands, turn: Int.random(in: -5...5))
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

    @Test func `A second worker gets slots only after the first has released them`() async throws {
        try await withQueue { queue in
            let first = queue.store
            let second = try JobStore(path: queue.path, now: { queue.clock.now })
            #expect(
                try await first.hosts.takeShares(demand(4, 9, share: nil), worker: queue.worker, wasIdle: false).hosts
                    == nil)
            let other = try await second.workers.register(host: "h", pid: 1)
            func ask(_ store: JobStore, _ worker: Int64, _ running: Int, _ waiting: Int, _ share: Int?) async throws
                -> Int?
            {
                try await store.hosts.takeShares(demand(running, waiting, share: share), worker: worker, wasIdle: false)
                    .hosts?["a.example"]?.slots
            }
            // The first doesn't know of the second yet, and still has everything.
            #expect(try await ask(second, other, 0, 9, 0) == 0)
            // It keeps to its half from now on, and has four on their way.
            #expect(try await ask(first, queue.worker, 4, 9, nil) == 2)
            #expect(try await ask(second, other, 0, 9, 0) == 0)
            #expect(try await ask(first, queue.worker, 3, 9, 2) == 2)
            #expect(try await ask(second, other, 0, 9, 0) == 1)
            #expect(try await ask(first, queue.worker, 2, 9, 2) == 2)
            #expect(try await ask(second, other, 1, 9, 1) == 2)
            // What one doesn't want any more the other has.
            #expect(try await ask(first, queue.worker, 0, 0, 2) == 0)
            #expect(try await ask(first, queue.worker, 0, 0, 0) == 0)
            #expect(try await ask(second, other, 2, 9, 2) == 4)
            // A worker that has ended holds no slots, and no other waits for it.
            try await second.workers.unregister(worker: other)
            try await second.close()
            #expect(try await ask(first, queue.worker, 0, 9, 0) == nil)
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
                try await store.hosts.takeShares(demand(1, 9, share: 1), worker: worker, wasIdle: false).hosts == nil
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
