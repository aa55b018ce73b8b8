import Glibc
import TestSupport
import Testing

/// The log lines of a run, for people, for programs and for systemd's journal.
@Suite(.timeLimit(.minutes(15))) struct LogTests {
    private struct Line: Decodable {
        let time, level, message: String
    }

    /// A run that logs one error: its job names a variant that can't be parsed.
    private func log(_ w: TestWorker, _ arguments: String...) async throws -> [String] {
        try await w.run("init")
        try await w.sql("INSERT INTO jobs (urls, variants) VALUES (json_array('\(w.url("/1.png"))'), 'broken')")
        let errors = try await w.run(["run", "--drain", "--quiet"] + TestWorker.quick + arguments, expecting: 2).errors
        return errors.split(separator: "\n").map(String.init).filter { $0.contains("can't be run") }
    }

    @Test func `Text begins with the level`() async throws {
        try await withWorker { w in
            let lines = try await log(w)
            #expect(!lines.isEmpty && lines.allSatisfy { $0.hasPrefix("error: Job 1 can't be run. error=") })
        }
    }

    @Test func `JSON has time, level and message on each line`() async throws {
        try await withWorker { w in
            let lines = try await log(w, "--log-format", "json")
            let finished = TestWorker.Finished(exit: .code(0), output: lines[0], errors: "")
            let line = try finished.json(Line.self)
            #expect((line.level, line.message) == ("error", "Job 1 can't be run."))
            #expect(line.time.hasPrefix("20") && line.time.hasSuffix("Z"))
        }
    }

    @Test func `The journal gets priorities`() async throws {
        try await withWorker { w in
            let lines = try await log(w, "--log-format", "journal")
            #expect(!lines.isEmpty && lines.allSatisfy { $0.hasPrefix("<3>Job 1 can't be run.") })
        }
    }

    @Test func `The level leaves out less important lines`() async throws {
        try await withWorker { w in
            let worker = try w.start(TestWorker.quick + ["--log-level", "error", "--quiet"])
            try await w.enqueue(w.url("/1.png"))
            try await w.untilEnded("1")
            worker.send(SIGTERM)
            #expect(try await worker.wait() == .code(0))
            #expect(!(try w.errors(of: worker)).contains("Stopping"))
            try await w.run("run", "--drain", "--log-level", "loud", expecting: 64)
        }
    }

    private struct ItemLine: Decodable {
        struct Metadata: Decodable {
            let job, item, url, `class`, reason: String?
            let fetchMs, publishMs: String?
        }
        let level, message: String
        let metadata: Metadata?
    }

    @Test func `Each ended item has a log line with its numbers and its URL without secrets`() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png?token=abc&own=def"), w.url("/nothing"))
            func lines(_ level: String) async throws -> [ItemLine] {
                let arguments = ["--log-level", level, "--log-format", "json", "--redact", "own"]
                let run = try await w.run(["run", "--drain", "--quiet"] + TestWorker.quick + arguments, expecting: 2)
                #expect(!run.errors.contains("abc") && !run.errors.contains("def"), "\(run.errors)")
                return try run.errors.split(separator: "\n").filter { $0.hasPrefix("{") }.map {
                    try TestWorker.Finished(exit: .code(0), output: String($0), errors: "").json(ItemLine.self)
                }.filter { $0.metadata?.item != nil }
            }
            let all = try await lines("debug")
            #expect(all.map(\.message).sorted() == ["Item done.", "Item failed."])
            let done = try #require(all.first { $0.message == "Item done." }?.metadata)
            #expect(
                done.fetchMs.flatMap(Int.init) != nil && done.publishMs.flatMap(Int.init) != nil)
            let failed = try #require(all.first { $0.message == "Item failed." })
            #expect((failed.level, failed.metadata?.job, failed.metadata?.class) == ("info", "1", "http-404"))
            #expect(failed.metadata?.url == w.url("/nothing") && failed.metadata?.reason?.isEmpty == false)
            try await w.enqueue(w.url("/nothing"), w.url("/2.png"))
            #expect(try await lines("info").map(\.message) == ["Item not fetched: its URL is on the blacklist."])
            try await w.enqueue(w.url("/nothing"), w.url("/3.png"))
            #expect(try await lines("notice").isEmpty)
        }
    }
}
