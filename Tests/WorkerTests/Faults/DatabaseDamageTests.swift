import Glibc
import TestSupport
import Testing

/// A database with damaged pages, log or shared memory: workers stop with 74 and give advice, and a rebuild makes a new
/// database from the readable rows.
@Suite("A damaged database", .timeLimit(.minutes(30)))
struct DatabaseDamageTests {
    @Test func `A run on a damaged database stops with advice or goes on, and a rebuild keeps readable rows`()
        async throws
    {
        try await FaultBench.lend { bench in
            let seeds = Array(0..<FaultScale.number("FAULT_DATABASE_SEEDS", 20))
            try await FaultScale.forEach(seeds, atOnce: 2) { seed in
                let part = Part.allCases[seed % Part.allCases.count]
                let what = "seed \(seed), \(part)"
                let worker = try bench.worker()
                var generator = SeededGenerator(seed: UInt64(seed))
                if seed % 2 == 0 { try await worker.drain() }
                try await damage(worker, part, &generator)
                let run = try await worker.run(
                    ["run", "--drain", "--quiet"] + TestWorker.quick, expecting: nil)
                // It may not have come across the damage, or have found it and said what to do.
                #expect([.code(0), .code(2), .code(74)].contains(run.exit), "\(what): \(run.exit) \(run.errors)")
                if run.exit == .code(74) { #expect(run.errors.contains("worker db rebuild"), "\(what): \(run.errors)") }
                let rebuilt = try await worker.run("db", "rebuild", "--yes", expecting: nil)
                // It says whether everything was read.
                #expect(rebuilt.exit == .code(rebuilt.errors.isEmpty ? 0 : 74), "\(what): \(rebuilt.errors)")
                #expect(try await worker.value("PRAGMA integrity_check") == "ok", "\(what)")
                // What was saved can be finished.
                try await worker.sql("UPDATE jobs SET state = 'queued' WHERE state = 'paused'")
                try await worker.run(["run", "--drain", "--quiet"] + TestWorker.quick, expecting: nil)
                let verified = try await worker.run("cache", "verify", expecting: nil)
                #expect(verified.exit == .code(0), "\(what): \(verified.output)")
                let outputs = Set(try await worker.outputs())
                #expect(outputs.isSubset(of: Set(bench.outputs)), "\(what)")
                if part.isHarmless {
                    // Every page of the database was whole: nothing that was in it may be missing.
                    #expect(outputs == Set(bench.outputs), "\(what)")
                    #expect(try await worker.value("SELECT count(*) FROM items WHERE job = 1") == "20", "\(what)")
                }
                // A schema that can't be read takes all rows with it, and then it was said.
                let jobs = try await worker.value("SELECT count(*) FROM jobs")
                #expect(jobs != "0" || rebuilt.errors != "", "\(what)")
                try bench.remove(worker)
            }
        }
    }

    /// Damage to the pages that every claim has to read.
    @Test(arguments: ["jobs", "items", "items_queued", "the first page"])
    func `A run that can't claim because of damage ends with 74 and advice`(_ part: String) async throws {
        try await FaultBench.lend { bench in
            let worker = try bench.worker()
            let number = part == "the first page" ? "1" : "(SELECT rootpage FROM sqlite_schema WHERE name = '\(part)')"
            let page = try #require(Int(try await worker.value("SELECT \(number)")))
            var bytes = try worker.bytes(of: worker.database)
            for index in (page - 1) * 4_096..<page * 4_096 { bytes[index] = 0xFF }
            try worker.write(bytes, to: worker.database)
            for _ in 0..<2 {
                let run = try await worker.run(
                    ["run", "--drain", "--quiet"] + TestWorker.quick, expecting: 74)
                #expect(
                    run.errors.contains("worker db rebuild") && run.errors.contains("worker db backup"), "\(run.errors)"
                )
            }
            #expect(worker.blobs == [])
            #expect(worker.processes == [])
        }
    }

    @Test func `A rebuilt database has every job and every file of the cache`() async throws {
        try await FaultBench.lend { bench in
            let worker = try bench.worker()
            try await worker.drain()
            try await worker.enqueue(worker.url("/77.png"), "--priority", "7")
            let before = try await worker.rows("SELECT id, state, total, done, priority FROM jobs")
            let report = try await worker.run("db", "rebuild", "--yes", "--json")
            #expect(report.output.contains("\"unreadable\":[]"))
            #expect(try await worker.rows("SELECT id, state, total, done, priority FROM jobs") == before)
            #expect(try await worker.outputs() == bench.outputs)
            try await worker.drain()
            #expect(try await worker.value("SELECT count(*) FROM items WHERE state = 'done'") == "21")
        }
    }

