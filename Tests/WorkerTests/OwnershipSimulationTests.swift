import SystemPackage
import TestSupport
import Testing

/// `scripts/simulate-ownership`: no host sees more requests at once than it may, unless a rule of the design is broken.
@Suite(.serialized, .timeLimit(.minutes(15)), .enabled(if: ChildProcess.find("swiftc") != nil, "swiftc is needed"))
struct OwnershipSimulationTests {
    private static let script = Guide.root.appending("scripts/simulate-ownership").string
    private static let small = ["--workers", "20", "--hosts", "10000", "--minutes", "5"]

    @Test func `No host sees too many requests, and a seed always gives the same figures`() async throws {
        try await withWorker { w in
            // The first run builds the program.
            let first = try await w.run(Self.small, program: Self.script, within: .seconds(300))
            let second = try await w.run(Self.small, program: Self.script)
            #expect(first.output == second.output)
            #expect(first.output.contains("requests at once at one host: 6 of 6 allowed"))
            #expect(first.output.contains(", 0 buckets at the end"))
        }
    }

    @Test(arguments: ["no-drain", "wrong-clock", "no-abort", "no-lease", "suspended"])
    func `The simulation notices a broken rule`(_ rule: String) async throws {
        try await withWorker { w in
            let run = try await w.run(
                Self.small + ["--break", rule], program: Self.script, expecting: 1, within: .seconds(300))
            #expect(run.errors.contains("saw 7 requests at once, and 6 are allowed"))
        }
    }

    @Test(arguments: [["--unknown"], ["--workers"], ["--workers", "0"], ["--break", "nothing"]])
    func `A wrong option is refused`(_ arguments: [String]) async throws {
        try await withWorker { w in
            let run = try await w.run(arguments, program: Self.script, expecting: 64)
            #expect(run.errors.contains("see --help"))
        }
    }
}
