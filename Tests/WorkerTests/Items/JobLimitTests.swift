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

    @Test func theWorkersOwnLimitsChangeWhileItRuns() async throws {
        try await withWorker({ request in
            request.path.hasPrefix("/silent") ? .silence : Pictures.reply(request)
        }) { w in
            try await w.run("init")
            _ = try w.start("--silence-timeout", "60s", "--max-tries", "9")
            try await w.enqueue(w.url("/1.png"))
            try await w.untilEnded("1")
            try await w.run("limits", "--silence-timeout", "300ms", "--max-tries", "2", "--retry-delay", "20ms")
            // Workers read the limits every 400 ms.
            try await Task.sleep(for: .seconds(1))
            try await w.enqueue(w.url("/silent"))
            try await w.eventually("the silent host is given up") {
                try await w.rows("SELECT class, attempts FROM failures") == ["timeout|2"]
            }
            #expect(try await w.run("limits").output.contains("silence-timeout: 300ms"))
        }
    }

    @Test func theWorkersOwnLimitsTakeNoHostAndNoNonsense() async throws {
        try await withWorker { w in
            try await w.run("init")
            for wrong in [
                ["images.example.com", "--max-tries", "3"], ["--max-tries", "0"], ["--silence-timeout", "0"],
                ["--total-timeout", "2d"], ["--retry-delay", "2h"],
            ] {
                try await w.run(["limits"] + wrong, expecting: 64)
            }
            for wrong in [
                "('a.example', 5)", "('*', 0)", "('*', 'many')", "('*', 1001)",
            ] {
                let refused = try await w.sql("INSERT INTO limits (host, max_tries) VALUES \(wrong)", expecting: nil)
                #expect(refused.errors.contains("max_tries is a whole number from 1 to 1000"))
            }
            try await w.run("limits", "--cache-max-age", "never")
            #expect(try await w.value("SELECT cache_max_age FROM limits") == "-1")
            #expect(try await w.run("limits").output.contains("cache-max-age: never"))
        }
    }

    @Test func aJobsFilesStayAsLongAsItSays() async throws {
        try await withWorker { w in
            let urls = (0..<5).map { w.url("/\($0).png") }
            try await w.enqueue(urls[0], "--option", "cache-max-age=10ms")
            try await w.enqueue(urls[1])
            try await w.enqueue(urls[2], "--option", "cache-max-age=-1", "--variant", "v=10x,png")
            // A file that two jobs use stays as long as the longer one says.
            try await w.enqueue(urls[3], "--option", "cache-max-age=10ms")
            try await w.enqueue(urls[4], "--option", "cache-max-age=10ms")
            try await w.drain()
            try await w.enqueue(urls[3])
            try await w.enqueue(urls[4], "--option", "cache-max-age=never")
            try await w.drain()
            func there() async throws -> [Bool] {
                var found: [Bool] = []
                for url in urls { found.append(try await w.run("get", url, expecting: nil).exit == .code(0)) }
                return found
            }
            try await w.run("cache", "gc")
            #expect(try await there() == [false, true, true, true, true])
            try await w.run("cache", "gc", "--cache-max-age", "0")
            #expect(try await there() == [false, false, true, false, true])
            #expect(try await w.run("get", urls[2], "--variant", "v", expecting: nil).exit == .code(0))
            try await w.run("cache", "verify")
        }
    }

    @Test(arguments: [
        "timeout=0", "timeout=-1s", "cache-max-age=soon", "cache-max-age=-2", "total-timeout=2d", "max-tries=0",
        "retry-delay=2h", "connect-timeout=x",
    ])
    func aWrongValueIsRefused(_ option: String) async throws {
        try await withWorker { w in
            let refused = try await w.run("enqueue", w.url("/1.png"), "--option", option, expecting: nil)
            #expect(refused.exit != .code(0))
            #expect(refused.errors.contains(option.split(separator: "=")[0]))
        }
    }
}
