import Testing

@testable import Jobs

@Suite("The order of claims", .timeLimit(.minutes(15)))
struct ClaimOrderTests {
    private func urls(_ queue: Queue, limit: Int = 64, above: Precedence? = nil) async throws -> [String] {
        try await queue.store.queue.claim(limit: limit, worker: queue.worker, above: above).items
            .map { String($0.url.dropFirst("https://".count)) }
    }

    @Test func `Within a job FIFO takes the oldest item first, LIFO the newest`() async throws {
        try await withQueue { queue in
            _ = try await queue.job(3, name: "old", order: .fifo)
            #expect(try await urls(queue) == ["old.example/0.jpg", "old.example/1.jpg", "old.example/2.jpg"])
            _ = try await queue.job(3, name: "new", order: .lifo)
            #expect(try await urls(queue) == ["new.example/2.jpg", "new.example/1.jpg", "new.example/0.jpg"])
        }
    }

    @Test func `Priority beats order and age, and LIFO goes before FIFO where priorities are equal`() async throws {
        try await withQueue { queue in
            for (name, priority, order) in [
                ("f1", 0, ExecutionOrder.fifo), ("l1", 0, .lifo), ("low", -50, .lifo), ("f2", 0, .fifo),
                ("l2", 0, .lifo),
                ("high", 50, .fifo),
            ] {
                _ = try await queue.job(name: name, priority: priority, order: order)
            }
            let hosts = try await urls(queue).map { String($0.prefix { $0 != "." }) }
            #expect(hosts == ["high", "l2", "l1", "f1", "f2", "low"])
        }
    }

    @Test func `A job without an order takes the worker's`() async throws {
        try await withQueue { queue in
            _ = try await queue.job(name: "a")
            _ = try await queue.job(name: "b")
            let claim = try await queue.store.queue.claim(limit: 1, worker: queue.worker, order: .lifo)
            #expect(claim.items.map(\.url) == ["https://b.example/0.jpg"])
            #expect(claim.jobs.values.map(\.order) == [.lifo])
        }
    }

    @Test func `The newest of very many LIFO jobs goes first`() async throws {
        try await withQueue { queue in
            let rows = (1...1_100).map { "('[\"https://a.example/\($0)\"]', 'lifo')" }.joined(separator: ",")
            try queue.shell.expect("INSERT INTO jobs (urls, execution_order) VALUES \(rows);")
            #expect(try await urls(queue, limit: 1) == ["a.example/1100"])
        }
    }

