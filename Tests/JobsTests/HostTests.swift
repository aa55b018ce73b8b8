import Core
import Jobs
import Testing

@Suite("The state of hosts", .timeLimit(.minutes(15)))
struct HostTests {
    private func item(_ queue: Queue, _ url: String) async throws -> ClaimedItem {
        _ = try await queue.store.queue.enqueue(NewJob(urls: [url]))
        return try #require(try await queue.claim().first)
    }

    @Test func `A host's wait survives a restart, and a clock that is set back does not lengthen it`() async throws {
        try await withQueue { queue in
            let item = try await item(queue, "https://a.example/")
            let now = queue.clock.now
            try await queue.end(
                item, .retry(at: now + 3_600_000, Failure(.http(429), "m"), blockingHost: true))
            let again = try JobStore(path: queue.path, now: { queue.clock.now })
            let memory = try #require(try await again.hosts.memories().first)
            let steady = queue.clock.steady
            #expect(memory.remaining(at: steady + 600_000) == 3_000_000)
            #expect(memory.remaining(at: steady - 86_400_000) == 3_600_000)
            #expect(memory.remaining(at: steady + 86_400_000) == 0)
            try await again.close()
        }
    }

    @Test func `A delayed item comes back even if the clock is set back by a day`() async throws {
        try await withQueue { queue in
            let item = try await item(queue, "https://a.example/")
            try await queue.end(item, .wait(until: queue.clock.now + 60_000))
            #expect(try await queue.store.queue.promoteDue() == 0)
            queue.clock.advance(-86_400_000)
            #expect(try await queue.store.queue.promoteDue() == 1)
        }
    }

