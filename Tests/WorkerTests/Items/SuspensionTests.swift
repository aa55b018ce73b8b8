import TestSupport
import Testing

/// All jobs are paused, resumed or cancelled at once.
@Suite(.timeLimit(.minutes(15))) struct SuspensionTests {
    @Test func noItemIsClaimedWhileAllJobsArePaused() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"))
            try await w.enqueue(w.url("/2.png"))
            try await w.run("pause", "2")
            #expect(try await w.run("pause", "--all").line == "all jobs are paused")
            #expect(try await w.run("pause", "--all").line == "all jobs were paused already")
            #expect(try await w.run("status").lines[0].hasPrefix("All jobs have been paused since 20"))
            let script = try await w.run("status", "--json")
            #expect(
                script.errors.hasPrefix("worker: All jobs have been paused since 20") && script.output.hasPrefix("["))
            #expect(try await w.run("metrics").lines.contains("worker_jobs_suspended 1"))
            try await w.enqueue(w.url("/3.png"), "--priority", "100")
            // A drain has nothing to do.
            try await w.drain()
            #expect(w.origin.requests.isEmpty)
            #expect(try await w.run("resume", "--all").line == "all jobs are resumed")
            #expect(try await w.run("resume", "--all").line == "nothing was paused with --all")
            try await w.drain()
            #expect(try await w.rows("SELECT state FROM jobs ORDER BY id") == ["finished", "paused", "finished"])
        }
    }

    @Test func aRunningWorkerStopsWhileAllJobsArePausedAndThenGoesOn() async throws {
        try await withWorker({ .delayed(milliseconds: 50, then: Pictures.reply($0)) }) { w in
            let urls = (0..<400).map { w.url("/\($0).png") }
            try await w.enqueue(urls)
            _ = try await w.startRegistered("--concurrency", "2")
            try await w.eventually("it has begun") { w.origin.requests.count > 4 }
            try await w.sql("INSERT INTO suspension DEFAULT VALUES")
            try await w.eventually("what was claimed has ended") {
                try await w.value("SELECT active FROM jobs") == "0"
            }
            let asked = w.origin.requests.count
            #expect(asked < 400)
            try await Task.sleep(for: .milliseconds(500))
            #expect(w.origin.requests.count == asked)
            try await w.sql("DELETE FROM suspension")
            try await w.untilEnded("1", within: .seconds(60))
            #expect(try await w.counts("1") == "400|0|0|0|0")
        }
    }

    @Test func allJobsAreCancelled() async throws {
        try await withWorker { w in
            try await w.run("init")
            for number in 1...3 { try await w.enqueue(w.url("/\(number).png"), w.url("/9\(number).png")) }
            try await w.run("pause", "2")
            #expect(try await w.run("cancel", "--all").line == "3 jobs are cancelled")
            #expect(try await w.rows("SELECT DISTINCT state, cancelled FROM jobs") == ["cancelled|2"])
            #expect(try await w.run("cancel", "--all").line == "0 jobs are cancelled")
            for command in ["pause", "resume", "cancel"] {
                try await w.run(command, expecting: 64)
                try await w.run(command, "1", "--all", expecting: 64)
            }
        }
    }
}
