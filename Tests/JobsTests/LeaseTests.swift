import Core
import Jobs
import Testing

@Suite("Leases", .timeLimit(.minutes(15)))
struct LeaseTests {
    /// A second worker's store on the same file, as another process would have it.
    private func other(_ queue: Queue) throws -> JobStore {
        try JobStore(path: queue.path, now: { [clock = queue.clock] in clock.now })
    }

    @Test func `The leases of a dead worker are reclaimed at once, and no try is used`() async throws {
        try await withQueue { queue in
            let job = try await queue.job(3)
            do {
                let dying = try other(queue)
                let worker = try await dying.workers.register(host: "test", pid: 2)
                #expect(try await dying.queue.claim(limit: 2, worker: worker).items.count == 2)
            }
            #expect(try await queue.progress(job).active == 2)
            // A store is gone when the last of its calls has let go of it, which may be a moment after its answer.
            var count = 0
            for _ in 0..<2_000 where count == 0 {
                count = try await queue.store.workers.takeBackDeadLeases(myself: queue.worker)
                if count == 0 { try await Task.sleep(for: .milliseconds(10)) }
            }
            #expect(count == 2)
            #expect(try await queue.progress(job).queued == 3)
            #expect(try await queue.claim().map(\.attempts) == [0, 0, 0])
            #expect(try await queue.store.workers.takeBackDeadLeases(myself: queue.worker) == 0)
        }
    }

    @Test func `The leases of a live worker are not reclaimed`() async throws {
        try await withQueue { queue in
            _ = try await queue.job(2)
            let living = try other(queue)
            let worker = try await living.workers.register(host: "test", pid: 2)
            let items = try await living.queue.claim(limit: 2, worker: worker).items
            #expect(try await queue.store.workers.takeBackDeadLeases(myself: queue.worker) == 0)
            #expect(try await living.queue.lost(of: items) == [])
            var helpers = HelperCounts()
            (helpers.running, helpers.busy, helpers.waiting, helpers.started, helpers.died) = (4, 3, 2, 5, 1)
            try await living.workers.note(helpers, of: worker)
            let live = try await queue.store.workers.live()
            #expect(live.map(\.pid) == [2] && live.map(\.inHand) == [2] && live.map(\.helpers) == [helpers])
            try await living.close()
        }
    }

    @Test func `A live worker without heartbeats loses its lease at the expiry`() async throws {
        try await withQueue { queue in
            _ = try await queue.job(1)
            let hanging = try other(queue)
            let worker = try await hanging.workers.register(host: "test", pid: 2)
            let items = try await hanging.queue.claim(limit: 1, worker: worker).items
            queue.clock.advance(59_000)
            #expect(try await queue.store.workers.takeBackDeadLeases(myself: queue.worker) == 0)
            queue.clock.advance(2_000)
            #expect(try await queue.store.workers.takeBackDeadLeases(myself: queue.worker) == 1)
            #expect(try await hanging.queue.lost(of: items) == [items[0].id])
            // It stays registered, so that the others share limits with it when it continues.
            #expect(try await queue.store.workers.live().map(\.id) == [worker])
            #expect(try await hanging.queue.claim(limit: 1, worker: worker).items.map(\.id) == [items[0].id])
            try await hanging.close()
        }
    }

    @Test func `A heartbeat registers a worker again whose row a shell has deleted`() async throws {
        try await withQueue { queue in
            try queue.shell.expect("DELETE FROM workers;")
            try await queue.store.workers.heartbeat(worker: queue.worker, host: "here", pid: 7)
            #expect(
                try queue.shell.expect("SELECT id, host, pid, sharing FROM workers;") == ["\(queue.worker)|here|7|0"])
        }
    }

    @Test func `A heartbeat extends leases with active items, and drops leases without items`() async throws {
        try await withQueue { queue in
            _ = try await queue.job(2)
            let beating = try other(queue)
            let worker = try await beating.workers.register(host: "test", pid: 2)
            _ = try await beating.queue.claim(limit: 1, worker: worker)
            let ended = try #require(try await beating.queue.claim(limit: 1, worker: worker).items.first)
            try await beating.queue.finish([(ended, .failed(.denied))])
            queue.clock.advance(50_000)
            try await beating.workers.heartbeat(worker: worker, host: "test", pid: 2)
            #expect(try queue.shell.expect("SELECT count(*) FROM leases;") == ["1"])
            queue.clock.advance(50_000)
            #expect(try await queue.store.workers.takeBackDeadLeases(myself: queue.worker) == 0)
            try await beating.close()
        }
    }

    @Test func `A worker doesn't reclaim its own leases`() async throws {
        try await withQueue { queue in
            _ = try await queue.job()
            let items = try await queue.claim()
            queue.clock.advance(120_000)
            #expect(try await queue.store.workers.takeBackDeadLeases(myself: queue.worker) == 0)
            #expect(try await queue.store.queue.lost(of: items) == [])
        }
    }

    @Test func `A worker that unregisters releases its items and leaves no rows`() async throws {
        try await withQueue { queue in
            let job = try await queue.job(2)
            _ = try await queue.claim(1)
            try await queue.store.workers.unregister(worker: queue.worker)
            #expect(try await queue.progress(job).queued == 2)
            #expect(try queue.shell.expect("SELECT count(*) FROM leases; SELECT count(*) FROM workers;") == ["0", "0"])
        }
    }

    @Test func `A retry waits until it is due, then counts as a try`() async throws {
        try await withQueue { queue in
            let job = try await queue.job()
            let first = try #require(try await queue.claim().first)
            let failure = Failure(.http(503), "The origin is busy.")
            try await queue.end(first, .retry(at: queue.clock.now + 1_000, failure, blockingHost: false))
            #expect(try await queue.store.queue.promoteDue() == 0)
            let backlog = try await queue.store.reports.backlog()
            #expect((backlog.queued, backlog.active, backlog.delayed) == (0, 0, 1))
            #expect(backlog.nextDue == queue.clock.steady + 1_000)
            queue.clock.advance(1_000)
            #expect(try await queue.store.queue.promoteDue() == 1)
            #expect(try await queue.claim().map(\.attempts) == [1])
            #expect(try await queue.progress(job).active == 1)
        }
    }

    @Test func `Due items are queued in groups, the longest due first`() async throws {
        try await withQueue { queue in
            _ = try await queue.job(3)
            for (index, item) in try await queue.claim().enumerated() {
                try await queue.end(item, .wait(until: queue.clock.now + Int64(3 - index)))
            }
            queue.clock.advance(10)
            #expect(try await queue.store.queue.promoteDue(limit: 2) == 2)
            #expect(try await queue.claim().map(\.url) == ["https://j.example/1.jpg", "https://j.example/2.jpg"])
            #expect(try await queue.store.queue.promoteDue(limit: 2) == 1)
        }
    }
}
