import Glibc
import TestSupport
import Testing

/// A PostgreSQL server that dies at work, and whose standby takes over.
@Suite(
    "Promotion of a standby", .enabled(if: PostgresServer.isAvailable, Comment(rawValue: PostgresServer.missing)),
    .timeLimit(.minutes(10)))
struct PromotionTests {
    @Test func `Workers go on with a promoted standby, lose nothing, and repeat nothing that was durable`() async throws
    {
        let pair = try await PostgresPair()
        defer { pair.stop() }
        try await withWorker({ .delayed(milliseconds: 15, then: Pictures.reply($0)) }) { w in
            w.set(["WORKER_DB": pair.url])
            try await w.run("init")
            let count = 600
            try await w.enqueue((0..<count).map { w.url("/\($0).png") } + ["--variant", "t=16x,webp"])
            let workers = [try await w.startRegistered(), try await w.startRegistered()]
            try await w.eventually("a part is done") {
                try await w.value("SELECT count(*) >= 100 FROM items WHERE state = 'done'") == "t"
            }
            let ended = Set(try await w.rows("SELECT id, finished_at FROM items WHERE state = 'done'"))
            try pair.killPrimary()
            try await Task.sleep(for: .seconds(1))
            try pair.promote()
            try await w.eventually("all is done", within: .seconds(120)) {
                try await w.value("SELECT state FROM jobs") == "finished"
            }
            #expect(ended.count >= 100)
            #expect(ended.isSubset(of: Set(try await w.rows("SELECT id, finished_at FROM items WHERE state = 'done'"))))
            #expect(try await w.value("SELECT done + cached FROM jobs") == "\(count)")
            #expect(try await w.value("SELECT count(*) FROM renditions") == "\(2 * count)")
            for worker in workers {
                let told = try w.errors(of: worker)
                #expect(worker.exit == nil, "\(told)")
                #expect(told.contains("can be reached again"), "\(told)")
                worker.send(SIGTERM)
                #expect(try await worker.wait() == .code(0))
            }
            #expect(try await w.value("SELECT count(*) FROM leases") == "0")
        }
    }
}
