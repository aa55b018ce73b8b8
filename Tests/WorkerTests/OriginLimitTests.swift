import Glibc
import TestSupport
import Testing

/// What an origin sees of all workers of a database together, while workers come, go and die.
@Suite("Limits at the origin", .serialized, .timeLimit(.minutes(15)))
struct OriginLimitTests {
    private static let perHost = 3

    private func withSlowOrigin(
        onPostgres: Bool = false, _ body: (TestWorker) async throws -> Void,
    ) async throws {
        let handler: @Sendable (LoopbackOrigin.Request) -> LoopbackReply = {
            .delayed(milliseconds: 60, then: Pictures.reply($0))
        }
        try await onPostgres ? withPostgres(handler, body) : withWorker(handler, body)
    }

    private func start(_ w: TestWorker) async throws -> RunningProgram {
        try await w.startRegistered("--per-host", "\(Self.perHost)", "--lease", "3s")
    }

    /// How many requests there were beyond the first of each URL.
    private func repeated(_ w: TestWorker) -> Int {
        let paths = w.origin.requests.map(\.path)
        return paths.count - Set(paths).count
    }

    private enum Change: CaseIterable {
        case join, leave, kill
    }

    @Test(arguments: [1, 2, 4]) func theLimitHoldsWhileWorkersJoinLeaveAndDie(atMost most: Int) async throws {
        try await joinLeaveAndDie(atMost: most)
    }

    @Test(
        .enabled(if: PostgresServer.isAvailable, Comment(rawValue: PostgresServer.missing)), arguments: [1, 2, 4])
    func theLimitHoldsOnPostgresWhileWorkersJoinLeaveAndDie(atMost most: Int) async throws {
        try await joinLeaveAndDie(onPostgres: true, atMost: most)
    }

    private func joinLeaveAndDie(onPostgres: Bool = false, atMost most: Int) async throws {
        try await withSlowOrigin(onPostgres: onPostgres) { w in
            try await w.run("init")
            try await w.enqueue((0..<500).map { w.url("/\($0).png") })
            var random = SeededGenerator(seed: UInt64(most))
            var workers = [try await start(w)]
            var deaths = 0
            while try await w.value("SELECT state FROM jobs") != "finished" {
                switch Change.allCases.randomElement(using: &random) {
                case .join where workers.count < most: workers.append(try await start(w))
                case .leave where workers.count > 1:
                    let worker = workers.removeFirst()
                    worker.send(SIGTERM)
                    #expect(try await worker.wait() == .code(0))
                case .kill where w.origin.requests.count < 350:
                    let worker = workers.removeLast()
                    worker.send(SIGKILL)
                    _ = try await worker.wait()
                    deaths += 1
                    if workers.isEmpty { workers.append(try await start(w)) }
                default: break
                }
                try await Task.sleep(for: .milliseconds(Int.random(in: 100...600, using: &random)))
            }
            #expect(try await w.value("SELECT done + cached FROM jobs") == "500")
            #expect(w.origin.maxSimultaneous <= Self.perHost)
            // What was in flight, and what had been fetched and was not yet recorded.
            #expect(repeated(w) <= deaths * 32, "\(deaths) deaths")
            try await w.stopAll()
        }
    }

    @Test func nothingIsFetchedTwiceIfNoWorkerDies() async throws {
        try await withSlowOrigin { w in
            try await w.run("init")
            var workers = [try await start(w), try await start(w)]
            try await w.enqueue((0..<300).map { w.url("/\($0).png") })
            for _ in 0..<3 {
                try await Task.sleep(for: .milliseconds(700))
                workers.append(try await start(w))
                let worker = workers.removeFirst()
                worker.send(SIGTERM)
                #expect(try await worker.wait() == .code(0))
            }
            try await w.untilEnded("1")
            #expect(w.origin.maxSimultaneous <= Self.perHost)
            #expect(repeated(w) == 0)
            try await w.stopAll()
        }
    }

    private func enqueueMany(_ folder: String, _ w: TestWorker) async throws {
        try await w.sql(
            """
            WITH RECURSIVE n (i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n WHERE i < 5999)
            INSERT INTO jobs (urls) SELECT json_group_array('\(w.url(folder))' || i || '.png') FROM n
            """)
    }

    /// The others take its slots and its items, and share with it again once it continues.
    @Test func aWorkerThatWasSuspendedBeyondItsLeaseSharesAgain() async throws {
        try await withSlowOrigin { w in
            try await w.run("init")
            let suspended = try await start(w)
            _ = try await start(w)
            _ = try await start(w)
            try await enqueueMany("/", w)
            let taking = "SELECT count(*) FROM host_load WHERE host = '127.0.0.1' AND running > 0"
            try await w.eventually("all fetch") { try await w.value(taking) == "3" }
            try await w.freeze(suspended.pid)
            // Others wait 20 s for a silent worker.
            let slotsOfOthers = """
                SELECT sum(share) FROM host_load WHERE host = '127.0.0.1'
                    AND worker IN (SELECT id FROM workers WHERE pid <> \(suspended.pid))
                """
            try await w.eventually("the others have all slots", within: .seconds(40)) {
                try await w.value(slotsOfOthers) == "\(Self.perHost)"
            }
            #expect(kill(suspended.pid, SIGCONT) == 0)
            // The others have taken all items in hand, also those that it held.
            try await enqueueMany("/more/", w)
            try await w.eventually("all fetch again", within: .seconds(20)) {
                try await w.value(taking + " AND share > 0") == "3"
            }
            // Before the jobs are cancelled: a request whose worker has gone counts until the origin notices that.
            #expect(w.origin.maxSimultaneous <= Self.perHost)
            try await w.run("cancel", "1")
            try await w.run("cancel", "2")
            try await w.stopAll()
        }
    }
}
