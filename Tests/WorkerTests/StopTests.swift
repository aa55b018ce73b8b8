import Glibc
import TestSupport
import Testing

/// Stops of a worker that can't write its results.
@Suite("Stopping", .timeLimit(.minutes(15)), .enabled(if: getuid() == 0, "only root can mount a small disk"))
struct StopTests {
    /// Results that can't be written are left to the next worker once the grace is over.
    @Test func `A worker whose database's disk stays full still stops`() async throws {
        try await SmallDisk.lend { disk in
            let gate = Gate()
            try await withWorker({ request in
                gate.wait()
                return Pictures.reply(request)
            }) { w in
                try await w.run("init")
                try disk.hold(w.database)
                try await w.enqueue((0..<6).map { w.url("/\($0).png") })
                let child = try w.start("--grace", "1s", "--silence-timeout", "60s", "--total-timeout", "60s")
                try await w.eventually("all are in flight") { w.origin.requests.count == 6 }
                try disk.fill(leaving: 0)
                gate.open()
                try await w.eventually("nothing can be written down", within: .seconds(60)) {
                    try w.errors(of: child).contains("Results can't be saved")
                }
                child.send(SIGTERM)
                let exit = try await child.wait(atMost: .seconds(120))
                let errors = try w.errors(of: child)
                #expect([.code(0), .code(74), .code(75)].contains(exit), "\(errors)")
                disk.empty()
                try await w.drain()
                #expect(try await w.value("SELECT done + cached FROM jobs") == "6")
                try disk.giveBack(w.database)
            }
        }
    }
}
