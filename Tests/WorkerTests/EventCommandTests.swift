import Foundation
import Glibc
import Synchronization
import TestSupport
import Testing

/// `worker events` and `worker wait`, as scripts use them.
@Suite(.serialized, .timeLimit(.minutes(15))) struct EventCommandTests {
    private struct Event: Decodable, Hashable {
        let id: Int64
        let event: String
        let job: Int64
        var item: Int64?
        var url: String?
        var state: String?
        var `class`: String?
        var finished: Int?
        var skipped: Int?
        var total: Int?
    }

    private func events(_ w: TestWorker, _ arguments: String...) async throws -> [Event] {
        try await w.run(["events", "--no-follow"] + arguments).lines.map {
            try JSONDecoder().decode(Event.self, from: Data($0.utf8))
        }
    }

    @Test func eachEndOfAnItemOrJobIsALineOfJSON() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"), w.url("/2.png"), w.url("/gone"))
            try await w.drain(expecting: 2)
            let all = try await events(w)
            #expect(all.filter { $0.event == "job" }.map(\.state) == ["queued", "running", "finished"])
            let items = all.filter { $0.event == "item" }
            #expect(
                Set(items.map { "\($0.url ?? "") \($0.state ?? "") \($0.class ?? "")" }) == [
                    "\(w.url("/1.png")) done ", "\(w.url("/2.png")) done ", "\(w.url("/gone")) failed http-404",
                ])
            let last = try #require(all.last { $0.event == "progress" })
            #expect((last.finished, last.skipped, last.total) == (3, 1, 3))
            let end = try #require(all.last { $0.event != "progress" })
            #expect(try await events(w, "--after", "\(end.id)").isEmpty)
            #expect(try await events(w, "--since", "1h").count == all.count)
            _ = try await w.run("events", "--job", "9", "--no-follow", expecting: 64)
            _ = try await w.run("events", "--after", "1", "--since", "1h", expecting: 64)
        }
    }

    @Test func aCursorFileKeepsTheReadersPosition() async throws {
        try await withWorker { w in
            let file = w.place("seen")
            try await w.enqueue(w.url("/1.png"))
            try await w.drain()
            let first = try await events(w, "--cursor", file)
            #expect(first.contains { $0.event == "item" })
            #expect(try await events(w, "--cursor", file).isEmpty)
            try await w.enqueue(w.url("/2.png"))
            try await w.drain()
            let second = try await events(w, "--cursor", file)
            #expect(second.count { $0.event == "item" } == 1 && second.allSatisfy { $0.job == 2 })
            try Data("nonsense".utf8).write(to: URL(filePath: file))
            let refused = try await w.run("events", "--cursor", file, "--no-follow", expecting: 64)
            #expect(refused.errors.contains("holds no id of an event"))
        }
    }

    /// A reader that is killed again and again loses no event, and prints at most the last line of each life again.
    @Test func aKilledReaderGoesOnAfterItsCursor() async throws {
        try await withWorker { w in
            try await w.run("init")
            try await w.sql(
                """
                WITH RECURSIVE n (i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n WHERE i < 1999)
                INSERT INTO jobs (urls) SELECT json_group_array('nonsense' || i) FROM n
                """)
            _ = try await w.run(["run", "--drain", "--quiet"] + TestWorker.quick, expecting: 2)
            let wanted = try await events(w).filter { $0.event != "progress" }.map(\.id)
            #expect(wanted.count > 2_000)
            var seen: [Int64] = []
            var lives = 0
            while seen.last != wanted.last {
                lives += 1
                let file = w.place("lines-\(lives)")
                let reader = try RunningProgram(
                    TestWorker.binary,
                    ["events", "--db", w.database, "--cursor", w.place("seen")],
                    files: ChildProcess.Files(output: file, errors: w.place("reader.err")),
                    environment: ["PATH": "/usr/bin:/bin"])
                try await w.eventually("it has printed some") { try w.bytes(of: file).count > 0 }
                // Later lives are longer, so that a hundred are enough on a busy machine, too.
                try await Task.sleep(for: .milliseconds(Int.random(in: 0...40 * (1 + lives / 10))))
                reader.send(SIGKILL)
                _ = try await reader.wait()
                // The kill may have cut the last line.
                let lines = String(decoding: try w.bytes(of: file), as: UTF8.self).split(separator: "\n")
                let printed = lines.compactMap { try? JSONDecoder().decode(Event.self, from: Data($0.utf8)) }
                    .filter { $0.event != "progress" }.map(\.id)
                #expect(printed.dropFirst().first != seen.last, "More than one line was printed again.")
                seen += seen.last == printed.first ? printed.dropFirst() : printed[...]
                guard lives < 100 else { break }
            }
            #expect(lives > 1)
            #expect(seen == wanted)
        }
    }

    /// 10,000 items, and 100 kills of the workers that end them: a reader that resumes each time sees each event once.
    /// Each worker is killed when some of its items have ended, and while most are still to come.
    @Test func aReaderSeesEachEventOnceAfterAHundredKills() async throws {
        let isInHaste = Mutex(false)
        try await withWorker({ request in
            let reply = Pictures.tiny(request)
            return isInHaste.withLock { $0 } ? reply : .delayed(milliseconds: 10, then: reply)
        }) { w in
            try await w.run("init")
            try await w.sql(
                """
                WITH RECURSIVE n (i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
                INSERT INTO jobs (options, urls) SELECT 'avoid-decode-image',
                    json_group_array('\(w.url("/"))' || i || '.png') FROM n
                """)
            var seen: [Event] = []
            var ended = 0
            for _ in 0..<100 {
                let worker = try w.start()
                let enough = ended + .random(in: 1...20)
                while ended < enough { ended = Int(try await w.value("SELECT done FROM jobs")) ?? 0 }
                // The reader reads while items end, and the rest after the kill.
                seen += try await events(w, "--after", "\(seen.last?.id ?? 0)").filter { $0.event != "progress" }
                worker.send(SIGKILL)
                _ = try await worker.wait()
            }
            #expect((100..<10_000).contains(ended), "The last worker was killed when \(ended) items had ended.")
            isInHaste.withLock { $0 = true }
            _ = try w.start()
            try await w.untilEnded("1", within: .seconds(120))
            seen += try await events(w, "--after", "\(seen.last?.id ?? 0)").filter { $0.event != "progress" }
            let items = seen.filter { $0.event == "item" }
            #expect(items.count == 10_000 && Set(items.map(\.item)).count == 10_000)
            #expect(Set(seen.map(\.id)).count == seen.count)
            #expect(seen.count { $0.event == "job" && $0.state == "finished" } == 1)
            #expect(try await w.value("SELECT count(*) FROM items WHERE state = 'done'") == "10000")
        }
    }

    /// Also if the reader begins behind the job's last event.
    @Test func aReaderThatFollowsAJobEndsWithTheJob() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"))
            let reader = try w.start(["--job", "1"], command: "events")
            try await w.drain()
            #expect(try await reader.wait() == .code(0))
            let last = try #require(try await events(w, "--job", "1").map(\.id).max())
            #expect(try await w.run("events", "--job", "1", "--after", "\(last)", within: .seconds(20)).output == "")
        }
    }

    @Test func waitingForACancelledJobIsAFailure() async throws {
        try await withWorker { w in
            try await w.run("init")
            try await w.enqueue(w.url("/1.png"))
            try await w.run("cancel", "1")
            try await w.run("wait", "1", expecting: 2)
        }
    }

    @Test func waitingForAJobWithACancelledItemIsAFailure() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"), w.url("/2.png"))
            try await w.run("cancel", "1", "--url", w.url("/2.png"))
            try await w.drain()
            try await w.run("wait", "1", expecting: 2)
        }
    }

    @Test func waitEndsWithTheJob() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"))
            try await w.enqueue(w.url("/gone"))
            let late = try await w.run("wait", "1", "2", "--timeout", "300ms", expecting: 75)
            #expect(late.errors.contains("2 of 2 jobs have not ended"))
            let worker = try w.start()
            #expect(
                try await w.run("wait", "1", "--timeout", "60s").output == "job 1: finished, 1 of 1 ended, 0 failed\n")
            _ = try await w.run("wait", "1", "2", "--timeout", "60s", expecting: 2)
            _ = try await w.run("wait", "7", expecting: 64)
            worker.send(SIGTERM)
            _ = try await worker.wait()
        }
    }
}