    /// SQLite has crashed once on a damaged page, which can't be repeated; here a signal ends the process that reads it.
    @Test func `A rebuild that crashes begins again without a change to the damaged database`() async throws {
        try await FaultBench.lend { bench in
            let worker = try bench.worker()
            try await worker.drain()
            let (exit, errors) = try await rebuild(worker, crashes: 1)
            #expect(exit == .code(74))
            #expect(errors.contains("(signal 11)") && errors.contains("Rows that other programs added"), "\(errors)")
            #expect(try await worker.outputs() == bench.outputs)
            #expect(try await worker.rows("SELECT state, count(*) FROM items GROUP BY state") == ["done|20"])
            #expect(try await worker.value("PRAGMA integrity_check") == "ok")
            try await worker.drain()
        }
    }

    @Test func `A rebuild that always crashes says so and leaves the database`() async throws {
        try await FaultBench.lend { bench in
            let worker = try bench.worker()
            try await worker.drain()
            let (exit, errors) = try await rebuild(worker, crashes: 2)
            #expect(exit == .code(74))
            #expect(errors.contains("worker db backup") && errors.contains("left where it is"), "\(errors)")
            #expect(fileNames(in: worker.home).filter { $0.contains("broken") } == [])
            #expect(try await worker.outputs() == bench.outputs)
            #expect(try await worker.value("PRAGMA integrity_check") == "ok")
            try await bench.check(worker, "after two crashes")
            // The next removes what the crashed ones left.
            try await worker.run("db", "rebuild", "--yes")
            #expect(fileNames(in: worker.home).filter { $0.contains("rebuilding") } == [])
        }
    }

    /// Ends as many of the processes that do the work by SIGSEGV. Each waits for the lock of commands that write, which this
    /// process holds until then.
    private func rebuild(_ worker: TestWorker, crashes: Int) async throws -> (RunningProgram.Exit, String) {
        let lock = open(worker.database + ".lock", O_RDONLY | O_CLOEXEC)
        #expect(flock(lock, LOCK_EX) == 0)
        defer { close(lock) }
        let program = try worker.start(["rebuild", "--yes"], command: "db")
        var crashed: Set<pid_t> = []
        while crashed.count < crashes {
            for pid in ProcessTable.children(of: program.pid) where !crashed.contains(pid) {
                // Not before it is the program: else it could not be started, which is another error.
                guard ProcessTable.words(of: pid).contains("--in-this-process") else { continue }
                kill(pid, SIGSEGV)
                crashed.insert(pid)
            }
            guard program.exit == nil else { break }
            try await Task.sleep(for: .milliseconds(2))
        }
        #expect(crashed.count == crashes)
        flock(lock, LOCK_UN)
        return (try await program.wait(), try worker.errors(of: program))
    }

    @Test func `A backup is whole, and a rebuild is refused while a worker runs`() async throws {
        try await FaultBench.lend { bench in
            let worker = try bench.worker()
            try await worker.drain()
            let copy = worker.place("copy.db")
            try await worker.run("db", "backup", copy)
            let integrity = try await worker.run([copy, "PRAGMA integrity_check"], program: "sqlite3")
            #expect(integrity.line == "ok")
            #expect(fileNames(in: worker.scratch).filter { $0.hasPrefix("copy") } == ["copy.db"])
            let child = try await worker.startRegistered()
            try await worker.run("db", "rebuild", "--yes", expecting: 75)
            child.send(SIGTERM)
            #expect(try await child.wait() == .code(0))
        }
    }

    /// What is damaged.
    private enum Part: CaseIterable {
        case page
        /// The first, which says what the others are.
        case schema
        /// The log, with a job in it that nowhere else is.
        case log
        case sharedMemory

        /// Whether the database's own pages are whole.
        var isHarmless: Bool { self == .log || self == .sharedMemory }
    }

    private func damage(_ worker: TestWorker, _ part: Part, _ generator: inout SeededGenerator) async throws {
        if part.isHarmless {
            // As a program leaves them that was killed: the log holds what was not moved yet.
            try await worker.run(
                [
                    "-cmd", ".dbconfig no_ckpt_on_close on", worker.database,
                    "INSERT INTO jobs (name, urls) VALUES ('in the log', json_array('\(worker.url("/3.png"))'))",
                ], program: "sqlite3")
        }
        let (path, page): (String, Int) =
            switch part {
            case .page: (worker.database, try worker.bytes(of: worker.database).count / 4_096)
            case .schema: (worker.database, 1)
            case .log: (worker.database + "-wal", try worker.bytes(of: worker.database + "-wal").count / 4_120)
            case .sharedMemory: (worker.database + "-shm", 8)
            }
        // The first program that opens the database makes it again.
        if part == .sharedMemory { try worker.write([UInt8](repeating: 0, count: 32_768), to: path) }
        var bytes = try worker.bytes(of: path)
        let chosen =
            part == .page
            ? Int.random(in: 1..<max(2, page), using: &generator) : Int.random(in: 0..<max(1, page), using: &generator)
        let start = chosen * 4_096 + Int.random(in: 0..<3_000, using: &generator)
        for index in min(start, bytes.count)..<min(bytes.count, start + 600) {
            bytes[index] = UInt8.random(in: 0...255, using: &generator)
        }
        try worker.write(bytes, to: path)
    }
}
