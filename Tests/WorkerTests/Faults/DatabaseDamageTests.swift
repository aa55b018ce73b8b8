import Glibc
import TestSupport
import Testing

/// A database whose pages, log or shared memory were damaged: workers stop with 74 and say what to do, and a new one is made
/// from what is left.
@Suite("A damaged database", .timeLimit(.minutes(30)))
struct DatabaseDamageTests {
    @Test func `Damaged pages stop the work or are rebuilt, and nothing that can be read is lost`() async throws {
        try await FaultBench.lend { bench in
            let seeds = Array(0..<FaultScale.number("FAULT_DATABASE_SEEDS", 20))
            try await FaultScale.forEach(seeds, atOnce: 2) { seed in
                let worker = try bench.worker()
                var generator = SeededGenerator(seed: UInt64(seed))
                if seed % 2 == 0 { try await worker.drain() }
                try damage(worker, seed, &generator)
                let run = try await worker.run(
                    ["run", "--drain", "--quiet"] + TestWorker.quick, expecting: nil)
                // It may not have come across the damage, or have found it and said what to do.
                #expect([.code(0), .code(2), .code(74)].contains(run.exit), "seed \(seed): \(run.exit) \(run.errors)")
                if run.exit == .code(74) {
                    #expect(run.errors.contains("worker db rebuild"), "seed \(seed): \(run.errors)")
                }
                let rebuilt = try await worker.run("db", "rebuild")
                #expect(try await worker.value("PRAGMA integrity_check") == "ok", "seed \(seed)")
                // What was saved can be finished.
                try await worker.sql("UPDATE jobs SET state = 'queued' WHERE state = 'paused'")
                try await worker.run(["run", "--drain", "--quiet"] + TestWorker.quick, expecting: nil)
                let verified = try await worker.run("cache", "verify", expecting: nil)
                #expect(verified.exit == .code(0), "seed \(seed): \(verified.output)")
                let outputs = Set(try await worker.outputs())
                #expect(outputs.isSubset(of: Set(bench.outputs)), "seed \(seed)")
                // A schema that can't be read takes all rows with it, and then it was said.
                let jobs = try await worker.value("SELECT count(*) FROM jobs")
                #expect(jobs != "0" || rebuilt.errors != "", "seed \(seed)")
                try bench.remove(worker)
            }
        }
    }

    @Test func `Without its shared memory and its log a database is what was committed to it`() async throws {
        try await FaultBench.lend { bench in
            let worker = try bench.worker()
            try await worker.drain()
            unlink(worker.database + "-shm")
            try await worker.drain()
            try await bench.check(worker, "without -shm")
        }
    }

    @Test func `A rebuilt database has every job, and knows every file`() async throws {
        try await FaultBench.lend { bench in
            let worker = try bench.worker()
            try await worker.drain()
            try await worker.enqueue(worker.url("/77.png"), "--priority", "7")
            let before = try await worker.rows("SELECT id, state, total, done, priority FROM jobs")
            let report = try await worker.run("db", "rebuild", "--json")
            #expect(report.output.contains("\"unreadable\":[]"))
            #expect(try await worker.rows("SELECT id, state, total, done, priority FROM jobs") == before)
            #expect(try await worker.outputs() == bench.outputs)
            try await worker.drain()
            #expect(try await worker.value("SELECT count(*) FROM items WHERE state = 'done'") == "21")
        }
    }

    @Test func `A copy is whole, and a rebuild is refused while a worker runs`() async throws {
        try await FaultBench.lend { bench in
            let worker = try bench.worker()
            try await worker.drain()
            let copy = worker.place("copy.db")
            try await worker.run("db", "backup", copy)
            let integrity = try await worker.run([copy, "PRAGMA integrity_check"], program: "sqlite3")
            #expect(integrity.line == "ok")
            #expect(fileNames(in: worker.scratch).filter { $0.hasPrefix("copy") } == ["copy.db"])
            let child = try await worker.startRegistered()
            try await worker.run("db", "rebuild", expecting: 75)
            child.send(SIGTERM)
            #expect(try await child.wait() == .code(0))
        }
    }

    /// Overwrites a piece of a page; every fifth time of the one that says what the others are.
    private func damage(_ worker: TestWorker, _ seed: Int, _ generator: inout SeededGenerator) throws {
        var bytes = try worker.bytes(of: worker.database)
        let pages = bytes.count / 4_096
        let page = seed % 5 == 0 ? 0 : Int.random(in: 1..<pages, using: &generator)
        let start = page * 4_096 + Int.random(in: 0..<3_000, using: &generator)
        for index in start..<min(bytes.count, start + 600) {
            bytes[index] = UInt8.random(in: 0...255, using: &generator)
        }
        try worker.write(bytes, to: worker.database)
    }
}
