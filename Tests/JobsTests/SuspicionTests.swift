import Core
import TestSupport
import Testing

@testable import Jobs

/// How the item that kills workers is found, and how the other items go on.
@Suite("Suspicion", .timeLimit(.minutes(15)))
struct SuspicionTests {
    /// Claims with a worker of its own, which then dies.
    private func die(_ queue: Queue, _ claim: (JobStore, Int64) async throws -> Claim) async throws -> [ClaimedItem] {
        let (worker, items) = try await claimAndLeave(queue, claim)
        // The lock ends with the store, and a program that another test starts at that moment has it until it is executed.
        for _ in 0..<2_000 where queue.store.database.liveness.isAlive(worker: worker) {
            try await Task.sleep(for: .milliseconds(5))
        }
        return items
    }

    private func claimAndLeave(
        _ queue: Queue, _ claim: (JobStore, Int64) async throws -> Claim,
    ) async throws -> (worker: Int64, items: [ClaimedItem]) {
        let store = try JobStore(path: queue.path, now: { [clock = queue.clock] in clock.now })
        let worker = try await store.workers.register(host: "test", pid: 2)
        let items = try await claim(store, worker).items
        // Without a word: its lock ends, as it does when a process ends.
        try await store.close()
        return (worker, items)
    }

    @Test(arguments: 0..<5)
    func `The item of a thousand that kills workers is found within eight deaths, and all others end`(_ seed: Int)
        async throws
    {
        var random = SeededGenerator(seed: UInt64(seed))
        try await withQueue { queue in
            let job = try await queue.job(1_000)
            let guilty = Int64.random(in: 1...1_000, using: &random)
            var deaths = 0
            rounds: for _ in 0..<2_000 {
                if try await queue.store.reports.backlog().isEmpty { break }
                _ = try await queue.store.workers.takeBackDeadLeases(myself: queue.worker)
                let window = Caution(inFlight: 0, hasSuspects: false, window: Suspicion.window(deaths: 1))
                var take: (JobStore, Int64) async throws -> Claim = { store, worker in
                    try await store.queue.claim(limit: 256, worker: worker, caution: window)
                }
                if let least = try await queue.store.queue.leastSuspicion() {
                    let rest = try await queue.store.queue.claim(limit: 256, worker: queue.worker, caution: window)
                        .items
                    if rest.isEmpty {
                        take = { store, worker in try await store.queue.claimSuspects(deaths: least, worker: worker) }
                    } else {
                        for item in rest { try await queue.end(item, item.completion(clock: queue.clock)) }
                        continue rounds
                    }
                }
                // A worker takes them; if the guilty one is among them it dies, else they end.
                let taken = try await take(queue.store, queue.worker).items
                if taken.contains(where: { $0.id == guilty }) {
                    for item in taken { try await queue.end(item, .release) }
                    let again = try await die(queue, take)
                    #expect(again.contains { $0.id == guilty })
                    deaths += 1
                } else {
                    for item in taken { try await queue.end(item, item.completion(clock: queue.clock)) }
                }
            }
            #expect(deaths <= 8)
            let progress = try await queue.progress(job)
            #expect((progress.done, progress.failed) == (999, 1))
            let failure = try queue.shell.expect("SELECT id, class FROM items WHERE state = 'failed';")
            #expect(failure == ["\(guilty)|worker-crash"])
            #expect(try await queue.store.blacklist.entries().map(\.failure) == [.workerCrash])
        }
    }

