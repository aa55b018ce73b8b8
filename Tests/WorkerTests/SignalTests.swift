import Foundation
import Glibc
import Synchronization
import TestSupport
import Testing

/// Signals that stop workers and commands.
@Suite(.serialized, .timeLimit(.minutes(15))) struct SignalTests {
    @Test(arguments: [SIGTERM, SIGINT])
    func aSignalLetsItemsInFlightFinishAndKeepsTheOthersQueued(_ signal: Int32) async throws {
        let gate = Gate()
        try await withWorker({ request in
            if request.path == "/7.png" { gate.wait() }
            return Pictures.reply(request)
        }) { w in
            try await w.enqueue((0..<100).map { w.url("/\($0).png") }, "--variant", "thumb=8x6")
            let child = try w.start("--concurrency", "1")
            try await w.eventually("the eighth is in flight") { w.origin.requestCount("/7.png") == 1 }
            child.send(signal)
            try await Task.sleep(for: .milliseconds(300))
            #expect(child.exit == nil)
            gate.open()
            let clock = ContinuousClock()
            let told = clock.now
            #expect(try await child.wait() == .code(0))
            #expect(clock.now - told < .seconds(5))
            #expect(
                try await w.rows("SELECT state, attempts, count(*) FROM items GROUP BY 1, 2") == [
                    "done|1|8", "queued|0|92",
                ])
            #expect(try await w.value("SELECT (SELECT count(*) FROM workers) + (SELECT count(*) FROM leases)") == "0")
            try await w.drain()
            #expect(try await w.counts("1") == "100|0|0|0|0")
            #expect(w.origin.requests.count == 100)
        }
    }

    @Test func itemsStillActiveAfterTheGraceGoBackToTheQueue() async throws {
        let isSlow = Mutex(true)
        try await withWorker({ isSlow.withLock { $0 } ? .silence : Pictures.reply($0) }) { w in
            try await w.enqueue((0..<10).map { w.url("/\($0).png") })
            let child = try w.start("--grace", "300ms")
            try await w.eventually("downloads hang") { w.origin.requests.count == 6 }
            let clock = ContinuousClock()
            let told = clock.now
            child.send(SIGTERM)
            #expect(try await child.wait() == .code(0))
            #expect(clock.now - told < .seconds(2))
            #expect(try await w.rows("SELECT state, attempts, count(*) FROM items GROUP BY 1, 2") == ["queued|0|10"])
            isSlow.withLock { $0 = false }
            try await w.drain()
            #expect(try await w.counts("1") == "10|0|0|0|0")
        }
    }

    /// The stop comes long before the silence timeout and the end of the grace.
    @Test func aStoppingWorkerDoesNotWaitForSilentTransfers() async throws {
        let isSilent = Mutex(true)
        try await withWorker({ isSilent.withLock { $0 } ? .silence : Pictures.reply($0) }) { w in
            try await w.enqueue((0..<10).map { w.url("/\($0).png") })
            let child = try w.start(["--allow-addresses", "loopback", "--grace", "10m", "--silence-timeout", "10m"])
            try await w.eventually("downloads hang") { w.origin.requests.count == 6 }
            child.send(SIGTERM)
            #expect(try await child.wait() == .code(0))
            #expect(try await w.rows("SELECT state, attempts, count(*) FROM items GROUP BY 1, 2") == ["queued|0|10"])
            isSilent.withLock { $0 = false }
            try await w.drain()
            #expect(try await w.counts("1") == "10|0|0|0|0")
        }
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func aSecondSignalEndsTheWorkerAtOnceAndLosesNoItem(_ signal: Int32) async throws {
        let isSlow = Mutex(true)
        // Slow, and not silent: what gets nothing isn't waited for.
        let slow = LoopbackReply.partial(
            Array(Pictures.png(9).prefix(1_000)), of: 90_000, then: .drip(bytesPerSecond: 200))
        try await withWorker({ isSlow.withLock { $0 } ? slow : Pictures.reply($0) }) { w in
            try await w.enqueue((0..<10).map { w.url("/\($0).png") })
            let child = try w.start()
            try await w.eventually("downloads hang") { w.origin.requests.count == 6 }
            child.send(signal)
            try await Task.sleep(for: .milliseconds(300))
            #expect(child.exit == nil)
            // On a busy machine both may be noticed together, and are one request then.
            for _ in 0..<20 where child.exit == nil {
                child.send(signal)
                try await Task.sleep(for: .milliseconds(300))
            }
            #expect(try await child.wait() == .code(128 + signal))
            isSlow.withLock { $0 = false }
            try await w.drain()
            #expect(try await w.counts("1") == "10|0|0|0|0")
            #expect(try await w.value("SELECT max(attempts) FROM items") == "1")
        }
    }

    /// timeout(1) sends to the process, and then to its group.
    @Test func twoSignalsAtOnceCountAsOne() async throws {
        try await withWorker({ .delayed(milliseconds: 1_000, then: Pictures.reply($0)) }) { w in
            try await w.enqueue((0..<10).map { w.url("/\($0).png") })
            let child = try w.start()
            try await w.eventually("downloads have begun") { w.origin.requests.count >= 6 }
            child.send(SIGTERM)
            child.send(SIGTERM)
            #expect(try await child.wait() == .code(0))
            #expect(try await w.value("SELECT count(*) FROM items WHERE state = 'active'") == "0")
        }
    }

    /// With the exit code 0, a script would take the unfinished batch as finished.
    @Test func aStoppedDrainEndsWith75AndReportsRemainingItems() async throws {
        let gate = Gate()
        try await withWorker({ request in
            if request.path == "/3.png" { gate.wait() }
            return Pictures.reply(request)
        }) { w in
            try await w.enqueue((0..<20).map { w.url("/\($0).png") })
            let child = try w.start("--drain", "--concurrency", "1")
            try await w.eventually("the fourth is in flight") { w.origin.requestCount("/3.png") == 1 }
            child.send(SIGINT)
            try await Task.sleep(for: .milliseconds(300))
            gate.open()
            #expect(try await child.wait() == .code(75))
            #expect(try w.errors(of: child).contains("the remaining items are in the queue"))
            try await w.drain()
            #expect(try await w.counts("1") == "20|0|0|0|0")
        }
    }

    @Test func anIdleWorkerStopsAtOnce() async throws {
        try await withWorker { w in
            let child = try await w.startRegistered()
            let clock = ContinuousClock()
            let told = clock.now
            child.send(SIGTERM)
            #expect(try await child.wait() == .code(0))
            #expect(clock.now - told < .seconds(1))
        }
    }

    /// The rows that were added belong to no job, and the next worker removes them.
    @Test func `An interrupted enqueue says that nothing was enqueued`() async throws {
        try await withWorker { w in
            try await w.run("init")
            let list = try w.file("list", (0..<400_000).map { "http://a.example/\($0).png\n" }.joined())
            let files = ChildProcess.Files(output: w.place("enqueue.out"), errors: w.place("enqueue.err"))
            let child = try RunningProgram(
                TestWorker.binary, ["enqueue", "--file", list, "--db", w.database], files: files,
                environment: ["PATH": "/usr/bin:/bin"])
            try await w.eventually("it adds items") { try await w.value("SELECT count(*) FROM job_additions") == "1" }
            child.send(SIGINT)
            #expect(try await child.wait() == .code(130))
            let errors = try String(contentsOfFile: w.place("enqueue.err"), encoding: .utf8)
            #expect(errors.contains("Interrupted: nothing was enqueued."), "\(errors)")
            #expect(try await w.value("SELECT count(*) FROM jobs") == "0")
            try await w.drain()
            #expect(try await w.value("SELECT count(*) FROM items") == "0")
        }
    }

    /// Otherwise a caller that ends a waiting command with timeout(1) and tries again would enqueue twice.
    @Test func `An enqueue that waits for the database ends soon after a signal, and adds nothing later`() async throws
    {
        try await withWorker { w in
            try await w.run("init")
            let shell = try await w.shell(holding: "BEGIN IMMEDIATE")
            let files = ChildProcess.Files(output: w.place("enqueue.out"), errors: w.place("enqueue.err"))
            let child = try RunningProgram(
                TestWorker.binary, ["enqueue", w.url("/1.png"), "--db", w.database], files: files,
                environment: ["PATH": "/usr/bin:/bin"])
            try await w.eventually("it waits") { try w.text(of: files.errors).contains("Waiting") }
            child.send(SIGTERM)
            #expect(try await child.wait() == .code(143))
            shell.send(SIGKILL)
            _ = try await shell.wait()
            #expect(try await w.value("SELECT count(*) FROM jobs") == "0")
        }
    }
}