    @Test(.onSQLite, .enabled(if: Shell.isThere, Shell.missing))
    func `A job with unreadable headers stops no other job, and its problem names them`() async throws {
        try await withQueue { queue in
            try queue.shell.expect(
                #"""
                INSERT INTO jobs (urls, headers, priority) VALUES ('["https://a.example/"]', '{"X-Name":"\ud800"}', 9);
                INSERT INTO jobs (urls, headers) VALUES ('["https://b.example/"]', '{"X-Name":"\ud83d\ude00"}');
                """#)
            let claim = try await queue.store.queue.claim(limit: 2, worker: queue.worker)
            #expect(claim.items.map(\.url) == ["https://a.example/", "https://b.example/"])
            #expect(claim.jobs[1]?.problem?.contains("headers") == true)
            #expect(claim.jobs[2]?.problem == nil)
            #expect(claim.jobs[2]?.headers == ["X-Name": "😀"])
        }
    }

    @Test func `A claim takes items of several jobs up to its limit`() async throws {
        try await withQueue { queue in
            _ = try await queue.job(3, name: "a")
            _ = try await queue.job(3, name: "b")
            #expect(
                try await urls(queue, limit: 4) == [
                    "a.example/0.jpg", "a.example/1.jpg", "a.example/2.jpg", "b.example/0.jpg",
                ])
            #expect(try await urls(queue, limit: 4) == ["b.example/1.jpg", "b.example/2.jpg"])
            #expect(try await urls(queue) == [])
        }
    }

    @Test func `A claim above a job's precedence takes only jobs that come before it`() async throws {
        try await withQueue { queue in
            let middle = try await queue.job(name: "middle", priority: 5, order: .fifo)
            let place = Precedence(priority: 5, order: .fifo, job: middle)
            _ = try await queue.job(name: "later", priority: 5, order: .fifo)
            _ = try await queue.job(name: "lower", priority: 4, order: .lifo)
            #expect(try await urls(queue, above: place) == [])
            _ = try await queue.job(name: "urgent", priority: 6, order: .fifo)
            _ = try await queue.job(name: "newest", priority: 5, order: .lifo)
            #expect(try await urls(queue, above: place) == ["urgent.example/0.jpg", "newest.example/0.jpg"])
        }
    }

    @Test func `A job whose items all have priorities of their own hides no other job from an urgent claim`()
        async throws
    {
        try await withQueue { queue in
            let middle = try await queue.job(name: "middle", priority: 5, order: .fifo)
            let place = Precedence(priority: 5, order: .fifo, job: middle)
            let first = try await queue.job(name: "first", priority: 7, order: .fifo)
            try await queue.store.database.write { db in
                try db.script("UPDATE items SET priority = -50 WHERE job = \(first)")
            }
            _ = try await queue.job(name: "urgent", priority: 6, order: .fifo)
            #expect(try await urls(queue, above: place) == ["urgent.example/0.jpg"])
        }
    }

    @Test func `Paused and cancelled jobs are skipped, and a resumed job is claimed`() async throws {
        try await withQueue { queue in
            let paused = try await queue.job(name: "paused")
            let cancelled = try await queue.job(name: "cancelled")
            _ = try await queue.job(name: "open")
            try await queue.store.control.pause(job: paused)
            try await queue.store.control.cancel(job: cancelled)
            #expect(try await urls(queue) == ["open.example/0.jpg"])
            try await queue.store.control.resume(job: paused)
            #expect(try await urls(queue) == ["paused.example/0.jpg"])
        }
    }

    @Test func `A claim sets its jobs to running and records when they began`() async throws {
        try await withQueue { queue in
            let job = try await queue.job(2)
            #expect(try await queue.progress(job).startedAt == nil)
            _ = try await queue.claim(1)
            let progress = try await queue.progress(job)
            #expect(progress.state == .running)
            #expect(progress.startedAt == "2027-01-15T08:00:00.000Z")
            #expect((progress.queued, progress.active) == (1, 1))
        }
    }

    @Test func `A claimed item has the cached source of its URL`() async throws {
        try await withQueue { queue in
            _ = try await queue.store.queue.enqueue(NewJob(urls: ["https://a.example/a.jpg#top"]))
            let first = try #require(try await queue.claim().first)
            #expect(first.key == "https://a.example/a.jpg")
            #expect(first.source == nil)
            #expect(first.attempts == 0)
            try await queue.end(first, first.completion(clock: queue.clock))
            _ = try await queue.store.queue.enqueue(NewJob(urls: ["https://a.example/a.jpg"]))
            let second = try #require(try await queue.claim().first)
            #expect(second.source?.hash == ClaimedItem.hash(of: first.id))
        }
    }

    @Test func `A claim spares stalled jobs while other jobs of the same priority have items`()
        async throws
    {
        try await withQueue { queue in
            let stuck = try await queue.job(8, name: "stuck")
            let other = try await queue.job(4, name: "other")
            _ = try await queue.job(2, name: "low", priority: -1)
            func hosts(_ sparing: StalledJobPolicy) async throws -> Set<String> {
                let claim = try await queue.store.queue.claim(limit: 2, worker: queue.worker, sparing: sparing)
                return Set(claim.items.map { String($0.url.dropFirst("https://".count).prefix { $0 != "." }) })
            }
            #expect(try await hosts(StalledJobPolicy([stuck: 5])) == ["other"])
            #expect(try await hosts(StalledJobPolicy([stuck: 5, other: 4])) == ["stuck"])
            #expect(try await hosts(StalledJobPolicy([stuck: 5, other: 4], otherwise: .least)) == ["low"])
            #expect(try await hosts(StalledJobPolicy([stuck: 5, other: 4], otherwise: .least)) == ["other"])
            #expect(try await hosts(StalledJobPolicy([stuck: 5], otherwise: .nothing)) == [])
            #expect(try await hosts(StalledJobPolicy([stuck: 5], otherwise: .least)) == ["stuck"])
        }
    }
}