    @Test func `Deaths beside other active items never end an item, and an expired lease counts as no death`()
        async throws
    {
        try await withQueue { queue in
            _ = try await queue.job(3)
            for _ in 0..<20 {
                let taken = try await die(queue) { store, worker in
                    let claim = try await store.queue.claim(limit: 3, worker: worker)
                    return claim.items.isEmpty
                        ? try await store.queue.claim(limit: 3, worker: worker, caution: nil) : claim
                }
                _ = try await queue.store.workers.takeBackDeadLeases(myself: queue.worker)
                if taken.isEmpty { break }
            }
            #expect(try queue.shell.expect("SELECT DISTINCT state, deaths FROM items;") == ["queued|2"])
            // They wait although a worker is free, and say why.
            #expect(
                try queue.shell.expect("SELECT item, host, reason FROM waiting;")
                    == (1...3).map {
                        "\($0)|a turn apart from other items|It runs apart from other items, since workers died while processing it."
                    })
            let waits = try await queue.store.hosts.waits()
            #expect(waits.map(\.host) == ["a turn apart from other items"] && waits.map(\.items) == [3])
            #expect(try await queue.store.hosts.waitReason(of: 1)?.reason == waits.first?.reason)
            #expect(try await queue.store.hosts.statuses().first { $0.host == waits.first?.host }?.waiting == 3)
            // A worker that is only slow.
            let least = try await queue.store.queue.leastSuspicion()
            #expect(least == 2)
            let taken = try await queue.store.queue.claimSuspects(deaths: 2, worker: queue.worker).items
            #expect(taken.count == 3)
            queue.clock.advance(DatabaseGate.leaseDuration + 1_000)
            let other = try JobStore(path: queue.path, now: { [clock = queue.clock] in clock.now })
            #expect(try await other.workers.takeBackDeadLeases(myself: nil) == 3)
            try await other.close()
            #expect(try queue.shell.expect("SELECT DISTINCT state, deaths FROM items;") == ["queued|2"])
        }
    }

    @Test func `An item that its worker survives loses its deaths, and a released item keeps them`() async throws {
        try await withQueue { queue in
            _ = try await queue.job(2)
            _ = try await die(queue) { try await $0.queue.claim(limit: 2, worker: $1) }
            _ = try await queue.store.workers.takeBackDeadLeases(myself: queue.worker)
            let items = try await queue.claim()
            #expect(items.map(\.deaths) == [1, 1])
            try await queue.end(
                items[0], .retry(at: queue.clock.now, Failure(.timeout, "slow"), blockingHost: false))
            try await queue.end(items[1], .release)
            #expect(try queue.shell.expect("SELECT deaths FROM items ORDER BY id;") == ["0", "1"])
        }
    }

    @Test func `A claim with items that were active at a death takes no more than the window`() async throws {
        try await withQueue { queue in
            _ = try await queue.job(300)
            _ = try await die(queue) { try await $0.queue.claim(limit: 200, worker: $1) }
            _ = try await queue.store.workers.takeBackDeadLeases(myself: queue.worker)
            let caution = Caution(inFlight: 0, hasSuspects: false, window: 64)
            let first = try await queue.store.queue.claim(limit: 200, worker: queue.worker, caution: caution).items
            #expect(first.count == 64)
            let full = Caution(inFlight: 64, hasSuspects: true, window: 64)
            #expect(try await queue.store.queue.claim(limit: 200, worker: queue.worker, caution: full).items.isEmpty)
            for item in first { try await queue.end(item, item.completion(clock: queue.clock)) }
        }
    }

    @Test func `A death marks the active items, and later batches are full once the marked items have ended`()
        async throws
    {
        let caution = Caution(inFlight: 0, hasSuspects: false, window: 64)
        let marks = "SELECT deaths, count(*) FROM items WHERE state = 'queued' GROUP BY deaths;"
        try await withQueue { queue in
            _ = try await queue.job(1_000)
            #expect(try await die(queue) { try await $0.queue.claim(limit: 200, worker: $1) }.count == 200)
            _ = try await queue.store.workers.takeBackDeadLeases(myself: queue.worker)
            #expect(try queue.shell.expect(marks) == ["0|800", "1|200"])
            // Another death has but a window of them, and none of the others.
            let again = try await die(queue) { try await $0.queue.claim(limit: 200, worker: $1, caution: caution) }
            #expect(again.count == 64 && again.allSatisfy { $0.deaths == 1 })
            _ = try await queue.store.workers.takeBackDeadLeases(myself: queue.worker)
            #expect(try queue.shell.expect(marks) == ["0|800", "1|136", "2|64"])
            // Those with one mark in windows, and then the others as if nothing had happened.
            var sizes: [Int] = []
            while try queue.shell.expect("SELECT count(*) FROM items WHERE deaths = 1;") != ["0"] {
                let items = try await queue.store.queue.claim(limit: 256, worker: queue.worker, caution: caution).items
                sizes.append(try await endAll(items, queue))
            }
            #expect(sizes == [64, 64, 64])
            for _ in 0..<2 {
                let items = try await queue.store.queue.claim(limit: 256, worker: queue.worker, caution: caution).items
                #expect(try await endAll(items, queue) == 256)
            }
            // The suspects by themselves, in groups of the next window.
            var groups: [Int] = []
            while let least = try await queue.store.queue.leastSuspicion() {
                let items = try await queue.store.queue.claimSuspects(deaths: least, worker: queue.worker).items
                groups.append(try await endAll(items, queue))
            }
            #expect(groups == [16, 16, 16, 16])
            #expect(try queue.shell.expect("SELECT max(deaths) FROM items;") == ["0"])
        }
    }

    private func endAll(_ items: [ClaimedItem], _ queue: Queue) async throws -> Int {
        for item in items { try await queue.end(item, item.completion(clock: queue.clock)) }
        return items.count
    }

    @Test(arguments: [(0, 256), (1, 64), (2, 16), (3, 4), (4, 1), (7, 1), (-5, 256), (Int.max, 1)])
    func `The window shrinks with every death`(_ row: (deaths: Int, window: Int)) {
        #expect(Suspicion.window(deaths: row.deaths) == row.window)
    }
}
