import Glibc
import Synchronization
import TestSupport
import Testing

/// The output of commands about waiting items and blacklisted URLs.
@Suite(.serialized, .timeLimit(.minutes(15))) struct WaitingCommandTests {
    @Test func everyCommandShowsItemsThatWaitForAHostsLimit() async throws {
        let gate = Gate()
        try await withWorker({ request in
            gate.wait()
            return Pictures.reply(request)
        }) { w in
            try await w.enqueue((0..<5).map { w.url("/\($0).png") })
            _ = try w.start("--per-host", "2", "--concurrency", "5")
            try await w.eventually("three wait") {
                try await w.value("SELECT count(*), min(reason), max(until) FROM waiting")
                    == "3|127.0.0.1 is at its limit of 2 requests at once (--per-host).|"
            }
            #expect(try await w.run("status", "1").output.contains("waiting: 3 wait for 127.0.0.1\n"))
            #expect(
                try await w.run("hosts").output.contains(
                    "127.0.0.1 is at its limit of 2 requests at once (--per-host)."))
            let waiting = try await w.value("SELECT url FROM waiting LIMIT 1")
            #expect(
                try await w.run("explain", waiting).output.contains(
                    "is at its limit of 2 requests at once (--per-host)."))
            gate.open()
            try await w.untilEnded("1")
            #expect(try await w.value("SELECT count(*) FROM waiting") == "0")
        }
    }

    @Test func anItemThatWaitsForADownloadSlotHasThatReason() async throws {
        let gate = Gate()
        try await withWorker({ request in
            gate.wait()
            return Pictures.reply(request)
        }) { w in
            try await w.enqueue((0..<4).map { w.url("/\($0).png") })
            _ = try w.start("--per-host", "4", "--concurrency", "1")
            let reason = "All download slots are in use (--concurrency)."
            try await w.eventually("three wait") {
                try await w.value("SELECT count(*), min(reason), max(reason) FROM waiting") == "3|\(reason)|\(reason)"
            }
            #expect(try await w.run("hosts").output.contains(reason))
            let waiting = try await w.value("SELECT url FROM waiting LIMIT 1")
            #expect(try await w.run("explain", waiting).output.contains(reason))
            gate.open()
            try await w.untilEnded("1")
        }
    }

    @Test func `Items that wait for a transform command or the delegate program have that reason`()
        async throws
    {
        try await withWorker(Pictures.reply) { w in
            let slow = try w.file("slow", "#!/bin/sh\nIFS= read -r line\nsleep 3\nprintf '{\"ok\":true}\\n'\ncat\n")
            let delegate = try w.file("delegate", "#!/bin/sh\nread -r line\nsleep 3\nprintf '{\"allow\":true}\\n'\n")
            for path in [slow, delegate] { chmod(path, 0o755) }
            for (first, count, arguments, variant, host, reason) in [
                (
                    0, 3, ["--transform-command", "slow=\(slow)"], "t=8x6,png,command:slow", "transform commands",
                    "The transform command is at work on another picture (--transforms)."
                ),
                (
                    10, 4, ["--delegate-command", "\(delegate):allow"], "u=8x6,png", "delegate program",
                    "The delegate program is busy with 2 other calls."
                ),
            ] {
                let job = try await w.enqueue((first..<first + count).map { w.url("/\($0).png") }, "--variant", variant)
                let worker = try w.start(TestWorker.quick + ["--transforms", "1"] + arguments)
                try await w.eventually("two wait for it") {
                    try await w.value("SELECT count(*), min(reason), max(reason) FROM waiting")
                        == "2|\(reason)|\(reason)"
                }
                #expect(try await w.run("hosts").output.contains(host))
                let url = try await w.value("SELECT url FROM waiting LIMIT 1")
                #expect(try await w.run("explain", url).output.contains(reason))
                try await w.untilEnded(job)
                #expect(try await w.counts(job) == "\(count)|0|0|0|0")
                worker.send(SIGTERM)
                _ = try await worker.wait()
            }
        }
    }

    @Test func `Status shows how many items wait for how many hosts, with the longest known time`() async throws {
        try await withWorker({ request in
            .status(503, headers: [("Retry-After", request.path.hasPrefix("/long") ? "1800" : "600")])
        }) { w in
            let other = { (path: String) in w.url(path).replacing("127.0.0.1", with: "localhost") }
            try await w.enqueue([w.url("/1.png"), w.url("/2.png"), other("/long1"), other("/long2"), other("/long3")])
            _ = try w.start()
            try await w.eventually("both hosts are left alone") {
                try await w.value("SELECT count(*) FROM waiting WHERE until IS NOT NULL") == "5"
            }
            let both = try await w.run("status", "1").output
            #expect(both.contains(/(?m)^waiting: 5 wait for 2 hosts, (30:00|2\d:\d\d) at most$/), "\(both)")
            // Those for which most wait come first, each with its own time.
            #expect(both.contains(/(?m)^  localhost: 3\. .*503\. (30:00|2\d:\d\d) at most\.$/), "\(both)")
            #expect(both.contains(/(?m)^  127\.0\.0\.1: 2\. .* (10:00|9:\d\d) at most\.$/), "\(both)")
        }
    }

    @Test func `Status shows no time if one of two waits has no known end`() async throws {
        let gate = Gate()
        try await withWorker({ request in
            if request.path == "/busy" { return .status(503, headers: [("Retry-After", "600")]) }
            gate.wait()
            return Pictures.reply(request)
        }) { w in
            let busy = w.url("/busy").replacing("127.0.0.1", with: "localhost")
            try await w.enqueue([busy, w.url("/1.png"), w.url("/2.png"), w.url("/3.png")])
            _ = try w.start("--per-host", "1")
            try await w.eventually("three wait") {
                try await w.value("SELECT count(*), count(until) FROM waiting") == "3|1"
            }
            let told = try await w.run("status", "1").output
            #expect(told.contains("\nwaiting: 3 wait for 2 hosts\n"), "\(told)")
            #expect(told.contains(/(?m)^  localhost: 1\. .* (10:00|9:\d\d) at most\.$/), "\(told)")
            #expect(told.contains(/(?m)^  127\.0\.0\.1: 2\. .*\(--per-host\)\.$/), "\(told)")
            gate.open()
            try await w.run(["cancel", "1"])
        }
    }

    /// Progress is printed every ten seconds without a terminal.
    @Test func `The time left is shown while no item waits, and not when it isn't known`() async throws {
        let gate = Gate()
        try await withWorker({ request in
            if request.path.hasPrefix("/held") { gate.wait(atMost: 60) }
            return request.path.hasPrefix("/busy")
                ? .status(503, headers: [("Retry-After", "1800")]) : .ok(Pictures.png(3))
        }) { w in
            let worker = try w.start()
            try await w.eventually("there is a database") { access(w.database, F_OK) == 0 }
            try await w.enqueue((0..<3).map { w.url("/held\($0)") })
            var number = 0
            /// Lines of progress; others begin with a level.
            func lines() throws -> [Substring] {
                try w.errors(of: worker).split(separator: "\n").filter { $0.contains(#/^\d+/\d+  /#) }
            }
            // Something ends all the time, so that there is a rate.
            func progress(_ what: String, _ holds: (Substring) -> Bool) async throws {
                try await w.eventually(what, within: .seconds(60)) {
                    number += 1
                    try await w.enqueue(w.url("/\(number).png"))
                    try await Task.sleep(for: .milliseconds(500))
                    return try lines().contains(where: holds)
                }
            }
            try await progress("the time left is told") {
                !$0.contains("wait for") && $0.contains(#/  \d+:\d\d left$/#)
            }
            try await w.enqueue((0..<2).map { w.url("/busy\($0)").replacing("127.0.0.1", with: "localhost") })
            try await progress("what waits is told") {
                $0.contains(#/  2 wait for localhost, (30:00|29:\d\d) at most$/#)
            }
            #expect(try lines().allSatisfy { !($0.contains("wait for") && $0.contains(" left")) })
            gate.open()
        }
    }

    @Test func retryCountsBlacklistedURLsAndWithRetryFailedRemovesThem() async throws {
        let isThere = Switch()
        try await withWorker({ request in isThere.isOn ? Pictures.reply(request) : .status(404) }) { w in
            try await w.enqueue(w.url("/1.png"), w.url("/2.png"))
            try await w.drain(expecting: 2)
            isThere.turnOn()
            let listed = try await w.run("retry", "1").errors
            #expect(listed.contains("2 items go back into the queue."))
            #expect(listed.contains("2 of their URLs are on the blacklist"))
            try await w.drain(expecting: 2)
            #expect(w.origin.requests.count == 2)
            #expect(try await w.run("retry", "1", "--retry-failed").errors.contains("2 of their URLs were taken off"))
            try await w.drain()
            #expect(try await w.counts("1") == "2|0|0|0|0")
        }
    }

    @Test func undecodedBodiesWithAnInvalidLengthAreRefused() async throws {
        let picture = Pictures.png(1)
        let forms = [
            "/conflict": "Content-Length: \(picture.count)\r\nContent-Length: \(picture.count + 1)",
            "/list": "Content-Length: \(picture.count), 5", "/plus": "Content-Length: +\(picture.count)",
            "/letters": "Content-Length: \(picture.count)abc",
            "/gzip": "Content-Length: \(picture.count)\r\nContent-Encoding: gzip",
        ]
        try await withWorker({ request in
            guard let lines = forms[request.path] else { return Pictures.reply(request) }
            return .raw("HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\(lines)\r\n\r\n", body: picture)
        }) { w in
            try await w.enqueue(forms.keys.sorted().map(w.url) + [w.url("/1.png")], "--option", "avoid-decode-image")
            try await w.drain("--max-tries", "1", expecting: 2)
            #expect(try await w.counts("1") == "1|0|5|0|0")
            let classes = try await w.rows("SELECT DISTINCT class FROM items WHERE state = 'failed' ORDER BY class")
            #expect(Set(classes).isSubset(of: ["truncated", "connection-lost"]))
        }
    }
}

private final class Switch: Sendable {
    private let state = Mutex(false)

    var isOn: Bool { state.withLock { $0 } }

    func turnOn() { state.withLock { $0 = true } }
}
