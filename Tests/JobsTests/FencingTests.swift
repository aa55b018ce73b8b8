import Core
import Jobs
import Testing

@Suite("Fencing", .timeLimit(.minutes(15)))
struct FencingTests {
    static let endings: [ItemEnding] = [
        .failed(.timeout), .failed(.badImage), .release, .wait(until: WallTime(milliseconds: 5)),
        .retry(at: WallTime(milliseconds: 5), Failure(.timeout, "m"), blockingHost: true),
    ]

    @Test func `A finish with a reclaimed lease changes nothing and is reported`() async throws {
        try await withQueue { queue in
            let job = try await queue.job()
            let old = try #require(try await queue.claim().first)
            try await queue.store.workers.unregister(worker: queue.worker)
            let worker = try await queue.store.workers.register(host: "test", pid: 2)
            let new = try #require(try await queue.store.queue.claim(limit: 1, worker: worker).items.first)
            #expect(new.id == old.id)
            let before = try await queue.progress(job)
            for ending in Self.endings + [old.completion(clock: queue.clock)] {
                #expect(try await queue.store.queue.finish([(old, ending)]) == [old.id])
            }
            #expect(try await queue.progress(job) == before)
            #expect(try await queue.store.blacklist.entries() == [])
            #expect(try await queue.store.cache.source(key: old.key) == nil)
            try await queue.end(new, new.completion(clock: queue.clock))
            #expect(try await queue.progress(job).done == 1)
        }
    }

    @Test func `An item is finished once, and a second finish is fenced out`() async throws {
        try await withQueue { queue in
            let job = try await queue.job()
            let item = try #require(try await queue.claim().first)
            let ending = item.completion(clock: queue.clock)
            #expect(try await queue.store.queue.finish([(item, ending), (item, .failed(.badImage))]) == [item.id])
            #expect(try await queue.store.queue.finish([(item, ending)]) == [item.id])
            let progress = try await queue.progress(job)
            #expect((progress.done, progress.failed, progress.bytes) == (1, 0, 10))
        }
    }

    @Test func `A finish reports deleted items and records the others of the group`() async throws {
        try await withQueue { queue in
            let job = try await queue.job(3)
            let items = try await queue.claim()
            try queue.shell.expect("DELETE FROM items WHERE id = \(items[1].id);")
            let group = items.map { (item: $0, ending: $0.completion(clock: queue.clock)) }
            #expect(try await queue.store.queue.lost(of: items) == [items[1].id])
            #expect(try await queue.store.queue.finish(group) == [items[1].id])
            let progress = try await queue.progress(job)
            #expect((progress.total, progress.done, progress.state) == (2, 2, .finished))
        }
    }

    @Test func `A job whose last open item is deleted is finished`() async throws {
        try await withQueue { queue in
            let job = try await queue.job(2)
            let items = try await queue.claim()
            try await queue.end(items[0], items[0].completion(clock: queue.clock))
            try queue.shell.expect("DELETE FROM items WHERE id = \(items[1].id);")
            let progress = try await queue.progress(job)
            #expect(progress.state == .finished)
            #expect(progress.finishedAt != nil)
        }
    }

    @Test func `A deleted job takes its items along, and a finish does not bring them back`() async throws {
        try await withQueue { queue in
            let job = try await queue.job(2)
            let items = try await queue.claim()
            try queue.shell.expect("DELETE FROM jobs WHERE id = \(job);")
            #expect(try await queue.store.queue.finish(items.map { ($0, .release) }) == Set(items.map(\.id)))
            #expect(try queue.shell.expect("SELECT count(*) FROM items;") == ["0"])
        }
    }

    @Test func `A finish after a cancel is fenced out`() async throws {
        try await withQueue { queue in
            let job = try await queue.job()
            let item = try #require(try await queue.claim().first)
            try await queue.store.control.cancel(job: job)
            #expect(try await queue.store.queue.finish([(item, item.completion(clock: queue.clock))]) == [item.id])
            let progress = try await queue.progress(job)
            #expect((progress.state, progress.cancelled, progress.done) == (.cancelled, 1, 0))
        }
    }

    @Test func `A released item is claimed again with a new lease and no try used`() async throws {
        try await withQueue { queue in
            _ = try await queue.job()
            let first = try #require(try await queue.claim().first)
            try await queue.end(first, .release)
            let second = try #require(try await queue.claim().first)
            #expect((second.id, second.attempts) == (first.id, 0))
            #expect(second.lease != first.lease)
        }
    }
}
