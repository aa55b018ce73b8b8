import Glibc
import TestSupport
import Testing

/// Commands on a terminal: questions before something is removed, and lines that are drawn in place.
@Suite(
    .timeLimit(.minutes(15)), .enabled(if: ChildProcess.find("script") != nil, "script(1) is not installed."))
struct PromptTests {
    /// Runs a command on a terminal of 80 columns, whose user types `input`.
    private func onTerminal(
        _ w: TestWorker, _ command: [String], typing input: String = "", expecting code: Int32 = 0,
    ) async throws -> String {
        let line = ([TestWorker.binary] + command).joined(separator: " ")
        return try await w.run(
            ["-qec", "stty cols 80 -echo; exec \(line)", "/dev/null"], program: "script", input: input,
            environment: ["TERM": "xterm"], expecting: code
        ).output
    }

    @Test(arguments: [
        (["prune", "--older-than", "0s"], "SELECT count(*) FROM jobs", "1", "0"),
        (["cache", "clear"], "SELECT count(*) FROM blobs", "2", "0"),
        (["blacklist", "clear"], "SELECT count(*) FROM blacklist", "1", "0"),
        (["limits", "a.example", "--reset"], "SELECT count(*) FROM limits", "1", "0"),
        (["db", "rebuild"], "SELECT count(*) FROM blacklist", "1", "1"),
    ])
    func aCommandThatRemovesSomethingAsksFirst(
        _ command: [String], _ query: String, _ before: String, _ after: String
    ) async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"), w.url("/missing"), "--variant", "t=8x6,png")
            try await w.drain(expecting: 2)
            try await w.run("limits", "a.example", "--rate", "3")
            for (answer, code) in [("n\n", Int32(1)), ("\n", 1), ("\u{4}", 1)] {
                let shown = try await onTerminal(w, command, typing: answer, expecting: code)
                #expect(shown.contains("Go on? [y/N]") && shown.contains("Nothing was changed."), "\(shown)")
                #expect(try await w.value(query) == before)
            }
            let shown = try await onTerminal(w, command, typing: "y\n")
            #expect(shown.contains("Go on? [y/N]"), "\(shown)")
            #expect(try await w.value(query) == after)
            for name in fileNames(in: w.home) where name.contains(".broken-") { unlink("\(w.home)/\(name)") }
        }
    }

    @Test func statusWithWatchIsDrawnInPlace() async throws {
        try await withWorker({ .delayed(milliseconds: 300, then: Pictures.reply($0)) }) { w in
            try await w.enqueue((0..<12).map { w.url("/\($0).png") } + ["--name", "shop"])
            _ = try w.start("--concurrency", "2")
            let shown = try await onTerminal(w, ["status", "1", "--watch"])
            // Each line is drawn over the one before.
            #expect(shown.matches(of: /\r\u{1B}\[J/).count > 1, "\(shown)")
            #expect(shown.contains("12/12") || shown.contains("12 of 12 ended"), "\(shown)")
            try await w.stopAll()
        }
    }

    @Test(arguments: ["bash", "zsh", "fish"])
    func theCompletionsOfEachShellNameTheCommandsAndTheirFlags(_ shell: String) async throws {
        try await withWorker { w in
            let script = try await w.run("--generate-completion-script", shell).output
            for word in ["enqueue", "blacklist", "concurrency", "older-than"] {
                #expect(script.contains(word), "\(word)")
            }
            // Where the shell is installed, it reads the script.
            let file = try w.file("completion", script)
            guard ChildProcess.find(shell) != nil else { return }
            try await w.run(["-n", file], program: shell)
        }
    }
}
