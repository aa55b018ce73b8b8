import Glibc
import TestSupport
import Testing

/// `worker warm`, as cron and systemd timers call it.
@Suite(.timeLimit(.minutes(15))) struct WarmTests {
    private struct Report: Decodable {
        struct Job: Decodable {
            let job: Int
            let done, cached, failed: Int
            let state: String
        }
        struct Failure: Decodable, Equatable {
            let `class`, host: String
            let count: Int
        }
        let batch: String
        let job: Job
        let failures: [Failure]
    }

    private func manifest(_ w: TestWorker, _ name: String, _ urls: [String]) throws -> String {
        try w.file(name, "urls:\n" + urls.map { "  - \($0)\n" }.joined() + "variants: thumb=16x12,webp\n")
    }

    @Test func `A batch is enqueued, run and reported in one line`() async throws {
        try await withWorker { w in
            try await w.run("init")
            let batch = try manifest(w, "shop.yaml", (0..<3).map { w.url("/\($0).png") })
            let first = try await w.run(["warm", batch] + TestWorker.quick)
            #expect(first.output.hasPrefix("warm shop: job 1: 3 done, 0 cached, 0 failed, "))
            #expect(first.lines.count == 1)
            let second = try await w.run(["warm", batch] + TestWorker.quick)
            #expect(second.output == "warm shop: job 2: 0 done, 3 cached, 0 failed, 0 B downloaded\n")
        }
    }

    @Test func `Failures are counted by class and host, and the line names the command that shows more`() async throws {
        try await withWorker { w in
            try await w.run("init")
            let list = try w.file(
                "list.txt", "\(w.url("/0.png"))\n\(w.url("/none"))\n\(w.url("/gone"))\nhttp://127.0.0.1:1/b\nnothing\n")
            let told = try await w.run(["warm", list, "--max-tries", "1"] + TestWorker.quick, expecting: 2)
            #expect(told.errors.contains("line 5: ") && told.errors.contains("1 URL was left out"), "\(told.errors)")
            #expect(
                told.output.hasSuffix(
                    "; 2 http-404 at 127.0.0.1, 1 connect at 127.0.0.1; see: worker results 1\n"), "\(told.output)")
            let reports = try await w.run(
                ["warm", list, "--json", "--max-tries", "1"] + TestWorker.quick, expecting: 2
            )
            .json([Report].self)
            #expect(reports.map(\.batch) == ["list"])
            #expect(reports[0].job.cached == 1)
        }
    }

    @Test func `A warm run waits for its own jobs only`() async throws {
        let gate = Gate()
        try await withWorker({ request in
            if request.path == "/slow.png" { gate.wait() }
            return Pictures.reply(request)
        }) { w in
            defer { gate.open() }
            try await w.enqueue(w.url("/slow.png"), "--priority", "50")
            let batch = try manifest(w, "a.yaml", [w.url("/1.png")])
            let told = try await w.run(["warm", batch, "--grace", "100ms"] + TestWorker.quick)
            #expect(told.output.contains("1 done"))
            #expect(try await w.value("SELECT state FROM items WHERE job = 1") == "queued")
        }
    }

    @Test func `A second warm run of the same batch ends with 75`() async throws {
        let gate = Gate()
        try await withWorker({ request in
            gate.wait()
            return Pictures.reply(request)
        }) { w in
            try await w.run("init")
            let batch = try manifest(w, "a.yaml", [w.url("/1.png")])
            let first = try w.start([batch] + TestWorker.quick, command: "warm")
            try await w.eventually("it works") {
                try await w.value("SELECT count(*) FROM items WHERE state = 'active'") == "1"
            }
            let second = try await w.run(["warm", batch] + TestWorker.quick, expecting: 75)
            #expect(second.errors.contains("a is being warmed by another program"))
            // Another batch has a mark of its own.
            let other = try manifest(w, "b.yaml", ["http://127.0.0.1:1/b"])
            _ = try await w.run(["warm", other, "--max-tries", "1"] + TestWorker.quick, expecting: 2)
            gate.open()
            #expect(try await first.wait() == .code(0))
            #expect(try await w.value("SELECT count(*) FROM jobs") == "2")
        }
    }

    @Test func `A stopped batch goes on with the next warm run, and is not enqueued twice`() async throws {
        let gate = Gate()
        try await withWorker({ request in
            if request.path == "/2.png" { gate.wait() }
            return Pictures.reply(request)
        }) { w in
            try await w.run("init")
            let batch = try manifest(w, "a.yaml", [w.url("/1.png"), w.url("/2.png")])
            let first = try w.start([batch, "--grace", "100ms"] + TestWorker.quick, command: "warm")
            try await w.eventually("one is done") {
                try await w.value("SELECT count(*) FROM items WHERE state = 'done'") == "1"
            }
            first.send(SIGTERM)
            #expect(try await first.wait() == .code(75))
            gate.open()
            let told = try await w.run(["warm", batch] + TestWorker.quick)
            #expect(told.output.hasPrefix("warm a: job 1: 2 done, "))
        }
    }

    @Test func `A warm run without a database or a batch is refused`() async throws {
        try await withWorker { w in
            let batch = try manifest(w, "a.yaml", [w.url("/1.png")])
            let told = try await w.run(["warm", batch] + TestWorker.quick, expecting: 73)
            #expect(told.errors.contains("worker init"), "\(told.errors)")
            #expect(access(w.database, F_OK) != 0)
            try await w.run("init")
            _ = try await w.run(["warm", w.place("none.yaml")], expecting: 64)
            _ = try await w.run(["warm", try w.file("empty.txt", "# nothing\n")], expecting: 64)
        }
    }
}
