import TestSupport
import Testing

/// Timeouts, tries and retry delays of single jobs.
@Suite(.timeLimit(.minutes(15))) struct JobLimitTests {
    @Test func aJobsTimeoutsGoBeforeTheWorkers() async throws {
        try await withWorker({ request in
            switch request.path {
            case "/silent": .silence
            case "/slow": .slowly(Pictures.png(1), pieces: 40, pause: 200)
            default: Pictures.reply(request)
            }
        }) { w in
            let once = ["--option", "max-tries=1"]
            try await w.run(["enqueue", w.url("/silent"), "--option", "timeout=300ms"] + once)
            try await w.run(["enqueue", w.url("/slow"), "--option", "total-timeout=500ms"] + once)
            let began = ContinuousClock.now
            try await w.drain("--total-timeout", "60s", "--silence-timeout", "60s", expecting: nil)
            #expect(ContinuousClock.now - began < .seconds(20))
            #expect(
                try await w.rows("SELECT class, attempts FROM failures ORDER BY job") == ["timeout|1", "timeout|1"])
            #expect(try await w.value("SELECT message FROM failures WHERE job = 1").contains("0.3 seconds"))
            #expect(try await w.value("SELECT message FROM failures WHERE job = 2").contains("0.5 seconds"))
        }
    }

    @Test func aJobsTriesAndDelayGoBeforeTheWorkers() async throws {
        try await withWorker({ _ in .status(503) }) { w in
            try await w.enqueue(w.url("/one"), "--option", "max-tries=1")
            try await w.enqueue(w.url("/three"), "--option", "max-tries=3,retry-delay=10ms")
            try await w.enqueue(w.url("/usual"))
            try await w.drain("--max-tries", "2", expecting: nil)
            #expect(try await w.rows("SELECT attempts FROM failures ORDER BY job") == ["1", "3", "2"])
        }
    }

    @Test(arguments: [
        "timeout=0", "timeout=-1s", "total-timeout=2d", "max-tries=0", "retry-delay=2h", "connect-timeout=x",
    ])
    func aWrongValueIsRefused(_ option: String) async throws {
        try await withWorker { w in
            let refused = try await w.run("enqueue", w.url("/1.png"), "--option", option, expecting: nil)
            #expect(refused.exit != .code(0))
            #expect(refused.errors.contains(option.split(separator: "=")[0]))
        }
    }
}
