import Glibc
import TestSupport
import Testing

/// Timeouts, tries and retry delays of single jobs.
@Suite(.timeLimit(.minutes(15))) struct JobLimitTests {
    @Test func aJobsTimeoutsOverrideTheWorkers() async throws {
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

    @Test func aJobsTriesOverrideTheWorkers() async throws {
        try await withWorker({ _ in .status(503) }) { w in
            try await w.enqueue(w.url("/one"), "--option", "max-tries=1")
            try await w.enqueue(w.url("/three"), "--option", "max-tries=3,retry-delay=10ms")
            try await w.enqueue(w.url("/usual"))
            try await w.drain("--max-tries", "2", expecting: nil)
            #expect(try await w.rows("SELECT attempts FROM failures ORDER BY job") == ["1", "3", "2"])
        }
    }

    @Test func aJobsRetryDelayOverridesTheWorkers() async throws {
        try await withWorker({ _ in .status(503) }) { w in
            try await w.enqueue(w.url("/1.png"), "--option", "retry-delay=1h")
            _ = try w.start("--retry-delay", "20ms")
            try await w.eventually("it is delayed") { try await w.value("SELECT state FROM items") == "delayed" }
            // The worker's own delay would be over long ago.
            try await Task.sleep(for: .seconds(2))
            #expect(try await w.value("SELECT state, attempts FROM items") == "delayed|1")
            #expect(w.origin.requests.count == 1)
        }
    }

    @Test func aJobsConnectTimeoutOverridesTheWorkers() async throws {
        let port = try FullPort()
        defer { port.close() }
        try await withWorker { w in
            try await w.enqueue(
                "http://127.0.0.1:\(port.number)/1.png", "--option", "connect-timeout=300ms,max-tries=1")
            let began = ContinuousClock.now
            try await w.drain("--connect-timeout", "60s", "--silence-timeout", "60s", expecting: nil)
            #expect(ContinuousClock.now - began < .seconds(20))
            #expect(["connect", "timeout"].contains(try await w.value("SELECT class FROM failures")))
        }
    }

    @Test func aWorkersConnectTimeoutChangesWhileItRuns() async throws {
        let port = try FullPort()
        defer { port.close() }
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"))
            _ = try w.start("--connect-timeout", "60s", "--silence-timeout", "60s")
            try await w.untilEnded("1")
            try await w.run("limits", "--connect-timeout", "300ms")
            // Workers read the limits every 400 ms.
            try await Task.sleep(for: .seconds(1))
            let began = ContinuousClock.now
            try await w.enqueue("http://127.0.0.1:\(port.number)/1.png", "--option", "max-tries=1")
            try await w.untilEnded("2")
            #expect(ContinuousClock.now - began < .seconds(30))
            #expect(["connect", "timeout"].contains(try await w.value("SELECT class FROM failures")))
            #expect(try await w.run("limits").output.contains("connect-timeout: 300ms"))
        }
    }

    @Test func theTotalTimeoutAndTheCacheAgeChangeWhileAWorkerRuns() async throws {
        try await withWorker({ request in
            request.path.hasPrefix("/slow") ? .slowly(Pictures.png(1), pieces: 40, pause: 200) : Pictures.reply(request)
        }) { w in
            try await w.enqueue(w.url("/1.png"))
            _ = try w.start("--total-timeout", "60s", "--collect-every", "200ms", "--orphan-grace", "0")
            try await w.untilEnded("1")
            #expect(w.blobs.count == 1)
            try await w.run("limits", "--total-timeout", "2s", "--cache-max-age", "100ms")
            try await w.eventually("the file is too old") { w.blobs.isEmpty }
            // The downloads and the cache read the limits at times of their own.
            var number = 2
            try await w.eventually("downloads are cut", within: .seconds(120)) {
                try await w.enqueue(w.url("/slow\(number)"), "--option", "max-tries=1")
                try await w.untilEnded("\(number)")
                number += 1
                return try await w.value("SELECT count(*) FROM failures WHERE message LIKE '%2.0 seconds%'") == "1"
            }
        }
    }

    @Test func theSilenceTimeoutAndTriesChangeWhileAWorkerRuns() async throws {
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

    @Test func limitsOfAllWorkersRefuseAHostAndInvalidValues() async throws {
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

    @Test func aJobsFilesAreKeptForItsCacheMaxAge() async throws {
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
    func anInvalidLimitOfAJobIsRefused(_ option: String) async throws {
        try await withWorker { w in
            let refused = try await w.run("enqueue", w.url("/1.png"), "--option", option, expecting: nil)
            #expect(refused.exit != .code(0))
            #expect(refused.errors.contains(option.split(separator: "=")[0]))
        }
    }
}

/// A port of this machine whose queue of new connections is full, so that no further one is made, and none refused.
private final class FullPort {
    let number: UInt16
    private var sockets: [CInt] = []

    init() throws {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        sockets.append(listener)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 0) == 0 && getsockname(listener, $0, &length) == 0
            }
        }
        try #require(isListening)
        number = UInt16(bigEndian: address.sin_port)
        for _ in 0..<4 {
            let client = socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
            sockets.append(client)
            _ = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(client, $0, length) }
            }
        }
    }

    func close() { for one in sockets { Glibc.close(one) } }
}
