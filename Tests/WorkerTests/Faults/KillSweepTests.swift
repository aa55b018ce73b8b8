import Glibc
import Synchronization
import TestSupport
import Testing

/// A worker is killed at every call that changes something; the next worker loses no item and does no item twice.
@Suite("Kill sweep", .serialized, .timeLimit(.minutes(150)), .enabled(if: FaultScale.hasStrace, FaultScale.noStrace))
struct KillSweepTests {
    static let calls = [
        "linkat", "fsync", "syncfs", "sync_file_range", "fdatasync", "pwrite64", "write", "unlink", "rename", "symlink",
        "ftruncate", "connect",
    ]

    struct Point: Sendable {
        let flavour: FaultBench.Flavour
        let call: String
        let ordinal: Int

        var description: String { "killed at \(call) \(ordinal), \(flavour)" }
    }

    /// How many points were tried at each call, and how many of them ended the worker.
    private struct Tally {
        var tried: [String: Int] = [:]
        var killed: [String: Int] = [:]
    }

    @Test func `A kill at any system call loses no item`() async throws {
        try await FaultBench.lend { bench in
            try await bench.prepare(.limited)
            let wanted = FaultScale.number("FAULT_POINTS", 100)
            // One point in three where files are evicted and links made.
            let all =
                Self.spread(try await points(bench, .plain), wanted - wanted / 3)
                + Self.spread(try await points(bench, .limited), wanted / 3)
            // A sweep of all points takes forty minutes; one that was ended goes on behind the points that were tried.
            let points = Array(all.dropFirst(FaultScale.number("FAULT_SKIP", 0)))
            print("Kill sweep: \(points.count) of \(all.count) points")
            let tally = Mutex(Tally())
            try await FaultScale.forEach(points, atOnce: 3) { point in
                let isKilled = try await sweep(bench, point)
                tally.withLock {
                    $0.tried[point.call, default: 0] += 1
                    if isKilled { $0.killed[point.call, default: 0] += 1 }
                }
            }
            judge(tally.withLock { $0 })
        }
    }

    /// A sweep whose runs go through to their end proves nothing.
    private func judge(_ tally: Tally) {
        let tried = tally.tried.values.reduce(0, +)
        let killed = tally.killed.values.reduce(0, +)
        let each = tally.tried.sorted { $0.key < $1.key }.map { "\($0.key) \(tally.killed[$0.key] ?? 0)/\($0.value)" }
        print("Kill sweep: \(killed) of \(tried) points killed the worker: \(each.joined(separator: ", "))")
        #expect(killed * 10 >= tried * 8, "\(killed) of \(tried) points killed the worker: \(each)")
        for call in ["linkat", "pwrite64", "write", "unlink", "connect", "symlink", "rename"] {
            #expect((tally.killed[call] ?? 0) > 0, "no kill at \(call): \(each)")
        }
        let syncs = ["fsync", "syncfs", "fdatasync"].reduce(0) { $0 + (tally.killed[$1] ?? 0) }
        #expect(syncs > 0, "no kill at a sync: \(each)")
    }

    /// - Returns: whether the worker was killed.
    private func sweep(_ bench: FaultBench, _ point: Point) async throws -> Bool {
        // Threads are not the same from run to run, so the call may not have come this often in any of them, and a helper
        // that was hit is none of ours: what comes earlier is tried then.
        var ordinal = point.ordinal
        for _ in 0..<3 {
            let point = Point(flavour: point.flavour, call: point.call, ordinal: ordinal)
            // A busy machine may be slow once. What is slow each time is ours.
            for attempt in 1...3 {
                let (isKilled, isQuick) = try await kill(bench, at: point)
                if isQuick, isKilled { return true }
                if isQuick { break }
                #expect(attempt < 3, "\(point.description): the first claim takes over 2 s")
            }
            if ordinal == 1 { return false }
            ordinal /= 2
        }
        return false
    }

    /// - Returns: whether it was the worker that ended, and whether the next run's first claim came within two seconds.
    private func kill(_ bench: FaultBench, at point: Point) async throws -> (isKilled: Bool, isQuick: Bool) {
        let worker = try bench.worker(point.flavour)
        let arguments = bench.arguments(point.flavour)
        let killed = try await worker.drain(
            injecting: "signal=SIGKILL:when=\(point.ordinal)", into: point.call, arguments: arguments)
        let isKilled = [.signal(SIGKILL), .code(137)].contains(killed.exit)
        #expect(isKilled || killed.exit == .code(0), "\(point.description): \(killed.errors)")
        let next = try await worker.run(
            ["run", "--drain", "--quiet"] + TestWorker.quick + arguments, expecting: nil)
        #expect(next.exit == .code(0), "\(point.description), the next run: \(next.errors)")
        let wait = try await worker.firstClaim()
        try await bench.check(worker, point.flavour, point.description)
        try bench.remove(worker)
        return (isKilled, wait.map { $0 < 2_000 } ?? true)
    }

    /// Each call's ordinals, counted by thread as strace counts them.
    private func points(_ bench: FaultBench, _ flavour: FaultBench.Flavour) async throws -> [[Point]] {
        let worker = try bench.worker(flavour)
        let trace = worker.place("trace")
        try await worker.run(
            [
                "-f", "-qq", "--seccomp-bpf", "-o", trace, "-e", "trace=\(Self.calls.joined(separator: ","))",
                TestWorker.binary,
                "run", "--drain", "--quiet",
            ] + TestWorker.quick + bench.arguments(flavour), program: "strace")
        try await bench.check(worker, flavour, "undisturbed, under strace")
        var counts: [String: Int] = [:]
        for line in try worker.text(of: trace).split(separator: "\n") {
            let words = line.split(separator: " ", omittingEmptySubsequences: true)
            guard words.count > 1, let call = words[1].split(separator: "(").first, words[1].contains("(") else {
                continue
            }
            counts["\(call) \(words[0])", default: 0] += 1
        }
        try bench.remove(worker)
        return Self.calls.map { call in
            let most = counts.filter { $0.key.hasPrefix(call + " ") }.values.max() ?? 0
            return (0..<most).map { Point(flavour: flavour, call: call, ordinal: $0 + 1) }
        }
    }

    /// So many points in all: every one of the calls that come seldom, and of the others as many each, spread evenly.
    private static func spread(_ calls: [[Point]], _ count: Int) -> [Point] {
        var left = count
        var chosen: [Point] = []
        let ordered = calls.filter { !$0.isEmpty }.sorted { $0.count < $1.count }
        for (index, points) in ordered.enumerated() {
            let share = min(points.count, left / (ordered.count - index))
            chosen += (0..<share).map { points[$0 * points.count / share] }
            left -= share
        }
        return chosen
    }
}

extension TestWorker {
    /// Milliseconds from the last worker's start to its first claim; nil where it found nothing to claim.
    func firstClaim() async throws -> Int? {
        Int(try await value("SELECT min(wait) FROM claims WHERE worker = (SELECT max(worker) FROM claims)"))
    }
}
