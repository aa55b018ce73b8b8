import TestSupport
import Testing

/// The order of items and jobs, and work that several jobs share.
@Suite(.serialized, .timeLimit(.minutes(15))) struct SchedulingTests {
    /// What a gate holds back is no silent origin, however long a busy machine takes until it is opened.
    private static let patient = ["--allow-addresses", "loopback", "--silence-timeout", "5m", "--total-timeout", "5m"]

    @Test func anUrgentJobStartsNext() async throws {
        let gate = Gate()
        try await withWorker({ request in
            if request.path == "/2.png" { gate.wait() }
            return Pictures.reply(request)
        }) { w in
            try await w.run("init")
            try await w.enqueue((0..<300).map { w.url("/\($0).png") }, "--priority", "-10")
            _ = try w.start(["--concurrency", "1"] + Self.patient)
            try await w.eventually("one is in flight") { w.origin.requestCount("/2.png") == 1 }
            try await w.enqueue((500..<503).map { w.url("/\($0).png") }, "--priority", "50")
            try await w.eventually("they are claimed") {
                try await w.value("SELECT active FROM jobs WHERE id = 2") == "3"
            }
            try await Task.sleep(for: .milliseconds(300))
            gate.open()
            try await w.untilEnded("2")
            // It need not be the third: those of one claim come to the downloader each by itself.
            let after = w.origin.requests.map(\.path).drop { $0 != "/2.png" }.dropFirst()
            #expect(after.prefix(3) == ["/500.png", "/501.png", "/502.png"])
            // It may have ended by now.
            try await w.run("cancel", "1", expecting: nil)
        }
    }

    /// One slot: the first is in flight, six wait, and seven more come.
    @Test(arguments: [("fifo", Array(1...14)), ("lifo", [1] + (8...14).reversed() + (2...7).reversed())])
    func itemsOfOnePriorityRunInTheWorkersOrder(_ order: String, _ expected: [Int]) async throws {
        let gate = Gate()
        try await withWorker({ request in
            gate.wait()
            return Pictures.reply(request)
        }) { w in
            try await w.run("init")
            _ = try w.start(["--concurrency", "1", "--order", order] + Self.patient)
            try await w.enqueue(w.url("/1.png"))
            try await w.eventually("the first is in flight") { w.origin.requests.count == 1 }
            try await w.enqueue((2...7).map { w.url("/\($0).png") })
            try await w.enqueue((8...14).map { w.url("/\($0).png") })
            try await w.eventually("all are claimed") { try await w.value("SELECT sum(active) FROM jobs") == "14" }
            // Claimed is not yet waiting for its turn, but nearly.
            try await Task.sleep(for: .milliseconds(300))
            gate.open()
            for job in ["1", "2", "3"] { try await w.untilEnded(job) }
            #expect(w.origin.requests.map(\.path) == expected.map { "/\($0).png" })
        }
    }

    /// A job's own order overrides the worker's.
    @Test func aJobsItemsRunInItsOwnOrder() async throws {
        try await withWorker { w in
            try await w.enqueue((1...7).map { w.url("/\($0).png") }, "--order", "lifo")
            try await w.drain("--concurrency", "1")
            #expect(w.origin.requests.map(\.path) == (1...7).reversed().map { "/\($0).png" })
        }
    }

    @Test func concurrentItemsOfOneURLAreCoalesced() async throws {
        try await withWorker({ .delayed(milliseconds: 300, then: Pictures.reply($0)) }) { w in
            let shared = w.url("/1.png")
            for job in 0..<3 { try await w.enqueue(shared, w.url("/\(10 + job).png"), shared, shared + "#top") }
            try await w.drain()
            #expect(w.origin.requestCount("/1.png") == 1)
            #expect(w.origin.requests.count == 4)
            #expect(
                try await w.rows("SELECT state, total, done + cached, failed FROM jobs") == [
                    "finished|4|4|0", "finished|4|4|0", "finished|4|4|0",
                ])
        }
    }

    @Test func tenJobsOfOneImageShareOneFetch() async throws {
        try await withWorker({ _ in .delayed(milliseconds: 200, then: .ok(TestImages.png(160, 120))) }) { w in
            for size in 1...10 { try await w.enqueue(w.url("/a"), "--variant", "v=\(size * 12)x\(size * 9),png") }
            try await w.drain()
            #expect(w.origin.requests.count == 1)
            #expect(
                try await w.rows("SELECT job, width, height FROM results WHERE variant = 'v' ORDER BY job")
                    == (1...10).map { "\($0)|\($0 * 12)|\($0 * 9)" })
        }
    }

    @Test func tenSizesInOneJobComeFromOneFetch() async throws {
        try await withWorker({ _ in .ok(TestImages.png(160, 120)) }) { w in
            let variants = (1...10).flatMap { ["--variant", "v\($0)=\($0 * 12)x,webp"] }
            try await w.run(["enqueue", w.url("/a")] + variants)
            try await w.drain()
            #expect(w.origin.requests.count == 1)
            #expect(
                try await w.value("SELECT count(*), count(DISTINCT width) FROM results WHERE variant <> 'original'")
                    == "10|10")
        }
    }

    @Test func severalWorkersShareTheItemsOfAJob() async throws {
        try await withWorker({ .delayed(milliseconds: 20, then: Pictures.tiny($0)) }) { w in
            try await w.run("init")
            try await w.sql(
                """
                CREATE TABLE claims (item INTEGER, worker INTEGER);
                CREATE TRIGGER count_claims AFTER UPDATE OF state ON items WHEN NEW.state = 'active' BEGIN
                    INSERT INTO claims SELECT NEW.id, worker FROM leases WHERE id = NEW.lease;
                END;
                WITH RECURSIVE numbers (n) AS (VALUES (0) UNION ALL SELECT n + 1 FROM numbers WHERE n < 899)
                INSERT INTO jobs (state, urls)
                    SELECT 'paused', json_group_array('\(w.url("/"))' || n || '.png') FROM numbers
                """)
            _ = try await w.startRegistered()
            _ = try await w.startRegistered()
            try await w.run("resume", "1")
            try await w.untilEnded("1", within: .seconds(60))
            #expect(try await w.counts("1") == "900|0|0|0|0")
            #expect(
                try await w.value("SELECT count(*), count(DISTINCT item), count(DISTINCT worker) FROM claims")
                    == "900|900|2")
            #expect(w.origin.requests.count == 900)
            #expect(Set(w.origin.requests.map(\.path)).count == 900)
        }
    }

    @Test(arguments: [
        ("thumb=nonsense", "", "thumb"), ("thumb=10x10,cvoer", "", "did you mean cover?"),
        ("", "retry-faild", "Unknown option 'retry-faild'."), ("{", "", ""),
        ("a=10x10 a=20x20", "", "a"),
    ])
    func anInvalidJobFailsAloneWithAReason(_ variants: String, _ options: String, _ reason: String)
        async throws
    {
        try await withWorker { w in
            try await w.run("init")
            for (variants, options) in [("t=8x8", ""), (variants, options), ("t=9x9", "retry-failed")] {
                try await w.sql(
                    """
                    INSERT INTO jobs (variants, options, urls)
                    VALUES ('\(variants)', '\(options)', json_array('\(w.url("/1.png"))', '\(w.url("/2.png"))'))
                    """)
            }
            let ended = try await w.drain(expecting: 2)
            #expect(
                try await w.rows("SELECT state, done + cached, cancelled FROM jobs") == [
                    "finished|2|0", "failed|0|2", "finished|2|0",
                ])
            let error = try await w.value("SELECT error FROM jobs WHERE id = 2")
            #expect(!error.isEmpty && error.contains(reason), "\(error)")
            #expect(ended.errors.contains(error))
            #expect(try await w.run("status", "2").output.contains("error: \(error)"))
        }
    }
}
