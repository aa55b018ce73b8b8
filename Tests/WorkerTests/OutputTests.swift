import Glibc
import TestSupport
import Testing

/// What goes where, and how much of it a large job makes.
@Suite(.serialized, .timeLimit(.minutes(15))) struct OutputTests {
    private struct Summary: Decodable {
        struct Job: Decodable { let job: Int }
        let end: String
        let done, failed: Int
        let jobs: [Job]
    }

    @Test func resultsGoToStandardOutputAndTheRestToStandardError() async throws {
        try await withWorker { w in
            let enqueued = try await w.run("enqueue", w.url("/1.png"), w.url("/missing"))
            #expect(enqueued.output == "1\n" && enqueued.errors.isEmpty)
            let ran = try await w.drain(expecting: 2)
            #expect(ran.lines.count == 1 && ran.output.hasPrefix("1 done, 0 cached, 1 failed, "))
            #expect(ran.errors == "See why with: worker results 1\n")
            #expect(!ran.errors.contains("\u{1B}"))
            let json = try await w.run("enqueue", w.url("/2.png"), "--json")
            #expect(json.output == #"{"job":2,"urls":1}"# + "\n")
            let summary = try await w.drain("--json").json(Summary.self)
            #expect(
                summary.end == "drained" && summary.done == 1 && summary.failed == 0 && summary.jobs.map(\.job) == [2])
            let verified = try await w.run("cache", "verify", "--json")
            #expect(verified.output.contains(#""good":2"#) && verified.errors.isEmpty)
        }
    }

    @Test func aJobWithAKeyIsTakenOnce() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"), "--dedupe-key", "nightly")
            let again = try await w.run("enqueue", w.url("/1.png"), "--dedupe-key", "nightly")
            #expect(again.output == "1\n")
            #expect(again.errors == "Job 1 with the key 'nightly' is not finished; nothing was added.\n")
            try await w.drain()
            #expect(try await w.enqueue(w.url("/1.png"), "--dedupe-key", "nightly") == "2")
        }
    }

    /// `| head` has seen enough long before all is written.
    @Test(arguments: ["results 1 --format csv", "results 1", "results 1 --format jsonl"])
    func aReaderMayLeaveEarly(_ command: String) async throws {
        try await withWorker { w in
            try await w.run("init")
            try await many(4_000, "from-cache-only", w)
            try await w.drain("-q", expecting: 2)
            let piped = try await w.run(
                "-c", "\(TestWorker.binary) \(command) | head -1; echo ${PIPESTATUS[0]}", program: "bash")
            #expect(piped.lines.count == 2)
            #expect(["0", "141"].contains(piped.lines.last))
            #expect(piped.errors.isEmpty)
        }
    }

    @Test(.enabled(if: ChildProcess.find("script") != nil, "script(1) is not installed."))
    func aTerminalGetsABar() async throws {
        try await withWorker({ .delayed(milliseconds: 200, then: Pictures.reply($0)) }) { w in
            try await w.enqueue((0..<8).map { w.url("/\($0).png") })
            let command = ([TestWorker.binary, "run", "--drain", "--concurrency", "2"] + TestWorker.quick).joined(
                separator: " ")
            let shown = try await w.run(
                "-qec", "stty cols 120; \(command)", "/dev/null", program: "script", environment: ["TERM": "xterm"])
            #expect(shown.output.contains("\r\u{1B}[2K["))
            #expect(shown.output.contains("#"))
            #expect(shown.output.contains("8 done, 0 cached, 0 failed"))
        }
    }

    /// One statement, a hundred thousand URLs: the queue answers and the worker stays small.
    @Test func aHugeJobNeedsNoMoreMemory() async throws {
        try await withWorker({ _ in .status(404) }) { w in
            try await w.run("init")
            try await many(100_000, "", w)
            let child = try w.start("--concurrency", "16", "--per-host", "16")
            try await Task.sleep(for: .seconds(2))
            let clock = ContinuousClock()
            let asked = clock.now
            let status = try await w.run("status", "1")
            #expect(clock.now - asked < .seconds(2))
            #expect(status.output.contains("of 100000 ended"))
            let memory = try #require(child.peakMemory)
            #expect(memory < 250, "MiB")
            child.send(SIGTERM)
            #expect(try await child.wait() == .code(0))
            #expect(try await w.value("SELECT failed > 100, active, failed + queued FROM jobs") == "1|0|100000")
        }
    }

    private func many(_ count: Int, _ options: String, _ w: TestWorker) async throws {
        try await w.sql(
            """
            WITH RECURSIVE numbers (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM numbers WHERE n < \(count))
            INSERT INTO jobs (options, urls) SELECT '\(options)',
                json_group_array('\(w.url("/missing/"))' || n || '.png') FROM numbers
            """)
    }
}
