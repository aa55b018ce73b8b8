import Glibc
import TestSupport
import Testing

/// Workers and helpers that are killed, or held up past the end of their lease.
@Suite("Kills and stops", .serialized, .timeLimit(.minutes(30)))
struct FencingFaultTests {
    @Test func `A worker that is frozen past its lease records no item twice`() async throws {
        try await FaultBench.lend { bench in
            let worker = try bench.worker()
            let lease = Duration.seconds(3)
            let first = try await worker.startRegistered("--lease", "3s", "--concurrency", "1", "--transforms", "1")
            // The lease itself goes soon after its last item.
            try await worker.eventually("it has claimed something") {
                try await worker.value("SELECT count(*) > 0 FROM claims") == "1"
            }
            try await worker.freeze(first.pid)
            let stopped = ContinuousClock.now
            try await worker.drain("--lease", "3s")
            try await Task.sleep(until: stopped.advanced(by: lease * 2), clock: .continuous)
            kill(first.pid, SIGCONT)
            try await worker.eventually("it is idle") {
                try await worker.value("SELECT count(*) FROM items WHERE state = 'active'") == "0"
            }
            try await Task.sleep(for: .milliseconds(500))
            first.send(SIGTERM)
            #expect(try await first.wait() == .code(0))
            try await bench.check(worker, "held up")
        }
    }

    /// Half of the kills hit a worker, the others one of its helpers.
    @Test func `Kills of workers and helpers lose no item`() async throws {
        try await FaultBench.lend { bench in
            let worker = try bench.worker()
            var generator = SeededGenerator(seed: 4)
            var child = try worker.start("--transforms", "2")
            for kill in 0..<FaultScale.number("FAULT_KILLS", 100) {
                if kill % 5 == 0 {
                    try await worker.sql(
                        """
                        DELETE FROM variants;
                        INSERT INTO jobs (variants, urls) SELECT variants, (SELECT json_group_array(url) FROM items WHERE job = 1)
                            FROM jobs WHERE id = 1
                        """)
                }
                try await Task.sleep(for: .milliseconds(Int.random(in: 10...150, using: &generator)))
                let helpers = ProcessTable.children(of: child.pid)
                if kill % 2 == 1, let helper = helpers.randomElement(using: &generator) {
                    Glibc.kill(helper, SIGKILL)
                } else {
                    child.send(SIGKILL)
                    _ = try await child.wait()
                    child = try worker.start("--transforms", "2")
                }
            }
            try await worker.eventually("all has ended", within: .seconds(120)) {
                try await worker.value("SELECT sum(queued + active + delayed) FROM jobs") == "0"
            }
            child.send(SIGTERM)
            #expect(try await child.wait() == .code(0))
            // A picture whose helper was killed twice is given up, and its URL is listed: that is what is promised.
            #expect(try await worker.rows("SELECT DISTINCT class FROM failures").filter { $0 != "decoder-crash" } == [])
            #expect(try await worker.value("SELECT count(*) = count(DISTINCT item) FROM ends") == "1")
            #expect(Set(try await worker.outputs()).isSubset(of: Set(bench.outputs)))
            let verified = try await worker.run("cache", "verify", expecting: nil)
            #expect(verified.exit == .code(0), "\(verified.output)")
        }
    }
}
