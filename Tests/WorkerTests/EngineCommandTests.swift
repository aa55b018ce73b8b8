import FoundationEssentials
import Glibc
import SystemPackage
import TestSupport
import Testing

/// Commands that show downloads and change their limits.
@Suite(.serialized, .timeLimit(.minutes(15))) struct EngineCommandTests {
    private struct Host: Decodable {
        let host: String
        let failures: [String: Int]
    }

    private struct Limits: Decodable, Equatable {
        let host: String
        var concurrency: Int?
        var perHost: Int?
        var rate: Double?
        var burst: Int?
    }

    @Test func retryCanBeLimitedToAClassAHostAndATime() async throws {
        try await withWorker({ request in
            request.path.hasPrefix("/gone") ? .status(404) : .status(500)
        }) { w in
            let other = w.url("/broken/b").replacing("127.0.0.1", with: "localhost")
            try await w.enqueue(w.url("/gone/a"), w.url("/broken/a"), other)
            try await w.drain("--max-tries", "1", "--delegate-command", "\(try forgiving(w)):blacklist", expecting: 2)
            #expect(try await w.counts("1") == "0|0|3|0|0")
            func retry(_ arguments: String...) async throws -> String {
                let errors = try await w.run(["retry", "1"] + arguments).errors
                let failed = try await w.value("SELECT group_concat(id) FROM items WHERE state = 'failed'")
                return "\(errors.prefix { $0.isNumber }) back, \(failed) stay"
            }
            #expect(try await retry("--class", "timeout") == "0 back, 1,2,3 stay")
            #expect(try await retry("--host", "elsewhere.example") == "0 back, 1,2,3 stay")
            #expect(try await retry("--class", "http-404") == "1 back, 2,3 stay")
            #expect(try await retry("--host", "localhost", "--class", "http-500") == "1 back, 2 stay")
            try await w.sql("UPDATE items SET finished_at = finished_at - 7200000 WHERE id = 2")
            #expect(try await retry("--since", "1h") == "0 back, 2 stay")
            #expect(try await retry("--since", "3h") == "1 back,  stay")
            let odd = try await w.run("retry", "1", "--class", "sad", expecting: 64)
            #expect(odd.errors.contains("Unknown class 'sad'"))
            try await w.drain("--max-tries", "1", expecting: 2)
            #expect(w.origin.requestCount("/gone/a") == 2)
        }
    }

    /// A delegate that keeps every URL off the blacklist.
    private func forgiving(_ w: TestWorker) throws -> String {
        try program("forgiving", "read -r line; echo '{\"blacklist\":false}'", w)
    }

    private func program(_ name: String, _ script: String, _ w: TestWorker) throws -> String {
        let path = try w.file(name, "#!/bin/sh\n\(script)\n")
        guard chmod(path, 0o700) == 0 else { throw Errno(rawValue: errno) }
        return path
    }

    @Test func hostsShowsFailuresAndPausesOfHosts() async throws {
        try await withWorker({ request in
            request.path == "/busy" ? .status(429, headers: [("Retry-After", "600")]) : .status(404)
        }) { w in
            try await w.enqueue(w.url("/gone"))
            try await w.drain(expecting: 2)
            let hosts = try await w.run("hosts", "--json").json([Host].self)
            #expect(hosts.map(\.host) == ["127.0.0.1"])
            #expect(hosts.first?.failures == ["http-404": 1])
            try await w.enqueue(w.url("/busy"))
            _ = try w.start()
            try await w.eventually("the host is left alone") {
                try await w.run("hosts").output.contains("asked for a pause (Retry-After). Until ")
            }
            let waiting = try await w.value("SELECT host || '|' || class FROM waiting")
            #expect(waiting == "127.0.0.1|http-429")
        }
    }

    @Test func limitsTakeEffectWhileAWorkerRuns() async throws {
        let gate = Gate()
        try await withWorker({ request in
            gate.wait()
            return Pictures.reply(request)
        }) { w in
            try await w.run("init")
            #expect(try await w.run("limits", "--json").json([Limits].self) == [])
            try await w.run("limits", "--concurrency", "2", "--per-host", "2")
            try await w.run("limits", "images.example.com", "--rate", "5", "--burst", "10")
            #expect(
                try await w.run("limits", "--json").json([Limits].self) == [
                    Limits(host: "*", concurrency: 2, perHost: 2),
                    Limits(host: "images.example.com", rate: 5, burst: 10),
                ])
            try await w.enqueue((0..<12).map { w.url("/\($0).png") })
            _ = try w.start("--concurrency", "4")
            try await w.eventually("two are in flight") { w.origin.requests.count == 2 }
            try await w.run("limits", "--reset", "--yes")
            try await w.eventually("four are in flight") { w.origin.requests.count == 4 }
            gate.open()
            try await w.untilEnded("1")
            try await w.run("limits", "--reset", expecting: 1)
            let odd = try await w.run("limits", "images.example.com", "--concurrency", "3", expecting: 64)
            #expect(odd.errors.contains("leave out the host"))
            let both = try await w.run("limits", "--rate", "3", "--reset", expecting: 64)
            #expect(both.errors.contains("Either set limits or --reset them."))
        }
    }

    @Test func theUserAgentHasTheContact() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"))
            try await w.drain("--contact", "https://example.com/bot")
            let agent = w.origin.requests.first?.header("User-Agent") ?? ""
            #expect(agent.hasPrefix("PrefetchWorker/") && agent.contains("+https://example.com/bot"), "\(agent)")
            try await w.enqueue(w.url("/2.png"))
            try await w.drain("--user-agent", "Someone/1")
            #expect(w.origin.requests.last?.header("User-Agent") == "Someone/1")
        }
    }

    @Test func triesAndRunningTransfersAreInTheDatabase() async throws {
        try await withWorker(script: [
            "/flaky": [.status(503), .ok(Pictures.png(1))],
            "/slow": [.partial(Array(Pictures.png(2).prefix(60)), of: 5_000, then: .stall)],
        ]) {
            w in
            try await w.enqueue(w.url("/flaky"))
            try await w.drain()
            #expect(
                try await w.rows("SELECT ifnull(class, 'well'), http_status, address FROM tries ORDER BY at") == [
                    "http-503|503|127.0.0.1", "well|200|127.0.0.1",
                ])
            #expect(
                try await w.value("SELECT received > 0 AND total >= first_byte FROM tries WHERE class IS NULL") == "1")
            try await w.enqueue(w.url("/slow"))
            _ = try w.start("--silence-timeout", "600s", "--total-timeout", "600s")
            try await w.eventually("its progress shows") {
                try await w.value("SELECT item, received > 0, bytes_from FROM transfers") == "2|1|network"
            }
            try await w.run("cancel", "2")
            try await w.eventually("it is over") { try await w.value("SELECT count(*) FROM transfers") == "0" }
        }
    }

    /// A source of the cache stays in the view while it is turned into variants.
    @Test func transfersTellWhichBytesComeFromTheCache() async throws {
        try await withWorker(Pictures.reply) { w in
            let slow = try w.file("slow", "#!/bin/sh\nIFS= read -r line\nsleep 3\nprintf '{\"ok\":true}\\n'\ncat\n")
            chmod(slow, 0o755)
            let worker = try w.start(TestWorker.quick + ["--transform-command", "slow=\(slow)"])
            let url = w.url("/1.png")
            try await w.untilEnded(try await w.enqueue([url]))
            for (name, size, origin) in [("a", "8x6", "disk"), ("b", "6x4", "memory")] {
                let job = try await w.enqueue([url], "--variant", "\(name)=\(size),png,command:slow")
                try await w.eventually("its bytes come from \(origin)") {
                    try await w.value("SELECT bytes_from, received = expected FROM transfers") == "\(origin)|1"
                }
                try await w.untilEnded(job)
                #expect(
                    try await w.value("SELECT bytes_from FROM results WHERE job = \(job) AND variant = '\(name)'")
                        == origin)
            }
            worker.send(SIGTERM)
            _ = try await worker.wait()
        }
    }

    @Test func bytesSavedByARejectedBodyAreCounted() async throws {
        let page = Array("<!doctype html><title>No picture</title>".utf8)
        try await withWorker({ _ in .partial(page, of: 5_000_000, then: .stall) }) { w in
            try await w.enqueue(w.url("/page.png"))
            let run = try await w.run(["run", "--drain", "--json"] + TestWorker.quick, expecting: 2)
            #expect(try run.json(Summary.self).bytesSaved > 4_000_000)
            #expect(try await w.value("SELECT saved > 4000000 FROM tries") == "1")
            #expect(try await w.run("explain", w.url("/page.png")).output.contains("rejected before they came"))
        }
    }

    private struct Summary: Decodable { let bytesSaved: Int64 }

    @Test func aDelegateCommandGivesTheCacheKey() async throws {
        try await withWorker { w in
            let command = try program(
                "keys",
                #"read -r line; case "$line" in *'"hook":"cache-key"'*) echo '{"key":"one"}' ;; *) echo '{}' ;; esac"#,
                w)
            try await w.enqueue(w.url("/1.png"))
            try await w.drain("--delegate-command", "\(command):cache-key")
            #expect(try await w.value("SELECT key FROM sources") == "one")
            try await w.enqueue(w.url("/2.png"))
            try await w.drain("--delegate-command", "\(command):cache-key")
            #expect(w.origin.requests.map(\.path) == ["/1.png"])
            #expect(try await w.value("SELECT cached FROM jobs WHERE id = 2") == "1")
        }
    }

    @Test func twoWorkersCoalesceAFetch() async throws {
        let gate = Gate()
        try await withWorker({ request in
            gate.wait()
            return Pictures.reply(request)
        }) { w in
            try await w.enqueue(w.url("/1.png"))
            let first = try await w.startRegistered("--silence-timeout", "600s", "--total-timeout", "600s")
            try await w.eventually("it is in flight") { w.origin.requests.count == 1 }
            // Held up, it keeps what it has and takes nothing else.
            try await w.freeze(first.pid)
            try await w.enqueue(w.url("/1.png"))
            _ = try await w.startRegistered("--silence-timeout", "600s", "--total-timeout", "600s")
            try await w.eventually("the second leaves it to the first") {
                try await w.value("SELECT reason FROM waiting") == "Another worker is fetching this URL."
            }
            #expect(kill(first.pid, SIGCONT) == 0)
            gate.open()
            try await w.untilEnded("1")
            try await w.untilEnded("2")
            #expect(w.origin.requests.count == 1)
            // The first worker may take it as well, and have one fetch for both.
            #expect(["1|1", "2|0"].contains(try await w.value("SELECT sum(done), sum(cached) FROM jobs")))
        }
    }

    @Test func retriesOfAFailingHostAreLimitedByABurstAndARate() async throws {
        try await withWorker({ _ in .status(500) }) { w in
            try await w.enqueue((0..<90).map { w.url("/\($0)") })
            try await w.drain("--max-tries", "2", "--retry-delay", "1ms", expecting: 2)
            let times = try await w.rows("SELECT at FROM tries ORDER BY at").compactMap { Int($0) }
            #expect(times.count == 180)
            // Sixty at once, and then ten a second: the last of ninety comes three seconds after the first could.
            #expect((times.last ?? 0) - (times.first ?? 0) >= 2_500)
        }
    }
}
