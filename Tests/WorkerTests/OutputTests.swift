import Glibc
import TestSupport
import Testing

/// Standard output, standard error and progress, also of large jobs.
@Suite(.serialized, .timeLimit(.minutes(15))) struct OutputTests {
    private struct Summary: Decodable {
        struct Job: Decodable { let job: Int }
        let end: String
        let done, failed: Int
        let jobs: [Job]
    }

    @Test func summariesGoToStandardOutputAndDetailsToStandardError() async throws {
        try await withWorker { w in
            let enqueued = try await w.run("enqueue", w.url("/1.png"), w.url("/missing"))
            #expect(enqueued.output == "1\n" && enqueued.errors.isEmpty)
            let ran = try await w.drain(expecting: 2)
            #expect(ran.lines.count == 1 && ran.output.hasPrefix("1 done, 0 cached, 1 failed, "))
            let lines = ran.errors.split(separator: "\n").map(String.init)
            #expect(lines.first?.hasPrefix("in ") == true && lines.first?.hasSuffix("/s") == true)
            #expect(
                lines.dropFirst() == [
                    "failures of the job: 1 http-404", "worst hosts: 127.0.0.1 (1)",
                    "Try again with: worker retry 1 --retry-failed",
                    "See why with: worker results 1",
                ])
            let quiet = try await w.run(["run", "--drain", "--quiet"] + TestWorker.quick)
            #expect(quiet.errors.isEmpty)
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

    @Test func aRefusalByTheWorkersSettingsIsNoFailureOfAHost() async throws {
        try await withWorker { w in
            try await w.enqueue("http://10.0.0.1/1.png", "file:///1.png")
            let ran = try await w.drain(expecting: 2)
            #expect(ran.errors.contains("1 forbidden-address") && !ran.errors.contains("worst hosts"), "\(ran.errors)")
        }
    }

    @Test func aJobWithADedupeKeyIsAddedOnce() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"), "--dedupe-key", "nightly")
            let again = try await w.run("enqueue", w.url("/1.png"), "--dedupe-key", "nightly")
            #expect(again.output == "1\n")
            #expect(again.errors == "Job 1 with the key 'nightly' is not finished; nothing was added.\n")
            try await w.drain()
            #expect(try await w.enqueue(w.url("/1.png"), "--dedupe-key", "nightly") == "2")
        }
    }

    /// `| head` closes the pipe long before all is written.
    @Test(arguments: ["results 1 --format csv", "results 1", "results 1 --format jsonl"])
    func aClosedPipeEndsResultsWithoutAnError(_ command: String) async throws {
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
    func aTerminalShowsAProgressBar() async throws {
        try await withWorker({ .delayed(milliseconds: 200, then: Pictures.reply($0)) }) { w in
            try await w.enqueue((0..<8).map { w.url("/\($0).png") })
            let command = ([TestWorker.binary, "run", "--drain", "--concurrency", "2"] + TestWorker.quick).joined(
                separator: " ")
            let shown = try await w.run(
                "-qec", "stty cols 120; env -u NO_COLOR \(command)", "/dev/null", program: "script",
                environment: ["TERM": "xterm"])
            #expect(shown.output.contains("\r\u{1B}[Jjob 1 ["))
            #expect(shown.output.contains("\u{1B}[32m#"))
            #expect(shown.output.contains("\rjob 1 [") == false && shown.output.contains("8/8"))
            #expect(shown.output.contains("8 done, 0 cached, 0 failed"))
        }
    }

    @Test(
        .enabled(if: ChildProcess.find("script") != nil, "script(1) is not installed."),
        arguments: [
            (40, "", "the-catalogue-of-all-products"), (40, "NO_COLOR=1", "the-catalogue-of-all-products"),
            (80, "NO_COLOR=1", "the-catalogue-of-all-products"), (24, "NO_COLOR=1", "the-catalogue-of-all-products"),
            (40, "NO_COLOR=1", "商品カタログ画像の一覧表示用サムネイル全部"), (80, "", "商品カタログ画像の一覧表示用サムネイル全部"),
        ])
    func linesFitTheTerminal(_ columns: Int, _ variable: String, _ name: String) async throws {
        try await withWorker({ request in
            .delayed(milliseconds: 150, then: request.path == "/3.png" ? .status(404) : Pictures.reply(request))
        }) { w in
            try await w.enqueue((0..<12).map { w.url("/\($0).png") } + ["--name", name])
            let command = ([TestWorker.binary, "run", "--drain", "--concurrency", "2"] + TestWorker.quick).joined(
                separator: " ")
            let shown = try await w.run(
                "-qec", "stty cols \(columns); env -u NO_COLOR \(variable) \(command)", "/dev/null", program: "script",
                environment: ["TERM": "xterm"], expecting: 2)
            #expect(shown.output.contains("\u{1B}[31m") == variable.isEmpty)
            // What is drawn in place, without its colours.
            let drawn = shown.output.replacing(/\x1B\[[0-9;]*[A-Za-z]/, with: "")
                .split(whereSeparator: \.isNewline).flatMap { $0.split(separator: "\r") }
                .prefix { !$0.hasSuffix("downloaded") }
            #expect(drawn.contains { $0.hasPrefix(name.prefix(4)) })
            // A Chinese character takes two columns.
            let widths = drawn.map { $0.unicodeScalars.reduce(0) { $0 + ($1.value > 0x2E80 ? 2 : 1) } }
            #expect(widths.allSatisfy { $0 <= max(columns, 24) }, "\(drawn)")
        }
    }

    @Test func statusWithWatchPrintsLinesWithoutATerminal() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"), "--name", "shop")
            _ = try w.start()
            let watched = try await w.run("status", "1", "--watch")
            #expect(watched.lines.first.map { $0.hasPrefix("shop") || $0.hasPrefix("job 1 (shop)") } == true)
            #expect(watched.lines.contains { $0.hasPrefix("job 1 (shop): finished, 1 of 1 ended") })
            try await w.stopAll()
        }
    }

    /// One statement adds a hundred thousand URLs: status answers at once and the worker stays small.
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
