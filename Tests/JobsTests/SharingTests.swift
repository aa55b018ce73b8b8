import Jobs
import Testing

@Suite("Several workers on one file", .timeLimit(.minutes(15)), .enabled(if: Shell.isThere, Shell.missing))
struct SharingTests {
    /// Claims and finishes until nothing has come for a while.
    private static func work(_ path: String, until isOver: @escaping @Sendable () async throws -> Bool) async throws
        -> [Int64]
    {
        let store = try JobStore(path: path)
        let worker = try await store.workers.register(host: "test", pid: 1)
        let clock = TestClock()
        var ended: [Int64] = []
        while true {
            let items = try await store.queue.claim(limit: 16, worker: worker).items
            let fencedOut = try await store.queue.finish(items.map { ($0, $0.completion(clock: clock)) })
            #expect(fencedOut == [])
            ended += items.map(\.id)
            if items.isEmpty, try await isOver() { break }
            try await store.maintenance.checkpoint(threshold: 1 << 16)
        }
        try await store.workers.unregister(worker: worker)
        try await store.close()
        return ended
    }

    @Test(arguments: [("cache-key=drop-query", 0), ("cache-key=keep:v", 0), (nil, 1)] as [(String?, Int)])
    func `A URL whose cache key is in flight in another worker is not claimed`(
        _ options: String?, _ count: Int
    ) async throws {
        try await withQueue { queue in
            let other = try await queue.store.workers.register(host: "test", pid: 2)
            for signature in 1...2 {
                let urls = ["https://a.example/a.jpg?v=1&sig=\(signature)"]
                _ = try await queue.store.queue.enqueue(NewJob(urls: urls, options: options))
                let worker = signature == 1 ? other : queue.worker
                let claimed = try await queue.store.queue.claim(limit: 1, worker: worker).items.count
                #expect(claimed == (signature == 1 ? 1 : count))
            }
        }
    }

    @Test func `Two stores and a shell at once lose no item, and every item ends exactly once`() async throws {
        try await withQueue { queue in
            let shell = queue.shell, path = queue.path, store = queue.store
            let rounds = 20, perRound = 100
            async let inserted: Void = {
                for round in 0..<rounds {
                    try shell.expect(
                        """
                        INSERT INTO jobs (urls) SELECT json_group_array('https://a.example/\(round)/' || i) FROM
                            (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(perRound)) SELECT i FROM n) AS numbers;
                        """)
                }
            }()
            let isOver: @Sendable () async throws -> Bool = {
                let last = try await store.reports.progress(latest: 1).first
                let backlog = try await store.reports.backlog()
                return last?.job == JobID(rounds) && last?.state == .finished && backlog.isEmpty
            }
            async let one = Self.work(path, until: isOver)
            async let two = Self.work(path, until: isOver)
            let ended = try await one + two
            try await inserted
            #expect(ended.count == rounds * perRound)
            #expect(Set(ended).count == rounds * perRound)
            #expect(
                try shell.expect("SELECT sum(done), sum(bytes), count(*) FROM jobs;") == [
                    "\(rounds * perRound)|\(rounds * perRound * 10)|\(rounds)"
                ])
            if !Queue.isOnPostgres { #expect(try shell.expect("PRAGMA integrity_check;") == ["ok"]) }
        }
    }
}
