import Glibc
import Synchronization
import TestSupport
import Testing

/// What people are told of items that wait, and of those whose URLs are on the blacklist.
@Suite(.serialized, .timeLimit(.minutes(15))) struct WaitingCommandTests {
    @Test func whatWaitsForAHostsPlacesIsToldByEveryCommand() async throws {
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

    @Test func whatWaitsForADownloadSlotSaysSo() async throws {
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

    @Test func `What waits for a transform command or for the delegate program is told like all that waits`()
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

    @Test func retrySaysHowManyAreListedAndTakesThemOffTheList() async throws {
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

    @Test func bodiesWhoseEndIsntSoundAreRefusedThoughNobodyDecodesThem() async throws {
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
