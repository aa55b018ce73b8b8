import Glibc
import TestSupport
import Testing

/// Flags, help, settings and the messages about wrong ones.
@Suite(.serialized, .timeLimit(.minutes(15))) struct UsageTests {
    @Test(arguments: [
        "", "init", "enqueue", "run", "status", "results", "get", "explain", "cancel", "pause", "resume", "retry",
        "blacklist list", "blacklist remove", "blacklist clear", "cache verify", "cache put", "import", "doctor",
        "reorder", "blacklist", "cache", "db", "config", "manifest", "recipe", "schedule",
    ])
    func helpShowsAnExample(_ command: String) async throws {
        try await withWorker { w in
            let help = try await w.run(command.split(separator: " ").map(String.init) + ["--help"])
            #expect(help.output.contains("EXAMPLE"))
            #expect(help.output.contains("  worker \(command)"))
            #expect(help.errors.isEmpty)
        }
    }

    /// Doubles have values that are no number of seconds or bytes.
    @Test(arguments: [
        "run --drain --grace", "run --drain --cache-max-age", "run --drain --quarantine-age", "run --drain --max-age",
        "run --drain --keep-jobs", "run --drain --orphan-grace", "run --drain --cache-max-size",
        "run --drain --memory-cache", "run --drain --rate", "run --drain --retry-delay", "run --drain --min-free",
        "run --drain --backup-every", "run --drain --total-timeout", "prune --older-than", "limits --rate",
        "limits a.example --rate", "cache verify --sample", "cache verify --rate", "cache gc --min-free",
        "blacklist list --limit", "hosts --limit", "limits --burst",
    ])
    func invalidNumbersAreRefused(_ line: String) async throws {
        try await withWorker { w in
            try await w.run("init")
            let words = line.split(separator: " ").map(String.init)
            let option = words[words.count - 1]
            for value in ["nan", "inf", "-inf", "-5", "-5d", "1e400"] {
                let refused = try await w.run(words.dropLast() + ["\(option)=\(value)"], expecting: 64)
                #expect(refused.errors.contains(option.dropFirst(2)), "\(value): \(refused.errors)")
            }
            #expect(try await w.value("SELECT count(*) FROM limits") == "0")
        }
    }

    @Test func anEndlessTimeAndASizeOfZeroAreNoLimit() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"))
            try await w.drain(
                "--cache-max-size", "0", "--cache-max-age", "-1", "--quarantine-age", "-1", "--max-age", "-1")
            _ = try await w.path(w.url("/1.png"))
            try await w.run("cache", "gc", "--cache-max-size", "0", "--cache-max-age", "never")
            _ = try await w.path(w.url("/1.png"))
        }
    }

    struct Mistake: Sendable, CustomTestStringConvertible {
        let arguments: [String]
        let message: String
        var code: Int32 = 64
        var testDescription: String { arguments.joined(separator: " ") }

        init(_ line: String, _ message: String, code: Int32 = 64) {
            arguments = line.split(separator: " ").map(String.init)
            self.message = message
            self.code = code
        }
    }

    @Test(arguments: [
        Mistake("nonsense", "nonsense"),
        Mistake("status --nonsense", "Unknown option '--nonsense'"),
        Mistake("status seven", "seven"),
        Mistake("get", "'worker get' needs <url>"),
        Mistake("results 1 --format xml", "xml"),
        Mistake("enqueue", "No URLs: name some, or a file with -f, or standard input with -f -"),
        Mistake(
            "enqueue http://a/ --option retry-faild", "Unknown option 'retry-faild'. Did you mean 'retry-failed'?"),
        Mistake("enqueue http://a/ --option keep-original --option discard-original", "exclude each other"),
        Mistake("enqueue http://a/ --variant thumb=320x240,cvoer", "did you mean cover?"),
        Mistake("enqueue http://a/ --variant thumb", "thumb"),
        Mistake("enqueue http://a/ --variant original=10x10", "original"),
        Mistake("enqueue http://a/ --variant a=10x --variant a=20x", "a"),
        Mistake("enqueue http://a/ --priority 101", "priority must be a whole number from -100 to 100, not '101'."),
        Mistake("enqueue http://a/ --order random", "order must be fifo or lifo, not 'random'."),
        Mistake("enqueue http://a/ --order lfo", "Did you mean 'lifo'?"),
        Mistake("export one out", "A job is a number, not 'one'."),
        Mistake("events --after x", "--after takes the id of an event, 0 or above, not 'x'."),
        Mistake("cache verify --sample x", "--sample takes a number above 0 and up to 100, not 'x'"),
        Mistake("cache verify --sample 101", "--sample takes a number above 0 and up to 100, not '101'"),
        Mistake("enqueue http://a/ --header nonsense", "A header is 'Name: value', or @FILE for a file of such lines."),
        Mistake("enqueue -f /nonexistent", "The list of URLs /nonexistent can't be read"),
        Mistake("enqueue --manifest /nonexistent", "The manifest /nonexistent can't be read"),
        Mistake("run --concurrency 0", "concurrency must be a whole number from 1 to 1000, not '0'."),
        Mistake("run --order random", "order must be fifo or lifo, not 'random'."),
        Mistake("run --max-body much", "max-body must be a number of bytes such as 64MiB, not 'much'."),
        Mistake("run --max-frames 0", "max-frames must be a whole number from 1 to 1000000, not '0'."),
        Mistake("run --max-decoder-memory much", "max-decoder-memory must be a number of bytes such as 64MiB"),
        Mistake("run --connect-timeout soon", "connect-timeout must be a time such as 15s, 500ms or 7d, not 'soon'."),
        Mistake("run --connect-timeout 0", "The range is 1ms to"),
        Mistake("run --allow-addresses everywhere", "allow-addresses: "),
        Mistake("run --header Referer", "A header is 'Name: value', or @FILE for a file of such lines."),
        Mistake("run --header Cookie:x", "Cookie would go to every host. Give it to a job: worker enqueue --header"),
        Mistake("run --header Re(ferer:x", "A header named 'Re(ferer' can't be sent"),
        Mistake("run --header Range:bytes=0-9", "The header Range can't be chosen: the worker sets it itself."),
        Mistake("run --user-agent a\r\nb", "The header User-Agent has a value that can't be sent"),
        Mistake("run --contact a\u{1}b", "The header User-Agent has a value that can't be sent"),
        Mistake("enqueue http://a/ --header X:a\u{1}b", "The header X has a value that can't be sent"),
        Mistake("enqueue http://a/ --header Content-Length:5", "The header Content-Length can't be chosen"),
        Mistake("run --config /nonexistent", "The configuration file /nonexistent can't be read"),
        Mistake("status --db /nonexistent/worker.db", "There is no database at /nonexistent/worker.db.", code: 73),
        Mistake("limits a.example:80 --rate 1", "A host is a name without scheme and port"),
        Mistake("limits http://a.example/ --rate 1", "A host is a name without scheme and port"),
        Mistake("init --cache /proc/nowhere", "/proc/nowhere", code: 73),
        Mistake("run --drain --db /nonexistent/worker.db", "/nonexistent/worker.db", code: 73),
    ])
    func aMistakeIsRefusedWithAMessage(_ mistake: Mistake) async throws {
        try await withWorker { w in
            let refused = try await w.run(mistake.arguments, expecting: mistake.code)
            #expect(refused.errors.contains(mistake.message), "\(refused.errors)")
            #expect(refused.output.isEmpty)
        }
    }

    @Test(arguments: ["status", "results 1", "get http://a/", "explain http://a/", "blacklist list", "cancel 1"])
    func aCommandWithoutADatabaseSaysHowToMakeOne(_ command: String) async throws {
        try await withWorker { w in
            let refused = try await w.run(command.split(separator: " ").map(String.init), expecting: 73)
            #expect(
                refused.errors
                    == "worker: There is no database at \(w.database). Name one with --db or WORKER_DB, or make it with: worker init\n"
            )
            #expect(access(w.database, F_OK) != 0)
        }
    }

    @Test func anInvalidManifestIsRefusedWhole() async throws {
        try await withWorker { w in
            for (text, message) in [
                (
                    "urls: [http://a/]\nvariant: thumb=1x1",
                    "unknown key 'variant'. Did you mean 'variants'? The keys are: name, urls,"
                ),
                ("urls: [http://a/\n", "can't be used"),
                ("urls: {a: b}", "line 1: urls must be a list, with each URL on a line behind a dash."),
                ("name: empty", "No URLs"),
                ("urls: [http://a/]\norder: upside-down", "order must be fifo or lifo, not 'upside-down'."),
            ] {
                let refused = try await w.run("enqueue", "--manifest", try w.file("m.yaml", text), expecting: 64)
                #expect(refused.errors.contains(message), "\(refused.errors)")
            }
            #expect(access(w.database, F_OK) != 0)
        }
    }

    /// The database that a command opens shows where the setting came from.
    @Test func flagsOverrideTheEnvironmentAndTheEnvironmentOverridesTheFile() async throws {
        try await withWorker { w in
            let config = try w.file("worker.yaml", "db: /from/file.db\nconcurrency: 3\n")
            let other = try w.file("other.yaml", "db: /from/other.db\n")
            func database(_ arguments: [String], _ variables: String...) async throws -> String {
                let command = ["-u", "WORKER_DB", "-C", w.scratch] + variables + [TestWorker.binary, "status"]
                let refused = try await w.run(command + arguments, program: "env", expecting: 73)
                return refused.errors.split(separator: " ").first { $0.hasSuffix(".db.") }.map(String.init) ?? ""
            }
            let variable = "WORKER_DB=/from/environment.db"
            #expect(try await database(["--db", "/from/flag.db", "--config", config], variable) == "/from/flag.db.")
            #expect(try await database(["--config", config], variable) == "/from/environment.db.")
            #expect(try await database(["--config", config]) == "/from/file.db.")
            #expect(try await database([], "WORKER_CONFIG=\(config)") == "/from/file.db.")
            #expect(try await database(["--config", other], "WORKER_CONFIG=\(config)") == "/from/other.db.")
            #expect(try await database([]) == "worker.db.")
        }
    }

    @Test func variantsOfBothFormsCanBeRepeated() async throws {
        try await withWorker { w in
            let forms = [#"{"name":"a","width":8}"#, "b=9x,png", #"[{"name":"c","width":10},"d=11x"]"#]
            try await w.enqueue([w.url("/1.png")] + forms.flatMap { ["--variant", $0] })
            try await w.drain()
            let rows = try await w.rows("SELECT variant || width FROM results WHERE variant <> 'original' ORDER BY 1")
            #expect(rows == ["a8", "b9", "c10", "d11"])
            let refused = try await w.run(
                ["enqueue", w.url("/1.png"), "--variant", forms[0], "--variant", "b"], expecting: 64)
            #expect(refused.errors.contains("there is no '='"), "\(refused.errors)")
        }
    }

    @Test func limitsAreReadFromFlagsTheEnvironmentAndTheFile() async throws {
        try await withWorker { w in
            let config = try w.file("worker.yaml", "concurrency: nonsense\nper-host: 6\n")
            let file = try await w.run("run", "--drain", "--config", config, expecting: 64)
            #expect(file.errors.contains("not 'nonsense'"))
            let variables = ["WORKER_CONCURRENCY": "0"]
            let variable = try await w.run("run", "--drain", "--config", config, environment: variables, expecting: 64)
            #expect(variable.errors.contains("not '0'"))
            try await w.run("run", "--drain", "--config", config, "--concurrency", "2", environment: variables)
            let unknown = try w.file("unknown.yaml", "concurency: 3\n")
            let refused = try await w.run("status", "--config", unknown, expecting: 64)
            #expect(
                refused.errors.contains(
                    "unknown setting 'concurency'. Did you mean 'concurrency'? 'worker config show' lists all settings."
                ))
            let list = try w.file("list.yaml", "allow-addresses: [loopback, 10.0.0.0/8]\nretry-delay: 10ms\n")
            try await w.enqueue(w.url("/1.png"))
            try await w.run("run", "--drain", "--config", list)
        }
    }
}
