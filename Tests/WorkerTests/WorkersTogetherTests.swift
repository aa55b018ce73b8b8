import Glibc
import TestSupport
import Testing

/// Rows that a worker writes for other workers, and slots that it takes over from a dead one.
@Suite(.serialized, .timeLimit(.minutes(15))) struct WorkersTogetherTests {
    /// A new transfer is written at once, and its bytes at the interval.
    @Test(arguments: [("400ms", 3...40), ("10m", 1...2)])
    func progressIsWrittenAtItsInterval(interval: String, values: ClosedRange<Int>) async throws {
        let bytes = TestImages.png(200, 200)
        try await withWorker({ _ in .slowly(bytes, pieces: 20, pause: 150) }) { w in
            try await w.enqueue(w.url("/1.png"))
            _ = try w.start("--progress-interval", interval)
            try await w.eventually("it is in flight") { try await w.value("SELECT count(*) FROM transfers") == "1" }
            var seen: Set<String> = []
            for _ in 0..<20 {
                seen.formUnion(try await w.rows("SELECT received FROM transfers"))
                try await Task.sleep(for: .milliseconds(100))
            }
            #expect(values.contains(seen.count), "\(seen)")
            try await w.untilEnded("1")
            try await w.eventually("it is no transfer any more") {
                try await w.value("SELECT count(*) FROM transfers") == "0"
            }
        }
    }

    @Test func anotherWorkerGetsTheSlotsOfAKilledWorkerWithinSeconds() async throws {
        try await withWorker({ .delayed(milliseconds: 400, then: Pictures.reply($0)) }) { w in
            try await w.run("init")
            let workers = [
                try await w.startRegistered("--per-host", "2"), try await w.startRegistered("--per-host", "2"),
            ]
            // More than one worker claims at once.
            try await w.enqueue((0..<600).map { w.url("/\($0).png") })
            let maxOfOneTaker = "SELECT count(*), max(running) FROM host_load WHERE host = '127.0.0.1' AND running > 0"
            try await w.eventually("each has one slot") { try await w.value(maxOfOneTaker) == "2|1" }
            workers[0].send(SIGKILL)
            _ = try await workers[0].wait()
            try await w.eventually("the other has both", within: .seconds(10)) {
                try await w.value(maxOfOneTaker).hasSuffix("|2")
            }
            try await w.run("cancel", "1")
            #expect(w.origin.maxSimultaneous <= 2)
        }
    }

    @Test func countersThatWereChangedWithoutTriggersAreCorrectedAndReported() async throws {
        try await withWorker { w in
            try await w.enqueue((1...3).map { w.url("/\($0).png") })
            try await w.sql(
                "DROP TRIGGER jobs_keep_counters; UPDATE jobs SET total = total + 5, queued = queued + 5 WHERE id = 1")
            let run = try await w.drain()
            #expect(run.errors.contains("The counters of a job were wrong and have been corrected"))
            #expect(run.errors.contains("total was 8 and is 3"))
            #expect(try await w.value("SELECT state, total, done FROM jobs") == "finished|3|3")
        }
    }
}
