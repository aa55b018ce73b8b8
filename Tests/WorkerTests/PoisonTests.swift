import Glibc
import Synchronization
import TestSupport
import Testing

/// A URL that kills every worker that has its item active.
@Suite(.serialized, .timeLimit(.minutes(15))) struct PoisonTests {
    @Test func `A URL of a thousand that kills its worker stops no other URL, and is blacklisted`() async throws {
        // The process to be killed when the URL is asked for.
        let victim = Mutex<pid_t>(0)
        try await withWorker({ request in
            if request.path == "/poison.png" {
                let pid = victim.withLock { $0 }
                if pid > 0 { kill(pid, SIGKILL) }
                return .silence
            }
            return Pictures.tiny(request)
        }) { w in
            let urls = (0..<1_000).map { $0 == 617 ? w.url("/poison.png") : w.url("/\($0).png") }
            try await w.run(["enqueue", "-f", "-"], input: urls.joined(separator: "\n"))
            var deaths = 0
            while deaths < 12 {
                let child = try w.start(TestWorker.quick + ["--drain"])
                victim.withLock { $0 = child.pid }
                let exit = try await child.wait(atMost: .seconds(90))
                guard exit == .signal(SIGKILL) else {
                    #expect(exit == .code(2))
                    break
                }
                deaths += 1
            }
            // Four to find it, and three alone.
            #expect((4...8).contains(deaths))
            let ended = try await w.rows(
                "SELECT state, ifnull(class, ''), count(*) FROM items GROUP BY 1, 2 ORDER BY 1")
            #expect(ended == ["done||999", "failed|worker-crash|1"])
            let told = try await w.run("explain", w.url("/poison.png"))
            #expect(told.output.contains("worker-crash"))
            #expect(told.output.contains("Three workers died while processing only this URL."))
            #expect(try await w.value("SELECT class FROM blacklist") == "worker-crash")
        }
    }

    @Test func `A kill marks only active items, and later jobs are claimed in full batches`() async throws {
        let gates = [Gate(), Gate(), Gate()]
        let isOpen = "SELECT count(*) FROM items WHERE state = 'active'"
        let round = Mutex(0)
        try await withWorker({ request in
            gates[round.withLock { $0 }].wait(atMost: 60)
            return Pictures.tiny(request)
        }) { w in
            func active() async throws -> Int { Int(try await w.value(isOpen)) ?? 0 }
            func list(_ range: Range<Int>) async throws -> String {
                let urls = range.map { w.url("/\($0).png") }
                return try await w.run(["enqueue", "-f", "-"], input: urls.joined(separator: "\n")).line
            }
            _ = try await list(0..<600)
            let victim = try w.start()
            try await w.eventually("it has a full batch") { try await active() > 192 }
            victim.send(SIGKILL)
            _ = try await victim.wait()
            let had = try await active()
            gates[0].open()
            round.withLock { $0 = 1 }
            _ = try w.start()
            try await w.eventually("its items are marked and at work again") {
                try await w.value("SELECT sum(deaths > 0), sum(state = 'active') > 0 FROM items") == "\(had)|1"
            }
            #expect(try await w.value("SELECT max(deaths) FROM items") == "1")
            gates[1].open()
            try await w.untilEnded("1", within: .seconds(60))
            #expect(try await w.value("SELECT max(deaths) FROM items") == "0")
            round.withLock { $0 = 2 }
            let next = try await list(600..<1_200)
            try await w.eventually("it has a full batch again") { try await active() > 192 }
            gates[2].open()
            try await w.untilEnded(next, within: .seconds(60))
            #expect(try await w.rows("SELECT state, count(*) FROM items GROUP BY state") == ["done|1200"])
        }
    }

    @Test func `Kills from outside fail no item with worker-crash`() async throws {
        try await withWorker({ .delayed(milliseconds: 20, then: Pictures.tiny($0)) }) { w in
            let urls = (0..<400).map { w.url("/\($0).png") }
            try await w.run(["enqueue", "-f", "-"], input: urls.joined(separator: "\n"))
            for kill in 0..<40 {
                let child = try w.start()
                // Now and then it lives for long enough to run suspects apart from others.
                let life = kill % 8 == 7 ? Int.random(in: 3_000...5_000) : Int.random(in: 50...400)
                try await Task.sleep(for: .milliseconds(life))
                child.send(SIGKILL)
                _ = try await child.wait()
            }
            try await w.drain()
            #expect(try await w.rows("SELECT state, count(*) FROM items GROUP BY state") == ["done|400"])
        }
    }
}
