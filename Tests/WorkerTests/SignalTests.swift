import Glibc
import Synchronization
import TestSupport
import Testing

/// Being asked to stop, politely and less so.
@Suite(.serialized, .timeLimit(.minutes(2))) struct SignalTests {
    @Test(arguments: [SIGTERM, SIGINT])
    func aSignalFinishesWhatIsInFlightAndKeepsTheRest(_ signal: Int32) async throws {
        try await withWorker({ .delayed(milliseconds: 150, then: Pictures.reply($0)) }) { w in
            try await w.enqueue((0..<40).map { w.url("/\($0).png") }, "--variant", "thumb=8x6")
            let child = try w.start("--concurrency", "4")
            try await w.eventually("some are done") { try await w.value("SELECT done > 3 FROM jobs") == "1" }
            let clock = ContinuousClock()
            let told = clock.now
            child.send(signal)
            #expect(try await child.wait() == .code(0))
            #expect(clock.now - told < .seconds(3))
            #expect(try await w.value("SELECT active, delayed, failed, done + queued FROM jobs") == "0|0|0|40")
            #expect(try await w.value("SELECT max(attempts) FROM items WHERE state = 'queued'") == "0")
            #expect(try await w.value("SELECT (SELECT count(*) FROM workers) + (SELECT count(*) FROM leases)") == "0")
            try await w.drain()
            #expect(try await w.counts("1") == "40|0|0|0|0")
            #expect(w.origin.requests.count == 40)
        }
    }

    @Test func whatIsStillRunningAfterTheGraceGoesBack() async throws {
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

    @Test(arguments: [SIGINT, SIGTERM])
    func aSecondSignalEndsItAtOnceAndLosesNothing(_ signal: Int32) async throws {
        let isSlow = Mutex(true)
        try await withWorker({ isSlow.withLock { $0 } ? .silence : Pictures.reply($0) }) { w in
            try await w.enqueue((0..<10).map { w.url("/\($0).png") })
            let child = try w.start()
            try await w.eventually("downloads hang") { w.origin.requests.count == 6 }
            child.send(signal)
            try await Task.sleep(for: .milliseconds(300))
            #expect(child.exit == nil)
            let clock = ContinuousClock()
            let told = clock.now
            child.send(signal)
            #expect(try await child.wait() == .code(128 + signal))
            #expect(clock.now - told < .seconds(1))
            isSlow.withLock { $0 = false }
            try await w.drain()
            #expect(try await w.counts("1") == "10|0|0|0|0")
            #expect(try await w.value("SELECT max(attempts) FROM items") == "1")
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
}
