import Glibc
import TestSupport
import Testing

/// A worker is killed at every call that changes something; whoever comes next loses nothing and does nothing twice.
@Suite("Kill sweep", .serialized, .timeLimit(.minutes(60)), .enabled(if: FaultScale.hasStrace, FaultScale.noStrace))
struct KillSweepTests {
    static let calls = [
        "linkat", "fsync", "syncfs", "sync_file_range", "fdatasync", "pwrite64", "write", "unlink", "rename",
        "ftruncate", "connect",
    ]

    struct Point: Sendable {
        let call: String
        let ordinal: Int
    }

    @Test func `A kill at any point loses nothing`() async throws {
        try await FaultBench.lend { bench in
            let all = try await points(bench)
            let wanted = FaultScale.number("FAULT_POINTS", 300)
            // Spread evenly; every one where fewer would be left out.
            let count = min(wanted, all.count)
            let chosen = (0..<count).map { all[$0 * all.count / count] }
            try await FaultScale.forEach(chosen, atOnce: 3) { point in
                // A busy machine may be slow once. What is slow each time is ours.
                for attempt in 1...3 {
                    if try await kill(bench, at: point) { break }
                    #expect(attempt < 3, "killed at \(point.call) \(point.ordinal): the first claim takes over 2 s")
                }
            }
        }
    }

    /// - Returns: whether the next run's first claim came within two seconds.
    private func kill(_ bench: FaultBench, at point: Point) async throws -> Bool {
        let worker = try bench.worker()
        let what = "killed at \(point.call) \(point.ordinal)"
        let killed = try await worker.drain(injecting: "signal=SIGKILL:when=\(point.ordinal)", into: point.call)
        // A helper may have been hit, or the call may not have come this often: then the run ended by itself.
        #expect([.signal(SIGKILL), .code(0), .code(137)].contains(killed.exit), "\(what): \(killed.errors)")
        try await worker.drain("--quiet")
        let wait = try await worker.firstClaim()
        try await bench.check(worker, what)
        try bench.remove(worker)
        return wait.map { $0 < 2_000 } ?? true
    }

    /// Each call's ordinals, counted by thread as strace counts them.
    private func points(_ bench: FaultBench) async throws -> [Point] {
        let worker = try bench.worker()
        let trace = worker.place("trace")
        try await worker.run(
            [
                "-f", "-qq", "--seccomp-bpf", "-o", trace, "-e", "trace=\(Self.calls.joined(separator: ","))",
                TestWorker.binary,
                "run", "--drain", "--quiet",
            ] + TestWorker.quick, program: "strace")
        try await bench.check(worker, "undisturbed, under strace")
        var counts: [String: Int] = [:]
        for line in try worker.text(of: trace).split(separator: "\n") {
            let words = line.split(separator: " ", omittingEmptySubsequences: true)
            guard words.count > 1, let call = words[1].split(separator: "(").first, words[1].contains("(") else {
                continue
            }
            counts["\(call) \(words[0])", default: 0] += 1
        }
        try bench.remove(worker)
        return Self.calls.flatMap { call in
            let most = counts.filter { $0.key.hasPrefix(call + " ") }.values.max() ?? 0
            return (0..<most).map { Point(call: call, ordinal: $0 + 1) }
        }
    }
}

extension TestWorker {
    /// Milliseconds from the last worker's start to its first claim; nil where it found nothing to claim.
    func firstClaim() async throws -> Int? {
        Int(try await value("SELECT min(wait) FROM claims WHERE worker = (SELECT max(worker) FROM claims)"))
    }
}
