import FoundationEssentials
import PrefetchWorker
import TestSupport
import Testing

/// Settings from flags, the environment and a configuration file, and the output of `worker config show`.
struct SettingsTests {
    private struct Line: Decodable, Equatable {
        let name: String
        let value: String?
        let source: String
    }

    private func shown(_ output: String) throws -> [String: Line] {
        let lines = try output.split(separator: "\n").map { try JSONDecoder().decode(Line.self, from: Data($0.utf8)) }
        return Dictionary(uniqueKeysWithValues: lines.map { ($0.name, $0) })
    }

    @Test func configShowNamesEachValueAndItsSource() async throws {
        try await withWorker { w in
            let file = try w.file(
                "worker.yaml", "concurrency: 3\nper-host: 4\nallow-addresses: [loopback, 10.0.0.0/8]\n")
            let result = try await w.run(
                "config", "show", "--json", "--config", file, "--wait", "5s",
                environment: ["WORKER_PER_HOST": "2", "WORKER_MAX_BODY": "1MiB"])
            let lines = try shown(result.output)
            let expected = [
                Line(name: "concurrency", value: "3", source: file),
                Line(name: "per-host", value: "2", source: "WORKER_PER_HOST"),
                Line(name: "max-body", value: "1MiB", source: "WORKER_MAX_BODY"),
                Line(name: "allow-addresses", value: "loopback, 10.0.0.0/8", source: file),
                Line(name: "wait", value: "5000ms", source: "--wait"),
                Line(name: "order", value: "fifo", source: "default"),
                Line(name: "rate", value: "no limit", source: "default"),
            ]
            for line in expected { #expect(lines[line.name] == line) }

            // The same for a reader: names in one column, sources at the end.
            let text = try await w.run("config", "show", "--config", file)
            #expect(text.output.split(separator: "\n").count == lines.count)
            #expect(text.output.contains(/concurrency +3 +\S+worker\.yaml/))
        }
    }

    @Test func configShowHidesSecretsUnlessAsked() async throws {
        try await withWorker { w in
            let file = try w.file("worker.yaml", "header: ['X-Token: abc123']\nproxy: http://me:abc123@p.example/\n")
            let hidden = try await w.run("config", "show", "--config", file)
            #expect(!hidden.output.contains("abc123"))
            let shown = try await w.run("config", "show", "--config", file, "--show-credentials")
            #expect(shown.output.contains("X-Token: abc123"))
            #expect(shown.output.contains("http://me:abc123@p.example/"))
        }
    }

    @Test(arguments: [
        ("per-host: many", "worker.yaml, line 1: per-host must be a whole number from 1 to 1000, not 'many'."),
        ("allow-data: perhaps", "worker.yaml, line 1: allow-data must be true or false, not 'perhaps'."),
        ("order: random", "worker.yaml, line 1: order must be fifo or lifo, not 'random'."),
        ("concurrency: {a: 1}", "worker.yaml, line 1: 'concurrency' must be one value or a list."),
        ("max-redirect: 3", "unknown setting 'max-redirect'. Did you mean 'max-redirects'?"),
        ("colour: blue", "unknown setting 'colour'. The settings are: "),
        ("just words", "must be lines such as 'concurrency: 12'."),
        ("a: [", "is not YAML"),
    ])
    func anInvalidConfigurationFileIsRefusedWithTheRightLine(_ text: String, _ message: String) async throws {
        try await withWorker { w in
            let file = try w.file("worker.yaml", text)
            let refused = try await w.run("config", "show", "--config", file, expecting: 64)
            #expect(refused.errors.contains(message), "\(refused.errors)")
            #expect(refused.output.isEmpty)
        }
    }

    /// YAML 1.1 has more words for true and false.
    @Test(arguments: [("yes", true), ("on", true), ("true", true), ("no", false), ("off", false), ("false", false)])
    func aSwitchInAFileAcceptsYAMLsWordsForTrueAndFalse(_ word: String, _ isAllowed: Bool) async throws {
        try await withWorker { w in
            let file = try w.file("worker.yaml", "allow-data: \(word)\n")
            let picture = "data:image/png;base64,\(Data(Scene.png(1, width: 8)).base64EncodedString())"
            try await w.enqueue(picture)
            try await w.run("run", "--drain", "--config", file, expecting: isAllowed ? 0 : 2)
            let messages = try await w.rows("SELECT coalesce(message, '') FROM results")
            #expect(messages.allSatisfy { $0.contains("--allow-data") == !isAllowed }, "\(messages)")
        }
    }

    /// Every flag of `run` can be set in a file as well: a flag that is no setting would be neither in
    /// the environment nor in `config show`.
    @Test func everyFlagOfRunIsASetting() async throws {
        try await withWorker { w in
            let help = try await w.run("run", "--help").output
            let settings = try shown(try await w.run("config", "show", "--json").output)
            let flags = Set(help.matches(of: /(?m)^  (?:-\w, )?--([a-z-]+)/).map { String($0.output.1) })
            #expect(flags.count > 50)
            // What belongs to one call, not to a machine's settings.
            let ofTheCall: Set = ["drain", "json", "quiet", "config", "help", "version"]
            #expect(flags.subtracting(settings.keys).subtracting(ofTheCall) == [])
        }
    }

    @Test func helpOfRunBeginsWithTheMostUsedFlags() async throws {
        try await withWorker { w in
            let help = try await w.run("run", "--help").output
            let titles = help.matches(of: /(?m)^([A-Z][A-Z :]+):$/).map { String($0.output.1) }
            #expect(titles.drop { $0 == "EXAMPLES" }.prefix(2) == ["MOST USED", "DATABASE AND CACHE"])
            #expect(titles.contains("ADVANCED: HOSTS"))
            let most = try #require(help.firstRange(of: "MOST USED:"))
            let others = try #require(help.firstRange(of: "DATABASE AND CACHE:"))
            let flags = help[most.upperBound..<others.lowerBound].matches(of: /(?m)^  (?:-\w, )?--/).count
            #expect((8...15).contains(flags))
        }
    }
}
