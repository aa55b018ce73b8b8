import TestSupport
import Testing

/// Few files may be open at once.
@Suite(.serialized, .timeLimit(.minutes(15))) struct DescriptorTests {
    private func script(_ w: TestWorker, _ limit: Int, _ arguments: String) -> [String] {
        [
            "-c",
            "ulimit -n \(limit); exec \(TestWorker.binary) run --drain --quiet \(arguments) \(TestWorker.quick.joined(separator: " "))",
        ]
    }

    @Test func `Too few file descriptors are refused with advice`() async throws {
        try await withWorker { w in
            try await w.run("init")
            for (limit, arguments) in [(100, ""), (256, "--concurrency 40")] {
                let result = try await w.run(script(w, limit, arguments), program: "sh", expecting: 69)
                #expect(result.errors.contains("ulimit -n"), "\(result.errors)")
            }
            try await w.run(script(w, 256, "--concurrency 6"), program: "sh")
        }
    }
}
