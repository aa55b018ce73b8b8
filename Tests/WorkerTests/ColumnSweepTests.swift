import Glibc
import Synchronization
import TestSupport
import Testing

/// Every column of every table with numbers, and with bytes that are no text, that no program of ours writes: a command may
/// refuse them in a sentence, and a worker may wait for ever, but neither is ended by a trap, and no command goes on for ever.
@Suite(.serialized, .timeLimit(.minutes(15))) struct ColumnSweepTests {
    /// Columns of a table that are set at once. Keys are set by themselves: a row with another key is another row, and its
    /// other columns would not be looked at.
    private struct Place: Sendable {
        let table: String
        let isKey: Bool
        let isText: Bool
        let columns: [String]
        /// Its other columns, and whether they hold text.
        let all: [(name: String, isText: Bool)]
        let isEmpty: Bool
    }

    private struct Trial: Sendable {
        let places: [Place]
        let value: String

        init(_ places: [Place], _ value: String) {
            self.places = places
            self.value = value
        }
    }

    private static let largest = "9223372036854775807"
    private static let smallest = "-9223372036854775808"

    /// A few that cover all these places, each with several of them.
    private static func trials(of places: [Place], _ value: String) -> [Trial] {
        stride(from: 0, to: places.count, by: 5).map {
            Trial(Array(places[$0..<min($0 + 5, places.count)]), value)
        }
    }

    @Test func `No number and no bytes in any column trap a program or keep it busy for ever`() async throws {
        let isLate = Mutex(false)
        try await withWorker({ request in
            if isLate.withLock({ $0 }) { return .ok(Pictures.png(3)) }
            if request.path.hasPrefix("/slow") {
                return .partial(Array(Pictures.png(9).prefix(90)), of: 9_000, then: .stall)
            }
            return request.path == "/busy" ? .status(503) : Pictures.reply(request)
        }) { w in
            try await fill(w)
            isLate.withLock { $0 = true }
            let places = try await places(w)
            #expect(places.count > 80 && Set(places.map(\.table)).count > 35, "\(places.map(\.table))")
            var trials: [Trial] = []
            for (number, place) in places.enumerated() where place.isKey {
                // As bytes, or as a text that is no UTF-8.
                let bytes = ["x'00FF'", "CAST(x'FF' AS TEXT)"][number % 2]
                trials += (place.isText ? [bytes] : [Self.largest, Self.smallest]).map { Trial([place], $0) }
            }
            let numbers = places.filter { !$0.isKey && !$0.isText }
            trials += numbers.map { Trial([$0], Self.largest) }
            // What is read as another value is so wherever it is read: several tables have it at once.
            trials += [Self.smallest, "9e300"].flatMap { Self.trials(of: numbers, $0) }
            let texts = places.filter { !$0.isKey && $0.isText }
            trials += ["x'00FF'", "CAST(x'FF' AS TEXT)"].flatMap { Self.trials(of: texts, $0) }
            trials.reverse()
            let base = w.place("base")
            try await w.run("-a", w.home, base, program: "cp")
            // As many at once as a small machine has cores.
            try await withThrowingTaskGroup { group in
                for _ in 0..<2 {
                    if let trial = trials.popLast() { group.addTask { try await attempt(trial, base, w) } }
                }
                while try await group.next() != nil {
                    if let trial = trials.popLast() { group.addTask { try await attempt(trial, base, w) } }
                }
            }
            try await w.run(["run", "--drain"] + TestWorker.quick, expecting: nil)
        }
    }

    /// A small run with a bit of everything, whose worker is killed at work.
    private func fill(_ w: TestWorker) async throws {
        try await w.run("init")
        let manifest = try w.file("night.yaml", "urls: ['\(w.url("/1.png"))']\nvariants: v=16x12,png\n")
        try await w.run("schedule", "add", manifest, "--cron", "0 3 * * *")
        try await w.run("schedule", "run", "night")
        try await w.run("recipe", "add", "r", "thumb=20x10,webp")
        try await w.run("limits", "--per-host", "4")
        try await w.run("cache", "pin", w.url("/1.png"))
        try await w.enqueue(
            w.url("/1.png"), w.url("/2.png"), w.url("/none"), w.url("/busy"), "--variant", "v=16x12,png", "--notify",
            w.url("/notice"))
        let worker = try w.start("--max-tries", "2", "--progress-interval", "400ms")
        try await w.untilEnded("2")
        try await w.enqueue((1...5).map { w.url("/slow\($0)") }, "--variant", "v=16x12,png")
        try await w.eventually("transfers are on the books, and one waits for a place") {
            try await w.value(
                "SELECT (SELECT count(*) FROM transfer_progress) > 0 AND (SELECT count(*) FROM held_items) > 0") == "1"
        }
        worker.send(SIGKILL)
        _ = try await worker.wait()
        // Nothing that a worker waits for: each trial has one.
        try await w.sql(
            """
            DELETE FROM notices WHERE state = 'failed'; UPDATE notices SET due_at = 1;
            UPDATE hosts SET not_before = 1; UPDATE items SET run_at = 1 WHERE run_at > 1
            """)
    }

    private func places(_ w: TestWorker) async throws -> [Place] {
        let tables = try await w.rows("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
        var places: [Place] = []
        for table in tables {
            let rows = try await w.rows("SELECT name, type, pk > 0 FROM pragma_table_info('\(table)')")
                .map { $0.split(separator: "|", omittingEmptySubsequences: false).map(String.init) }
            let isEmpty = try await w.value("SELECT count(*) FROM \(table)") == "0"
            let all = rows.map { (name: $0[0], isText: $0[1] == "TEXT") }
            for (isKey, isText) in [("0", false), ("1", false), ("0", true), ("1", true)] {
                let columns = rows.filter { $0[2] == isKey && ($0[1] == "TEXT") == isText }.map { $0[0] }
                guard !columns.isEmpty else { continue }
                places.append(
                    Place(
                        table: table, isKey: isKey == "1", isText: isText, columns: columns, all: all, isEmpty: isEmpty)
                )
            }
        }
        return places
    }

    /// What reads the database, and what changes it.
    private static func commands(_ w: TestWorker, _ home: String) -> [[String]] {
        [
            ["status"], ["results", "2", "--json"], ["hosts"], ["explain", w.url("/slow1")], ["metrics"],
            ["cache", "stats"], ["cache", "verify"], ["blacklist", "list"], ["schedule", "list"],
            ["events", "--no-follow"],
            ["export", "2", home + ".tree", "--by", "copy"], ["run"], ["prune", "--older-than", "1h", "--yes"],
            ["cache", "gc"],
            ["retry", "2"],
        ]
    }

    private func attempt(_ trial: Trial, _ base: String, _ w: TestWorker) async throws {
        let name = "\(trial.places.map { "\($0.table) \($0.columns)" }.joined(separator: ", ")) \(trial.value)"
        let home = w.place(
            "\(trial.places[0].table).\(trial.places[0].columns[0]).\(trial.value.filter { $0.isLetter || $0.isNumber || $0 == "-" })"
        )
        try await w.run("-a", base, home, program: "cp")
        let environment = ["WORKER_DB": home + "/worker.db", "WORKER_CACHE": home + "/cache"]
        try await set(trial, home + "/worker.db", w)
        for command in Self.commands(w, home) {
            // What a worker mends, the commands before it have seen.
            guard command != ["run"] else {
                try await work(in: home, name, w)
                continue
            }
            let found: TestWorker.Finished
            do {
                found = try await w.run(command, environment: environment, expecting: nil)
            } catch let error as RunningProgram.TookTooLong {
                Issue.record("\(name): \(error)")
                continue
            }
            // 64 and above are the codes of sysexits.h; a shell's 128 and above stand for signals.
            guard case .code(let code) = found.exit, code < 128 else {
                Issue.record("\(name): \(command): \(found.exit) \(found.errors.suffix(2_000))")
                continue
            }
            #expect(code == 0 || !(found.errors + found.output).isEmpty, "\(name): \(command): \(code)")
        }
        try await w.run("-rf", home, home + ".tree", program: "rm")
    }

    /// One statement after the other, since a key can't have any number. A table that such a run leaves empty gets a row.
    private func set(_ trial: Trial, _ database: String, _ w: TestWorker) async throws {
        var script = ".dbconfig enable_trigger off\nPRAGMA ignore_check_constraints = ON;\n"
        for place in trial.places {
            if place.isEmpty {
                let names = place.all.map(\.name).joined(separator: ", ")
                let values = place.all.map { $0.isText ? "'x'" : "1" }.joined(separator: ", ")
                script += "INSERT INTO \(place.table) (\(names)) VALUES (\(values));\n"
            }
            for column in place.columns {
                script += "UPDATE OR IGNORE \(place.table) SET \(column) = \(trial.value);\n"
            }
        }
        script += "SELECT total_changes();\n"
        let done = try await w.run("-batch", database, program: "sqlite3", input: script, expecting: nil)
        #expect(trial.places[0].isKey || done.lines.last != "0", "\(trial.places[0].table): \(done.errors)")
    }

    /// A worker that finds no end to its work is told to stop, and stops.
    private func work(in home: String, _ name: String, _ w: TestWorker) async throws {
        let worker = try w.start(
            TestWorker.quick + ["--drain", "--grace", "1s", "--cache-max-size", "1MB", "--quiet"],
            environment: ["WORKER_DB": home + "/worker.db", "WORKER_CACHE": home + "/cache"])
        for _ in 0..<300 where worker.exit == nil { try await Task.sleep(for: .milliseconds(10)) }
        worker.send(SIGTERM)
        let exit: RunningProgram.Exit
        do {
            exit = try await worker.wait(atMost: .seconds(60))
        } catch let error as RunningProgram.TookTooLong {
            Issue.record("\(name): \(error)")
            return
        }
        guard case .code = exit else {
            Issue.record("\(name): \(exit)")
            return
        }
        #expect(!(try w.errors(of: worker)).contains("Fatal error"), "\(name)")
    }
}
