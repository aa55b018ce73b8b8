import Glibc
import TestSupport
import Testing

/// The files beside the database are lost after a kill: the database has its checkpointed rows, and no item is done
/// twice.
@Suite(
    "A log that is lost", .serialized, .timeLimit(.minutes(30)), .enabled(if: FaultScale.hasStrace, FaultScale.noStrace)
)
struct LogLossTests {
    @Test(arguments: [["-shm"], ["-wal"], ["-wal", "-shm"]])
    func `A database without its WAL or shared memory goes on from its last checkpoint`(_ lost: [String]) async throws {
        try await FaultBench.lend { bench in
            for attempt in 1...10 {
                let worker = try bench.worker()
                let killed = try await worker.drain(injecting: "signal=SIGKILL:when=\(20 + attempt)", into: "linkat")
                #expect([.signal(SIGKILL), .code(137)].contains(killed.exit), "\(killed.errors)")
                // There is something to lose.
                #expect(try worker.bytes(of: worker.database + "-wal").count > 4_096)
                for ending in lost { #expect(unlink(worker.database + ending) == 0) }
                // The kill may have come while the log was being moved; without it that is a damaged database.
                if lost.contains("-wal"), try await worker.value("PRAGMA integrity_check") != "ok" {
                    #expect(attempt < 10)
                    try bench.remove(worker)
                    continue
                }
                try await worker.drain()
                try await bench.check(worker, "without \(lost)")
                return
            }
        }
    }
}