    @Test(.onSQLite) func `A delayed item shows the host, the reason and the end of its wait`() async throws {
        try await withQueue { queue in
            let item = try await item(queue, "https://a.example/1")
            try await queue.end(
                item, .wait(until: queue.clock.now + 5_000, host: "a.example", reason: "It is busy."))
            #expect(
                try queue.shell.expect("SELECT host, reason, attempts, until IS NOT NULL FROM waiting;") == [
                    "a.example|It is busy.|0|1"
                ])
            let status = try #require(try await queue.store.hosts.statuses().first)
            #expect((status.host, status.waiting, status.running) == ("a.example", 1, 0))
            #expect(try await queue.store.queue.promote(waitingFor: "a.example", limit: 9) == 1)
        }
    }

    @Test func `A host is blocked by the failure of a last try, and by a failure behind a stale result`()
        async throws
    {
        try await withQueue { queue in
            let now = queue.clock.now
            var busy = Failure(.http(429), "m")
            busy.blocksHostUntil = now + 60_000
            try await queue.end(try await item(queue, "https://a.example/"), .failed(busy))
            let stale = try await item(queue, "https://b.example/")
            guard case .done(let completion) = stale.completion(cached: true, clock: queue.clock) else { return }
            try await queue.end(stale, .done(completion.concealing(busy)))
            #expect(try await queue.store.hosts.blocked() == ["a.example": now + 60_000, "b.example": now + 60_000])
            let failures = try await queue.store.hosts.statuses().map(\.failures)
            #expect(failures == [["http-429": 1], ["http-429": 1]])
        }
    }

    @Test func `Failures are counted by host and class`() async throws {
        try await withQueue { queue in
            for url in ["https://a.example/1", "https://a.example/2", "https://b.example/1"] {
                try await queue.end(try await item(queue, url), .failed(.http(404)))
            }
            try await queue.end(try await item(queue, "https://a.example/3"), .failed(.timeout))
            let statuses = try await queue.store.hosts.statuses()
            #expect(statuses.first { $0.host == "a.example" }?.failures == ["http-404": 2, "timeout": 1])
            #expect(statuses.first { $0.host == "b.example" }?.failures == ["http-404": 1])
        }
    }

    @Test func `A worker's load on a host counts while the worker lives`() async throws {
        try await withQueue { queue in
            let load = [HostLoad(host: "a.example", running: 3, waiting: 4, rate: 1.5)]
            let memory = HostMemory(
                host: "a.example", notBefore: queue.clock.steady + 30_000, setAt: queue.clock.steady,
                reason: "circuit-open",
                width: 0.5, circuitOpenCount: 1)
            try await queue.store.hosts.save(hosts: [memory])
            let demands = load.map { HostDemand(load: $0, limit: 6, share: nil) }
            _ = try await queue.store.hosts.takeShares(demands, worker: queue.worker, isSharing: false, wasIdle: true)
            // Asked from another opening, as a command is: a process doesn't see its own lock.
            let other = try JobStore(path: queue.path, now: { queue.clock.now })
            let status = try #require(try await other.hosts.statuses().first)
            #expect((status.running, status.waiting, status.rate, status.reason) == (3, 4, 1.5, "circuit-open"))
            #expect(status.notBefore == queue.clock.now + 30_000)
            #expect(status.width == 0.5)
            try await queue.store.workers.unregister(worker: queue.worker)
            #expect(try await other.hosts.statuses().first?.running == 0)
            try await other.close()
        }
    }

    @Test func `Limits are changed one by one, and reset`() async throws {
        try await withQueue { queue in
            try await queue.store.hosts.setLimits(LimitsRecord(host: "*", concurrency: 3))
            try await queue.store.hosts.setLimits(LimitsRecord(host: "*", perHost: 2))
            try await queue.store.hosts.setLimits(LimitsRecord(host: "A.example", rate: 5, burst: 10))
            #expect(
                try await queue.store.hosts.limits() == [
                    LimitsRecord(host: "*", concurrency: 3, perHost: 2),
                    LimitsRecord(host: "a.example", rate: 5, burst: 10),
                ])
            #expect(try await queue.store.hosts.resetLimits(host: "a.example"))
            #expect(try await !queue.store.hosts.resetLimits(host: "a.example"))
        }
    }

    static let wrong = [
        ("INSERT INTO limits (host, per_host) VALUES ('a', 0);", "per_host is a whole number from 1 to 1000"),
        ("INSERT INTO limits (host, per_host) VALUES ('a', 'x');", "per_host is a whole number from 1 to 1000"),
        ("INSERT INTO limits (host, rate) VALUES ('a', -1);", "rate is a number of requests a second"),
        (
            "INSERT INTO limits (host, concurrency) VALUES ('a', 3);",
            "concurrency is a whole number from 1 to 1000, and of the row '*' only"
        ),
    ]

    @Test(.onSQLite, .enabled(if: Shell.isThere, Shell.missing), arguments: wrong.indices)
    func `Invalid limits are refused by the statement`(_ index: Int) async throws {
        try await withQueue { queue in
            let (statement, message) = Self.wrong[index]
            let answer = try queue.shell.run(statement)
            #expect(answer.errors.contains(message))
        }
    }

    @Test func `A URL in flight in another worker is claimed only after that item has ended`() async throws {
        try await withQueue { queue in
            _ = try await queue.store.queue.enqueue(NewJob(urls: ["https://a.example/1#x"]))
            let mine = try await queue.claim()
            let other = try await queue.store.workers.register(host: "test", pid: 2)
            _ = try await queue.store.queue.enqueue(NewJob(urls: ["https://a.example/1", "https://a.example/2"]))
            let theirs = try await queue.store.queue.claim(limit: 9, worker: other).items
            #expect(theirs.map(\.url) == ["https://a.example/2"])
            for item in mine + theirs { try await queue.end(item, item.completion(clock: queue.clock)) }
            queue.clock.advance(300)
            #expect(try await queue.store.queue.promoteDue() == 1)
            let later = try await queue.store.queue.claim(limit: 9, worker: other).items
            #expect(later.map(\.url) == ["https://a.example/1"])
            #expect(later.first?.source != nil)
            #expect(later.first?.attempts == 0)
        }
    }

    @Test func `A claim for the oldest job takes its items in spite of a low priority`() async throws {
        try await withQueue { queue in
            let old = try await queue.job(2, name: "old", priority: -100)
            _ = try await queue.job(2, name: "new", priority: 100)
            let claim = try await queue.store.queue.claim(limit: 1, worker: queue.worker, eldest: true)
            #expect(claim.items.map(\.job) == [old])
        }
    }
}
