import Dispatch
import Glibc
import Synchronization
import TestSupport
import Testing

/// The wait of a `Retry-After` outlives the worker that received it.
@Suite(.serialized, .timeLimit(.minutes(15))) struct RetryAfterCrashTests {
    /// From the moment the origin sends its answer until the worker is killed, in milliseconds. What is learnt of hosts by and
    /// by is written every 400 ms, and results are gathered for as many as 250.
    private static let life = 50
    private static let attempts = 5

    @Test(arguments: [429, 503]) func aRetryAfterOutlivesAWorkerThatIsKilledSoonAfterIt(
        _ status: Int
    ) async throws {
        var kept = 0
        for _ in 0..<Self.attempts { kept += try await isKept(status) ? 1 : 0 }
        // A machine that is busy may take its time once; what isn't written with urgency is lost most times.
        #expect(kept >= Self.attempts - 1, "\(kept) of \(Self.attempts)")
    }

    /// Whether nothing is asked of the host by the worker that comes after the one that was killed.
    private func isKept(_ status: Int) async throws -> Bool {
        let victim = Atomic<pid_t>(0)
        let queue = DispatchQueue(label: "killer", qos: .userInteractive)
        var isKept = false
        try await withWorker({ _ in
            let pid = victim.exchange(0, ordering: .acquiringAndReleasing)
            if pid > 0 {
                queue.asyncAfter(deadline: .now() + .milliseconds(Self.life)) { kill(pid, SIGKILL) }
            }
            return .status(status, headers: [("Retry-After", "30")])
        }) { w in
            try await w.run("init")
            let child = try await w.startRegistered("--per-host", "1")
            victim.store(child.pid, ordering: .releasing)
            try await w.enqueue((0..<5).map { w.url("/\($0).png") })
            #expect(try await child.wait() == .signal(SIGKILL))
            let asked = w.origin.requests.count
            #expect(asked == 1)
            _ = try await w.startRegistered("--per-host", "1")
            try await w.eventually("the items wait, or their host was asked") {
                if w.origin.requests.count > asked { return true }
                return try await w.value("SELECT count(*) FROM items WHERE state = 'delayed' AND waits_for > ''") == "5"
            }
            isKept = w.origin.requests.count == asked
        }
        return isKept
    }
}
