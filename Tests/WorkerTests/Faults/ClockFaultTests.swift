import Glibc
import TestSupport
import Testing

/// The machine's clock, as the programs of a test see it, is set while they run. Time itself goes on as it does.
private struct SetClock: Sendable {
    static let library: String? = fileNames(in: "/usr/lib").lazy
        .map { "/usr/lib/\($0)/faketime/libfaketime.so.1" }.first { access($0, R_OK) == 0 }
    static let missing: Comment = "there is no libfaketime here; scripts/bootstrap installs it"

    private let file: String
    private let worker: TestWorker

    init(of worker: TestWorker) throws {
        self.worker = worker
        file = worker.place("clock")
        try set("+0")
    }

    func set(_ offset: String) throws { try worker.write(Array("\(offset)\n".utf8), to: file) }

    var environment: [String: String] {
        [
            "LD_PRELOAD": Self.library ?? "", "FAKETIME_TIMESTAMP_FILE": file, "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1",
        ]
    }
}

@Suite("Clocks that are set", .timeLimit(.minutes(15)), .enabled(if: SetClock.library != nil, SetClock.missing))
struct ClockFaultTests {
    /// What must be as it was: who has what in hand, what waits, what is listed, kept and cached.
    private func standing(_ w: TestWorker, _ clock: SetClock) async throws -> [String] {
        let environment = clock.environment
        let rows = try await w.rows("SELECT id, state, lease, attempts FROM items WHERE id <= 6 ORDER BY id")
        let view = try await w.run(
            ["-batch", "-cmd", ".timeout 20000", w.database, "SELECT class FROM blacklist"], program: "sqlite3",
            environment: environment)
        let list = try await w.run("blacklist", "list", environment: environment)
        return rows + view.lines + [
            "\(list.lines.count { $0.contains("/gone.png") }) listed", "\(w.blobs.count) files",
        ]
    }

    @Test(arguments: ["+3650d", "-3650d"])
    func `Setting the clock by years ends nothing that is in force`(_ jump: String) async throws {
        let gate = Gate()
        try await withWorker({ request in
            switch request.path {
            case "/gone.png": return .status(404)
            case "/busy.png": return .status(503, headers: [(name: "Retry-After", value: "3600")])
            case "/held.png":
                gate.wait()
                return .ok(Pictures.png(9), type: "image/png")
            default: return Pictures.reply(request)
            }
        }) { w in
            let clock = try SetClock(of: w)
            // A host of its own, since the whole of it is left alone.
            let busy = "http://localhost:\(w.origin.port)/busy.png"
            try await w.enqueue((0..<3).map { w.url("/\($0).png") })
            for url in [w.url("/gone.png"), busy, w.url("/held.png")] { try await w.enqueue(url) }
            _ = try w.start(TestWorker.quick, environment: clock.environment)
            let states = "SELECT group_concat(state, ' ') FROM items"
            let wanted = "done done done failed delayed active"
            try? await w.eventually("all have come as far as they can") { try await w.value(states) == wanted }
            #expect(try await w.value(states) == wanted)
            let before = try await standing(w, clock)
            try clock.set(jump)
            let other = try w.start(TestWorker.quick + ["--keep-jobs", "30d"], environment: clock.environment)
            try await w.eventually("another worker has come") {
                try await w.value("SELECT count(*) FROM workers WHERE pid = \(other.pid)") == "1"
            }
            // It would be done again, and fail at once.
            try await w.enqueue(w.url("/gone.png"))
            try await w.eventually("what is listed is not asked for") {
                try await w.value("SELECT blacklisted FROM jobs WHERE id = 5") == "1"
            }
            // Time enough for each to look for what is over.
            try await Task.sleep(for: .seconds(3))
            #expect(try await standing(w, clock) == before)
            let environment = clock.environment
            let collected = try await w.run("cache", "gc", "--cache-max-age", "7d", environment: environment)
            #expect(collected.output.hasPrefix("0 files evicted"))
            let pruned = try await w.run("prune", "--older-than", "30d", environment: environment)
            #expect(pruned.output.hasPrefix("0 jobs"))
            #expect(try await standing(w, clock) == before)
            gate.open()
            try await w.untilEnded("4")
            #expect(try await w.counts("4") == "1|0|0|0|0")
            for path in ["/gone.png", "/busy.png", "/held.png"] { #expect(w.origin.requestCount(path) == 1, "\(path)") }
        }
    }
}
