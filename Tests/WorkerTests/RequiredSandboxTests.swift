import TestSupport
import Testing

/// `worker run` with and without a sandbox for its helpers.
@Suite(.serialized, .timeLimit(.minutes(15))) struct RequiredSandboxTests {
    /// Runs `worker run` as on a kernel without these calls.
    @discardableResult private func drain(
        _ w: TestWorker, without calls: [String], _ arguments: String..., expecting code: Int32,
    ) async throws -> TestWorker.Finished {
        let command = Unguarded.command(TestWorker.binary, without: calls)
        return try await w.run(
            command.arguments + ["run", "--drain"] + TestWorker.quick + arguments, program: command.program,
            expecting: code)
    }

    @Test func aRequiredSandboxThatIsAvailableChangesNothing() async throws {
        try await withWorker { w in
            try await w.enqueue([w.url("/1.png")], "--variant", "thumb=16x12,webp")
            let finished = try await w.drain("--require-sandbox")
            #expect(!finished.errors.contains("sandbox"))
            #expect(try await w.counts("1") == "1|0|0|0|0")
        }
    }

    @Test(
        .enabled(if: Unguarded.isPossible),
        arguments: [["landlock_create_ruleset"], ["seccomp"], ["landlock_create_ruleset", "seccomp"]])
    func withoutARequiredSandboxNoItemIsClaimed(calls: [String]) async throws {
        try await withWorker { w in
            try await w.enqueue([w.url("/1.png")], "--variant", "thumb=16x12,webp")
            let refused = try await drain(w, without: calls, "--require-sandbox", expecting: 69)
            #expect(refused.errors.contains("The required sandbox is not available: "))
            #expect(w.origin.requestCount("/1.png") == 0)
            #expect(try await w.value("SELECT state, attempts FROM items") == "queued|0")
        }
    }

    @Test(.enabled(if: Unguarded.isPossible)) func theConfigurationFileCanRequireTheSandbox() async throws {
        try await withWorker { w in
            try await w.enqueue([w.url("/1.png")])
            let file = try w.file("worker.yaml", "require-sandbox: true\n")
            try await drain(w, without: ["seccomp"], "--config", file, expecting: 69)
            let odd = try w.file("odd.yaml", "require-sandbox: perhaps\n")
            let refused = try await w.run("run", "--config", odd, expecting: 64)
            #expect(refused.errors.contains("require-sandbox must be true or false, not 'perhaps'."))
        }
    }

    @Test(.enabled(if: Unguarded.isPossible)) func aMissingSandboxThatIsNotRequiredGivesOneWarning() async throws {
        try await withWorker { w in
            try await w.enqueue((0..<5).map { w.url("/\($0).png") }, "--variant", "thumb=16x12,webp")
            let finished = try await drain(
                w, without: ["landlock_create_ruleset", "seccomp"], "--transforms", "2", expecting: 0)
            let warnings = finished.errors.split(separator: "\n").filter { $0.contains("without a full sandbox") }
            #expect(warnings.count == 1)
            #expect(try await w.counts("1") == "5|0|0|0|0")
        }
    }

    @Test(.enabled(if: Unguarded.isPossible)) func doctorNamesTheMissingPartsOfTheSandbox() async throws {
        try await withWorker { w in
            try await w.run("init")
            let command = Unguarded.command(TestWorker.binary, without: ["landlock_create_ruleset"])
            let text = try await w.run(command.arguments + ["doctor"], program: command.program)
            #expect(text.output.contains("warning: sandbox: no Landlock, seccomp. Landlock is not available: "))
        }
    }
}
